// The step of post-training by reinforcement learning: what is asked of it, and what a forecast says.
//
// One step generates answers to prompts, scores them (log-probabilities of the policy and of its reference, a reward
// model if there is one), trains on them, and hands the new weights to the engine that generates. This is a roofline of
// generation, no simulation of a serving engine. Model: docs/post-training.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

enum class RlAlgorithm : std::uint8_t {
  grpo,  // log-probabilities of the policy before the step and of a reference; no critic
  ppo,   // these, and a critic as large as the policy: its values, and its own training
  dapo,  // no reference; more is generated than trained on (dynamic sampling)
};
[[nodiscard]] std::string_view to_string(RlAlgorithm algorithm);

// In words of the command line, which the reader of a request checks. Nothing: what the config of a framework says
// (rl_config.h), or what stands behind the colon.
struct RlSettings {
  std::string algorithm{};                      // grpo, ppo, dapo: grpo
  std::optional<std::int64_t> prompts{};        // per step: has to be said
  std::optional<std::int64_t> generations{};    // answers to each: 1
  std::string lengths{};                        // "mean=3251,max=4096", or a CSV file (rollout/lengths.h): of
                                                // prompt and answer; has to be said
  std::optional<std::int64_t> prompt_tokens{};  // of these, on average: 256, at most half of the mean
  std::optional<double> oversampling{};  // sequences generated for each that is trained on: dapo 3, others 1
  std::string policy{};                  // "on", or "off:N", weights that generate up to N steps old: on
  std::optional<std::int64_t> generation_gpus{};                           // off-policy: searched
  std::optional<std::int64_t> generation_tensor{}, generation_pipeline{};  // searched
  std::string generation_dtype{};                   // bf16 or fp8, of the weights while generating: bf16
  std::optional<double> generation_memory_share{};  // of a GPU, that an engine takes: 0.6, off-policy 0.9
  std::string reward_model{};  // preset or config.json of a model that scores: a function
  // Ways to spread the step that RlForecast::alternatives holds. 0: only the best under the other policy.
  std::size_t options = 0;
};

// What a forecast rests on beside the prices of kernels and transfers. Each is fitted to published steps (docs/constants.md).
struct RlConstants {
  double decode_factor = 1.25;  // time of an iteration of decoding over the sum of its kernels and transfers
  double layer_us = 8.0;        // that each layer of an iteration takes besides
  double training_factor = 1.48;  // time of training and log-probabilities over their forecast
  double colocated_s = 26;        // on-policy: one engine goes to sleep and the other wakes, both ways
  double handover_s = 9.7;        // off-policy: between two steps
  // Weights, per 1e11 parameters; on-policy twice: what the trainer keeps makes room, and comes back.
  double transfer_s_per_100B = 5.0;
};

// The parts of a step, in seconds; those of one pool follow each other.
struct RlParts {
  double prefill_s = 0, decode_s = 0;
  double tail_s = 0;  // decoding while less than a tenth of the answers go on
  double log_probabilities_s = 0, reward_s = 0, train_s = 0;
  double transfer_s = 0;  // weights, and the change from one engine to the other
  double idle_s = 0;      // the pool that waits for the other one
  double idle_gpus = 0;   // GPUs of that pool
  [[nodiscard]] double generate_s() const { return prefill_s + decode_s + tail_s; }
  [[nodiscard]] double learn_s() const { return log_probabilities_s + reward_s + train_s; }
};

// Of the GPU that holds most, in GiB.
struct RlMemory {
  double generation_weights_GiB = 0, kv_cache_GiB = 0;  // the second: that the sequences at once take
  double kv_cache_room_GiB = 0;
  double training_weights_GiB = 0, gradients_GiB = 0, optimizer_GiB = 0, activations_GiB = 0;
  double training_peak_GiB = 0, available_GiB = 0;
  bool training_fits = true;
};

// One way to spread a step over its GPUs.
struct RlSplit {
  bool on_policy = true;
  std::int64_t generation_gpus = 0, training_gpus = 0;  // on-policy: the same GPUs
  std::int64_t generation_tensor = 1, generation_pipeline = 1;
  std::int64_t sequences_at_once = 0;  // of one engine
  double step_s = 0;
  std::string training_layout{};  // "tp2 cp1 pp8 ep16 dp4, zero1"
  bool training_fits = true;
};

struct RlForecast {
  std::string model, platform;
  RlAlgorithm algorithm = RlAlgorithm::grpo;
  std::int64_t n_gpus = 0, prompts = 0, generations = 0;
  std::int64_t off_policy_steps = 0;
  double generated_sequences = 0, trained_sequences = 0;
  double mean_tokens = 0, max_tokens = 0;
  double step_s = 0, p10_s = 0, p90_s = 0;
  double tokens_per_s_per_gpu = 0;  // generated: prompts and answers
  RlParts parts;
  RlMemory memory;
  RlSplit split;
  // The best under the other policy, at as many GPUs; or where they are asked for the fastest of all, of every number of
  // GPUs that generate the fastest engine.
  std::vector<RlSplit> alternatives;
  std::vector<std::string> notes;
};

}  // namespace stepcast
