// The time and memory of generating on one engine: GPUs that hold one copy of the weights, split over tensors and stages.
//
//   STEPCAST_ASSIGN(Generation engine, Generation::create(model, {.tensor = 8}, worker.pricer()));
//   STEPCAST_ASSIGN(const double us, engine.iteration_us(64, 3000));     // 64 sequences, a token each
//   STEPCAST_ASSIGN(const GenerationTime time, engine.generate(load));
//
// An iteration is the forward pass of every layer for one token of each sequence, with the work lists and prices of a
// training step (workload/step_work.h, predict/step_prices.h), but for three things: attention reads the keys and values
// of the whole context; products of experts are those of the experts that the batch touches; and nothing waits for the
// host, as engines launch graphs.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/predict/step_prices.h"
#include "stepcast/rollout/lengths.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

struct EngineLayout {
  std::int64_t tensor = 1, pipeline = 1;
  DType dtype = DType::bf16;  // of weights; fp8 halves them
  [[nodiscard]] std::int64_t gpus() const { return tensor * pipeline; }
};

// What the engines of a step have to do.
struct GenerationLoad {
  double sequences = 0;      // of one engine
  double all_sequences = 0;  // of all: the longest of them is waited for
  double prompts = 0;        // of one engine; answers to one prompt share its keys and values
  double prompt_tokens = 0;  // of one prompt
  double at_once = 0;        // sequences of an engine that run together at most
  // Batches that an off-policy pool works on at the same time: others start as sequences end, and nothing waits for the
  // longest. 0: one batch, to its end.
  double batches_in_flight = 0;
  const Lengths* lengths = nullptr;
};

// Times of kernels and transfers; `..._layers` is how many layers ran, iterations times layers, for what each takes besides.
struct GenerationTime {
  double prefill_s = 0, decode_s = 0, tail_s = 0;
  double decode_layers = 0, tail_layers = 0;
};

// Experts of `n_experts` that at least one of `tokens` visits, if each visits `per_token` and all are equally likely.
[[nodiscard]] double touched_experts(double n_experts, double per_token, double tokens);

class Generation {
 public:
  // Errors: a model that is no decoder, degrees that do not divide it. `prices` must outlive the engine.
  [[nodiscard]] static Result<Generation> create(const Transformer& model, const EngineLayout& layout,
                                                 StepPricer& prices);

  // Of one GPU of the engine.
  [[nodiscard]] double weight_bytes() const { return weight_bytes_; }
  // Keys and values of a sequence of so many tokens.
  [[nodiscard]] double cache_bytes(double tokens) const;

  // All layers and stages, one token of each of `sequences`, which are `context` tokens long on average.
  [[nodiscard]] Result<double> iteration_us(double sequences, double context);
  // A whole step's sequences, from prompts to the last token of the longest.
  [[nodiscard]] Result<GenerationTime> generate(const GenerationLoad& load);

 private:
  struct CachedLayers {  // that keep equally much
    double bytes_per_token = 0, flops_per_token = 0, window = 0, count = 0;
  };
  Generation(const Transformer& model, const EngineLayout& layout, StepPricer& prices)
      : model_(model), layout_(layout), prices_(&prices) {}
  [[nodiscard]] Layout layout_of(std::int64_t sequences, std::int64_t tokens) const;
  void count_cache();
  // Without what attention reads; sequences of `tokens` tokens.
  [[nodiscard]] Result<double> forward_us(std::int64_t sequences, std::int64_t tokens);
  // The same of one token of each, between the powers of two that are priced.
  [[nodiscard]] Result<double> products_us(double sequences);
  [[nodiscard]] double attention_us(double sequences, double context);
  [[nodiscard]] Result<double> list_us(const WorkList& list, const Placement& placement, double tokens,
                                       bool decodes);

  Transformer model_;
  EngineLayout layout_;
  StepPricer* prices_;
  double weight_bytes_ = 0;
  std::vector<CachedLayers> cache_;
  std::map<std::int64_t, double> priced_;  // products_us by sequences
};

}  // namespace stepcast
