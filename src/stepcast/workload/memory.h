// The memory of one GPU of every pipeline stage: what a layout keeps, what it holds at the worst moment, and
// whether that fits.
//
//   STEPCAST_ASSIGN(const MemoryForecast memory, memory_forecast(step.work, model, layout, gpu_memory));
//   memory.stages[0].total()        Bytes at the peak
//   memory.verdict                  fits, tight, does_not_fit
//
// Activations follow the published count for transformer layers (Korthikanti et al. 2022), written per tensor
// so that other attention, gates and experts are counted the same way.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/workload/layout.h"
#include "stepcast/workload/step_work.h"
#include "stepcast/workload/transformer.h"

namespace stepcast {

struct StageMemory {
  Bytes weights;  // in the type of the computation, and fp32 copies
  Bytes gradients;
  Bytes optimizer;      // moments
  Bytes activations;    // kept for the backward passes under way
  Bytes dispatched;     // of these, of tokens at their experts
  Bytes working;        // of one layer or the head while it runs: logits, gathered weights, recomputed layer
  Bytes communication;  // buffers of the collective library
  Bytes context;        // of the device: kernels, handles of libraries
  Bytes reserve;        // what the allocator cannot hand out again
  double micro_batches_held = 0;  // activations of so many micro-batches and chunks at once
  [[nodiscard]] Bytes total() const { return in_allocator() + communication + context; }
  // What PyTorch reports as allocated, and as reserved, at their highest.
  [[nodiscard]] Bytes allocated() const { return weights + gradients + optimizer + activations + working; }
  [[nodiscard]] Bytes in_allocator() const { return allocated() + reserve; }
  friend bool operator==(const StageMemory&, const StageMemory&) = default;
};

enum class MemoryVerdict : std::uint8_t { fits, tight, does_not_fit };
[[nodiscard]] std::string_view to_string(MemoryVerdict verdict);

// Experts that drop no token: nothing bounds what the tokens of a layer take on one rank but their number.
struct DroplessMemory {
  // Visits over the mean, if all tokens of an expert-parallel group went to one rank.
  double worst_imbalance = 1;
  std::vector<Bytes> totals;     // [stage] then
  double fits_to_imbalance = 0;  // the largest with which every stage fits; 0: none
};

struct MemoryForecast {
  std::vector<StageMemory> stages;
  std::optional<DroplessMemory> dropless;  // of a model whose experts are spread over ranks and drop nothing
  std::uint32_t worst_stage = 0;
  Bytes available;  // of the device
  MemoryVerdict verdict = MemoryVerdict::fits;
  [[nodiscard]] Bytes peak() const { return stages[worst_stage].total(); }
  // Negative: so much too little.
  [[nodiscard]] Bytes margin() const { return available - peak(); }
  // Of a stage that takes so much.
  [[nodiscard]] MemoryVerdict verdict_of(Bytes total) const;
};

// `work` is step_work(model, layout).
[[nodiscard]] Result<MemoryForecast> memory_forecast(const StepWork& work, const Transformer& model,
                                                     const Layout& layout, Bytes available);
// What a chunk of a stage keeps of one micro-batch, in bytes, however weights and states are sharded.
struct ChunkActivations {
  double bytes = 0, dispatched = 0, one_layer = 0;
  double offloaded = 0, offloaded_layer = 0;  // by modules: of all layers, the largest
  bool as_before = false;                     // the chunk is that in front of it once more
};
// Into `kept`, whose memory is used again; [chunk].
[[nodiscard]] Status count_activations(const StepWork& work, const Transformer& model, const Layout& layout,
                                       std::vector<ChunkActivations>& kept);
// memory_forecast() without what more tokens on one rank than on others would take, for searches: `kept` may be of another
// sharding.
[[nodiscard]] MemoryForecast even_memory_forecast(const StepWork& work, const Transformer& model,
                                                  const Layout& layout, Bytes available,
                                                  std::span<const ChunkActivations> kept);
// Errors of check(layout, model).
[[nodiscard]] Result<MemoryForecast> memory_forecast(const Transformer& model, const Layout& layout,
                                                     Bytes available);

// Activations that one layer keeps on one rank for one micro-batch, without recomputation. For a GPT layer
// with unfused attention, tensor parallelism t and sequence parallelism: s b h / t (34 + 5 a s / h) bytes.
[[nodiscard]] Bytes layer_activations(const Transformer& model, const Layout& layout, std::int64_t layer);

}  // namespace stepcast
