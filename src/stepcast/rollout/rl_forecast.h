// Question and answer of a forecast of one step of post-training by reinforcement learning.
//
// A step generates answers to prompts, scores them (log-probabilities of the policy and of a reference, optionally a reward
// model), trains on them and sends the new weights to the generation engine. Generation is a roofline model, not a simulation
// of a serving engine. Model: docs/post-training.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

// The algorithm sets which forward passes and models a step needs.
enum class RlAlgorithm : std::uint8_t {
  grpo,  // log-probabilities of the old policy and of a reference; no critic
  ppo,   // as grpo, plus a critic of the size of the policy: its values and its training
  dapo,  // no reference; generates more than it trains on (dynamic sampling)
};
[[nodiscard]] std::string_view to_string(RlAlgorithm algorithm);

// Settings in the words of the command line; the reader of the request validates them. Empty fields take the value of a
// framework config (rl_config.h), else the default after the colon.
struct RlSettings {
  std::string algorithm{};                    // grpo, ppo, dapo: grpo
  std::optional<std::int64_t> prompts{};      // per step; required
  std::optional<std::int64_t> generations{};  // answers per prompt: 1
  // Prompt plus answer: "mean=3251,max=4096", or a CSV file (rollout/lengths.h); required.
  std::string lengths{};
  // Mean tokens of a prompt: 256, at most half of the mean length.
  std::optional<std::int64_t> prompt_tokens{};
  std::optional<double> oversampling{};  // sequences generated per trained sequence: dapo 3, others 1
  std::string policy{};                  // "on", or "off:N" with generation weights up to N steps old: on
  std::optional<std::int64_t> generation_gpus{};                           // off-policy: searched
  std::optional<std::int64_t> generation_tensor{}, generation_pipeline{};  // searched
  std::string generation_dtype{};  // weights during generation, bf16 or fp8: bf16
  // Share of the GPU memory for an engine: 0.6, off-policy 0.9.
  std::optional<double> generation_memory_share{};
  std::string reward_model{};  // preset or config.json of a reward model: a function without GPU time
  // Number of splits in RlForecast::alternatives; 0: only the best one under the other policy.
  std::size_t options = 0;
};

// Constants of the model besides the prices of kernels and transfers, each fitted to published steps (docs/constants.md).
struct RlConstants {
  double decode_factor = 1.25;    // time of a decoding iteration over the sum of its kernels and transfers
  double layer_us = 8.0;          // additional time per layer of an iteration
  double training_factor = 1.48;  // time of training and log-probabilities over their forecast
  double colocated_s = 26;        // on-policy: switch between training and generation, both ways
  double handover_s = 9.7;        // off-policy: between two steps
  // Transfer of the weights, per 1e11 parameters; twice on-policy, where trainer state is also moved out and back.
  double transfer_s_per_100B = 5.0;
};

// The parts of a step, in seconds. Parts in the same pool run one after the other.
struct RlParts {
  double prefill_s = 0, decode_s = 0;
  double tail_s = 0;  // decoding while less than a tenth of the answers are still running
  double log_probabilities_s = 0, reward_s = 0, train_s = 0;
  double transfer_s = 0;  // weights, and the switch between engines
  double idle_s = 0;      // waiting time of the faster pool
  double idle_gpus = 0;   // GPUs of the waiting pool
  [[nodiscard]] double generate_s() const { return prefill_s + decode_s + tail_s; }
  [[nodiscard]] double learn_s() const { return log_probabilities_s + reward_s + train_s; }
};

// Memory of the GPU with the most memory in use, in GiB.
struct RlMemory {
  double generation_weights_GiB = 0, kv_cache_GiB = 0;  // the second: of the concurrent sequences
  // Memory for keys and values on a GPU of an engine.
  double kv_cache_room_GiB = 0;
  double training_weights_GiB = 0, gradients_GiB = 0, optimizer_GiB = 0, activations_GiB = 0;
  double training_peak_GiB = 0, available_GiB = 0;
  bool training_fits = true;
};

// A division of the step over its GPUs.
struct RlSplit {
  bool on_policy = true;
  std::int64_t generation_gpus = 0, training_gpus = 0;  // on-policy: the same GPUs
  std::int64_t generation_tensor = 1, generation_pipeline = 1;
  std::int64_t sequences_at_once = 0;  // per engine
  double step_s = 0;
  std::string training_layout{};  // "tp2 cp1 pp8 ep16 dp4, zero1"
  bool training_fits = true;
};

// The forecast of one step, with the question it answers.
struct RlForecast {
  std::string model, platform;
  RlAlgorithm algorithm = RlAlgorithm::grpo;
  std::int64_t n_gpus = 0, prompts = 0, generations = 0;
  std::int64_t off_policy_steps = 0;  // age of the generation weights in steps; 0: on-policy
  double generated_sequences = 0, trained_sequences = 0;
  double mean_tokens = 0, max_tokens = 0;
  double step_s = 0, p10_s = 0, p90_s = 0;
  double tokens_per_s_per_gpu = 0;  // generated, including prompts
  RlParts parts;
  RlMemory memory;
  RlSplit split;
  // The best split under the other policy with equal GPUs; or, if requested, the fastest splits of all, each with the fastest
  // engine for its number of generation GPUs.
  std::vector<RlSplit> alternatives;
  std::vector<std::string> notes;
};

}  // namespace stepcast
