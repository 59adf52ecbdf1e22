// Time and memory of generation on one engine: the GPUs that share one copy of the weights by tensor and pipeline parallelism.
//
//   STEPCAST_ASSIGN(Generation engine, Generation::create(model, {.tensor = 8}, worker.pricer()));
//   STEPCAST_ASSIGN(const double us, engine.iteration_us(64, 3000));     // one token for each of 64 sequences
//   STEPCAST_ASSIGN(const GenerationTime time, engine.generate(load));
//
// One iteration is the forward pass of all layers for one token per sequence. It uses the work lists and prices of a training
// step (workload/step_work.h, predict/step_prices.h), with three differences. Attention reads the keys and values of the whole
// context. Expert GEMMs run only for experts that the batch visits. Nothing waits for the host, because engines launch graphs.
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

// Parallelism and weight type of an engine.
struct EngineLayout {
  std::int64_t tensor = 1, pipeline = 1;
  DType dtype = DType::bf16;  // of weights; fp8 halves their bytes
  [[nodiscard]] std::int64_t gpus() const { return tensor * pipeline; }
};

// The generation work of one step.
struct GenerationLoad {
  double sequences = 0;      // per engine
  double all_sequences = 0;  // of all engines; the step waits for the longest of them
  double prompts = 0;        // per engine; answers to one prompt share its keys and values
  double prompt_tokens = 0;  // mean tokens of a prompt
  double at_once = 0;        // most concurrent sequences of an engine
  // Batches that an off-policy pool processes concurrently: new sequences start as others end, so nothing waits for the longest
  // one. 0: a single batch runs to its end.
  double batches_in_flight = 0;
  // Distribution of the total length of a sequence.
  const Lengths* lengths = nullptr;
};

// Times of kernels and transfers. `..._layers`: iterations x layers, to add a constant cost per layer.
struct GenerationTime {
  double prefill_s = 0, decode_s = 0, tail_s = 0;  // tail: only the longest answers still run
  double decode_layers = 0, tail_layers = 0;
};

// Expected number of the `n_experts` experts visited by at least one of `tokens`, if each token visits `per_token` of them with
// equal probability.
[[nodiscard]] double touched_experts(double n_experts, double per_token, double tokens);

// An engine. Caches the prices of its iterations; not thread-safe.
class Generation {
 public:
  // Errors: a model that is not a decoder, degrees that do not divide it. `prices` must outlive the engine.
  [[nodiscard]] static Result<Generation> create(const Transformer& model, const EngineLayout& layout,
                                                 StepPricer& prices);

  // Weights in bytes per GPU.
  [[nodiscard]] double weight_bytes() const { return weight_bytes_; }
  // Bytes of keys and values per GPU for a sequence of `tokens` tokens.
  [[nodiscard]] double cache_bytes(double tokens) const;

  // Time in us to generate one token for each of `sequences` with a mean length of `context` tokens, over all layers and stages.
  [[nodiscard]] Result<double> iteration_us(double sequences, double context);
  // Times of all sequences of a step, from the prompts to the last token of the longest answer.
  [[nodiscard]] Result<GenerationTime> generate(const GenerationLoad& load);

 private:
  // Layers with equal cache size per token.
  struct CachedLayers {
    double bytes_per_token = 0, flops_per_token = 0, window = 0, count = 0;
  };
  Generation(const Transformer& model, const EngineLayout& layout, StepPricer& prices)
      : model_(model), layout_(layout), prices_(&prices) {}
  // The layout of a forward pass on the engine.
  [[nodiscard]] Layout layout_of(std::int64_t sequences, std::int64_t tokens) const;
  // Fills cache_ from the model.
  void count_cache();
  // Forward pass of `sequences` sequences of `tokens` tokens. For single tokens it excludes attention over the context.
  [[nodiscard]] Result<double> forward_us(std::int64_t sequences, std::int64_t tokens);
  // The same for one token per sequence, interpolated between priced powers of two.
  [[nodiscard]] Result<double> products_us(double sequences);
  // Attention of one token per sequence over the context, in us.
  [[nodiscard]] double attention_us(double sequences, double context);
  // Time of a work list in us. `decodes`: one token per sequence.
  [[nodiscard]] Result<double> list_us(const WorkList& list, const Placement& placement, double tokens,
                                       bool decodes);

  Transformer model_;
  EngineLayout layout_;
  StepPricer* prices_;
  double weight_bytes_ = 0;
  std::vector<CachedLayers> cache_;
  std::map<std::int64_t, double> priced_;  // [sequences] results of products_us()
};

}  // namespace stepcast
