#include "stepcast/analyze/recorded_memory.h"

#include <fmt/format.h>

#include "stepcast/base/units.h"
#include "stepcast/retrace/trace_memory.h"
#include "stepcast/workload/memory.h"

namespace stepcast {
namespace {

// What a CUDA context and the libraries take beside the tensors: assumed.
constexpr double kContextGiB = 1;

ForecastStageMemory memory_of(const TraceMemory& tensors, double batch_ratio) {
  ForecastStageMemory parts;
  parts.weights_GiB = tensors.persistent.value() / kGiB;
  parts.gradients_GiB = tensors.gradients.value() / kGiB;
  parts.activations_GiB = tensors.activations.value() * batch_ratio / kGiB;
  parts.reserve_GiB = kContextGiB;
  parts.total_GiB = tensors.at(batch_ratio).value() / kGiB + kContextGiB;
  return parts;
}

// Of the rank that takes most; nothing where no trace names tensors.
std::optional<ForecastStageMemory> largest(std::span<const std::optional<ExecutionTrace>> traces,
                                           double batch_ratio,
                                           const std::vector<std::vector<SequenceRange>>& recomputed) {
  std::optional<ForecastStageMemory> most;
  for (std::size_t r = 0; r < traces.size(); ++r) {
    if (!traces[r]) continue;
    const TraceMemory tensors =
        trace_memory(*traces[r], r < recomputed.size() ? recomputed[r] : std::vector<SequenceRange>{});
    if (tensors.at(1).value() <= 0) continue;
    const ForecastStageMemory parts = memory_of(tensors, batch_ratio);
    if (!most || parts.total_GiB > most->total_GiB) most = parts;
  }
  return most;
}

ForecastMemory memory_on(const Platform& machine, const ForecastStageMemory& parts) {
  ForecastMemory memory;
  memory.stages = {parts};
  memory.peak_memory_GiB = parts.total_GiB;
  memory.available_GiB = machine.device.memory_size.value() / kGiB;
  memory.margin_GiB = memory.available_GiB - memory.peak_memory_GiB;
  memory.verdict = to_string(memory.margin_GiB < 0                             ? MemoryVerdict::does_not_fit
                             : memory.margin_GiB < 0.05 * memory.available_GiB ? MemoryVerdict::tight
                                                                               : MemoryVerdict::fits);
  return memory;
}

}  // namespace

void add_recorded_memory(std::span<const std::optional<ExecutionTrace>> traces, const Platform* machine,
                         double batch_ratio, const std::vector<std::vector<SequenceRange>>& recomputed,
                         Forecast& forecast) {
  if (machine == nullptr) {
    forecast.notes.emplace_back("memory is not known: no platform has the GPU that recorded");
    return;
  }
  const std::optional<ForecastStageMemory> parts = largest(traces, batch_ratio, recomputed);
  if (!parts || machine->device.memory_size.value() <= 0) {
    forecast.notes.emplace_back("memory is not known: no execution trace names the tensors of the step");
    return;
  }
  forecast.memory = memory_on(*machine, *parts);
  forecast.notes.emplace_back(
      "memory is that of the tensors that the execution trace names, and 1 GiB besides: what kernels "
      "and the allocator take on top is not in it");
  if (recomputed.empty()) return;
  forecast.notes.push_back(fmt::format("activations take {:.2f} GiB with recomputation and {:.2f} without",
                                       parts->activations_GiB,
                                       largest(traces, batch_ratio, {})->activations_GiB));
}

}  // namespace stepcast
