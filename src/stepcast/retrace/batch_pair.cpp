#include "stepcast/retrace/batch_pair.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/predict/replay.h"
#include "stepcast/retrace/detail/recorded_tasks.h"

namespace stepcast {
namespace {

// Least time of a kernel as a share of its shorter recorded time: outside the recorded batches the straight line could fall
// to zero. Assumed.
constexpr double kLeastShare = 0.25;

// GPU tasks of the step by recorded stream number, in stream order.
std::map<std::int64_t, std::vector<std::uint32_t>> by_stream(const Block& block) {
  const std::vector<bool> left_over = left_over_tasks(block);
  std::map<std::int64_t, std::vector<std::uint32_t>> streams;
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    const Lane& lane = block.lanes()[block.lane_codes()[t]];
    if (lane.kind == LaneKind::gpu_stream && !left_over[t]) streams[lane.recorded].push_back(t);
  }
  return streams;
}

// Error for recordings with different GPU work on rank class `c`.
Error unlike(const BatchPair& pair, std::size_t c, std::string what) {
  return Error{fmt::format("the recordings of batch {} and {} differ: rank {} {}", pair.first_batch,
                           pair.second_batch, pair.first->facts[c].rank, std::move(what))}
      .advice("record the same steps of the same program, and change only the batch");
}

}  // namespace

const RecordedProgram& BatchPair::nearer(std::int64_t batch) const {
  const auto distance = [&](std::int64_t recorded) { return std::abs(recorded - batch); };
  return distance(second_batch) < distance(first_batch) ? *second : *first;
}

Result<Costs> between_batches(const BatchPair& pair, std::int64_t batch) {
  if (pair.first_batch == pair.second_batch) {
    return Error{"both recordings have the same batch"}
        .found(fmt::format("{}", pair.first_batch))
        .expected("two batches, as --recorded-batch 32,64");
  }
  if (pair.first->facts.size() != pair.second->facts.size()) {
    return Error{"the recordings of two batches have different ranks"}.found(
        fmt::format("{} and {}", pair.first->facts.size(), pair.second->facts.size()));
  }
  const RecordedProgram& structure = pair.nearer(batch);
  const bool first = &structure == pair.first;
  Costs costs{structure.program};
  // Position on the line: 0 at the first batch, 1 at the second.
  const double way = static_cast<double>(batch - pair.first_batch) /
                     static_cast<double>(pair.second_batch - pair.first_batch);
  for (std::size_t c = 0; c < structure.facts.size(); ++c) {
    const Block& a = pair.first->program.block(detail::block_id(*pair.first, c));
    const Block& b = pair.second->program.block(detail::block_id(*pair.second, c));
    const auto streams_a = by_stream(a), streams_b = by_stream(b);
    for (const auto& [stream, tasks_a] : streams_a) {
      const auto of_b = streams_b.find(stream);
      const std::size_t n_b = of_b == streams_b.end() ? 0 : of_b->second.size();
      if (tasks_a.size() != n_b)
        return unlike(pair, c,
                      fmt::format("runs {} and {} GPU tasks on stream {}", tasks_a.size(), n_b, stream));
      for (std::size_t i = 0; i < n_b; ++i) {
        const std::uint32_t ta = tasks_a[i], tb = of_b->second[i];
        if (a.tasks()[ta].kind != b.tasks()[tb].kind ||
            a.tasks()[ta].kernel_class != b.tasks()[tb].kernel_class) {
          return unlike(pair, c,
                        fmt::format("runs {} and {} at place {} of stream {}",
                                    pair.first->program.names.text(a.tasks()[ta].name),
                                    pair.second->program.names.text(b.tasks()[tb].name), i, stream));
        }
        const double us_a = a.duration_us()[ta], us_b = b.duration_us()[tb];
        // Extrapolation below both recordings must not reach zero.
        const double least = kLeastShare * std::min(us_a, us_b);
        costs.duration_us(detail::block_id(structure, c))[first ? ta : tb] =
            std::max(us_a + (us_b - us_a) * way, least);
      }
    }
  }
  costs.rescale_shared_delays(structure.program);
  return costs;
}

std::string batch_pair_note(std::int64_t wanted, std::int64_t first, std::int64_t second) {
  return fmt::format("batch {} per rank from recordings of {} and {}: GPU times are interpolated linearly",
                     wanted, first, second);
}

}  // namespace stepcast
