#include "stepcast/analyze/baseline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace stepcast {

namespace {

// Tasks whose recorded delays are all explained, in their order.
std::vector<std::uint32_t> counted_tasks(const Block& block) {
  std::vector<std::uint32_t> tasks;
  tasks.reserve(block.task_count());
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    const auto edges =
        block.edge_infos().subspan(block.first_edge()[t], block.first_edge()[t + 1] - block.first_edge()[t]);
    const bool left_over = std::any_of(edges.begin(), edges.end(), [](const EdgeInfo& edge) {
      return edge.origin == EdgeOrigin::recorded_offset;
    });
    if (!left_over) tasks.push_back(t);
  }
  return tasks;
}

}  // namespace

StreamBaseline stream_baseline(const Program& program, const Costs& costs, RankClassId c) {
  const RankClass& rank_class = program.rank_class(c);
  std::vector<double> sum_us(rank_class.lanes.size(), 0.0);
  std::map<BlockId, std::vector<std::uint32_t>> counted;  // many instances share a block
  for (const BlockInstance& instance : rank_class.instances) {
    const Block& block = program.block(instance.block);
    const std::span<const double> durations = costs.duration_us(instance.block);
    const auto [place, fresh] = counted.try_emplace(instance.block);
    if (fresh) place->second = counted_tasks(block);
    for (const std::uint32_t t : place->second) {
      const std::uint16_t block_lane = block.lane_codes()[t];
      const std::uint16_t lane = instance.lanes.empty() ? block_lane : instance.lanes[block_lane];
      sum_us[lane] += durations[t];
    }
  }
  StreamBaseline baseline{.time_us = 0, .rank_class = c, .lane = 0};
  for (std::size_t lane = 0; lane < sum_us.size(); ++lane) {
    if (rank_class.lanes[lane].kind == LaneKind::gpu_stream && sum_us[lane] > baseline.time_us) {
      baseline.time_us = sum_us[lane];
      baseline.lane = static_cast<std::uint16_t>(lane);
    }
  }
  return baseline;
}

StreamBaseline stream_baseline(const Program& program, const Costs& costs) {
  StreamBaseline largest;
  for (std::size_t c = 0; c < program.rank_classes().size(); ++c) {
    const StreamBaseline of_class = stream_baseline(program, costs, RankClassId{c});
    if (!largest.rank_class.valid() || of_class.time_us > largest.time_us) largest = of_class;
  }
  return largest;
}

}  // namespace stepcast
