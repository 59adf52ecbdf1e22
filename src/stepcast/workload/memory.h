// The memory of one GPU per pipeline stage: persistent tensors, the peak, and whether it fits.
//
//   STEPCAST_ASSIGN(const MemoryForecast memory, memory_forecast(step.work, model, layout, gpu_memory));
//   memory.stages[0].total()        Bytes at the peak
//   memory.verdict                  `fits`, `tight` or `does_not_fit`
//
// Activations follow the published count for transformer layers (Korthikanti et al. 2022), written per tensor
// so that other kinds of attention, gates and experts are counted the same way.
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

// Memory of one GPU of a stage, by use.
struct StageMemory {
  Bytes weights;        // in the compute type, and fp32 copies
  Bytes gradients;      // as stored between micro-batches
  Bytes optimizer;      // moments
  Bytes activations;    // kept for backward passes in progress
  Bytes dispatched;     // part of the activations that belongs to dispatched tokens at experts
  Bytes working;        // of one layer or the head while it runs: logits, gathered weights, recomputed layer
  Bytes communication;  // buffers of the collective library
  Bytes context;        // device context: kernels, handles of libraries
  Bytes reserve;        // fragmentation: memory that the allocator cannot reuse
  double micro_batches_held = 0;  // micro-batches (per chunk) with activations in memory at once
  [[nodiscard]] Bytes total() const { return in_allocator() + communication + context; }
  // The highest values that PyTorch reports as allocated and as reserved.
  [[nodiscard]] Bytes allocated() const { return weights + gradients + optimizer + activations + working; }
  [[nodiscard]] Bytes in_allocator() const { return allocated() + reserve; }
  friend bool operator==(const StageMemory&, const StageMemory&) = default;
};

// `tight`: above 92 % of the available memory, so a run may fail in a transient peak.
enum class MemoryVerdict : std::uint8_t { fits, tight, does_not_fit };
[[nodiscard]] std::string_view to_string(MemoryVerdict verdict);

// Memory of experts that drop no tokens: only the number of tokens limits the load of a rank.
struct DroplessMemory {
  // Visits over the mean if one rank got all tokens of an expert-parallel group.
  double worst_imbalance = 1;
  std::vector<Bytes> totals;     // [stage] in that case
  double fits_to_imbalance = 0;  // the largest imbalance with which every stage fits; 0: none
};

// Memory of all stages, and the verdict for the worst one.
struct MemoryForecast {
  std::vector<StageMemory> stages;
  std::optional<DroplessMemory> dropless;  // for models with experts spread over ranks and no capacity limit
  std::uint32_t worst_stage = 0;           // the stage with the highest total
  Bytes available;                         // on the device
  MemoryVerdict verdict = MemoryVerdict::fits;
  [[nodiscard]] Bytes peak() const { return stages[worst_stage].total(); }
  // Free memory of the worst stage; negative: missing memory.
  [[nodiscard]] Bytes margin() const { return available - peak(); }
  // The verdict for a stage with this total.
  [[nodiscard]] MemoryVerdict verdict_of(Bytes total) const;
};

// `work` must be step_work(model, layout). Errors: those of check(PipelineShape).
[[nodiscard]] Result<MemoryForecast> memory_forecast(const StepWork& work, const Transformer& model,
                                                     const Layout& layout, Bytes available);
// Activations that a chunk of a stage keeps for one micro-batch, in bytes, independent of the sharding of
// weights and states.
struct ChunkActivations {
  double bytes = 0, dispatched = 0, one_layer = 0;  // one_layer: the largest layer without recomputation
  double offloaded = 0, offloaded_layer = 0;        // by modules: sum over layers, and the largest layer
  bool as_before = false;                           // equal to the previous chunk
};
// Counts into `kept`, [chunk], reusing its memory.
[[nodiscard]] Status count_activations(const StepWork& work, const Transformer& model, const Layout& layout,
                                       std::vector<ChunkActivations>& kept);
// memory_forecast() without DroplessMemory, for searches. `kept` may come from a layout that differs only in
// sharding.
[[nodiscard]] MemoryForecast even_memory_forecast(const StepWork& work, const Transformer& model,
                                                  const Layout& layout, Bytes available,
                                                  std::span<const ChunkActivations> kept);
// Computes the step work itself. Errors: those of check(layout, model).
[[nodiscard]] Result<MemoryForecast> memory_forecast(const Transformer& model, const Layout& layout,
                                                     Bytes available);

// Activations that one layer keeps on one rank for one micro-batch, without recomputation. For a GPT layer
// with unfused attention, tensor parallelism t and sequence parallelism: s b h / t (34 + 5 a s / h) bytes.
[[nodiscard]] Bytes layer_activations(const Transformer& model, const Layout& layout, std::int64_t layer);

}  // namespace stepcast
