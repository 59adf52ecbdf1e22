#include "stepcast/api/detail/largest_batch.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "stepcast/base/units.h"
#include "stepcast/workload/memory.h"

namespace stepcast::detail {
namespace {

constexpr std::int64_t kMostSequences = 65'536;  // nobody trains on more at a time

std::string gib(Bytes bytes) { return fmt::format("{:.1f}", bytes.value() / kGiB); }

std::string parts_of(const MemoryForecast& memory) {
  const StageMemory& m = memory.stages[memory.worst_stage];
  return fmt::format(
      "weights {}, gradients {}, optimizer {}, activations {}, working {}, buffers and reserve {}",
      gib(m.weights), gib(m.gradients), gib(m.optimizer), gib(m.activations), gib(m.working),
      gib(m.communication + m.context + m.reserve));
}

}  // namespace

Status take_largest_batch(LargestBatch wanted, const JobSettings& said, Bytes memory, ResolvedJob& job) {
  if (wanted == LargestBatch::none) return Ok{};
  if (wanted == LargestBatch::global && said.micro_batch_sequences)
    return Error{"--gbs max with a micro-batch: memory does not bound how many micro-batches add up"}.advice(
        "leave out --mbs, or say --gbs as a number");
  const std::int64_t ranks = job.layout.degrees.data * std::max<std::int64_t>(1, job.layout.degrees.pipeline);
  // 0: as many as fit.
  const std::int64_t batch = wanted == LargestBatch::micro ? said.global_batch_sequences.value_or(0) : 0;
  const std::int64_t most = batch > 0 ? batch / job.layout.degrees.data : kMostSequences;
  const auto with = [&](std::int64_t sequences) {
    Layout layout = job.layout;
    layout.batch.micro_batch_sequences = sequences;
    layout.batch.global_batch_sequences = batch > 0 ? batch : sequences * ranks;
    return layout;
  };
  std::int64_t best = 0;
  std::optional<MemoryForecast> of_best;
  const auto said_of_next = [&](std::int64_t sequences, const MemoryForecast& next) {
    return fmt::format("{} take{} {} GiB on stage {}, {} too many ({})", sequences, sequences == 1 ? "s" : "",
                       gib(next.peak()), next.worst_stage, gib(Bytes{-next.margin().value()}),
                       parts_of(next));
  };
  std::string why =
      batch > 0 ? fmt::format("more do not divide {} sequences", batch) : "the most that is tried";
  for (std::int64_t sequences = 1; sequences <= most; ++sequences) {
    if (batch > 0 && batch % (sequences * job.layout.degrees.data) != 0) continue;
    const Result<MemoryForecast> found = memory_forecast(job.model, with(sequences), memory);
    if (!found) continue;  // a schedule that needs other numbers of micro-batches
    if (found->verdict == MemoryVerdict::does_not_fit) {
      why = said_of_next(sequences, *found);
      break;
    }
    best = sequences;
    of_best = *found;
  }
  if (best == 0)
    return Error{"no micro-batch fits"}.found(why).advice("more GPUs, sharding or recomputation");
  job.layout = with(best);
  job.notes.push_back(fmt::format("largest micro-batch that fits: {} ({} of {} GiB); {}", best,
                                  gib(of_best->peak()), gib(memory), why));
  return Ok{};
}

}  // namespace stepcast::detail
