#include "stepcast/analyze/baseline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stepcast {

namespace {

// The durations of the tasks of a block, summed by its lanes. Tasks with a recorded_offset edge are left out:
// they were launched before the window.
std::vector<double> counted_us(const Block& block, std::span<const double> durations) {
  std::vector<double> lanes_us(block.lanes().size(), 0.0);
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    const auto edges =
        block.edge_infos().subspan(block.first_edge()[t], block.first_edge()[t + 1] - block.first_edge()[t]);
    const bool left_over = std::any_of(edges.begin(), edges.end(), [](const EdgeInfo& edge) {
      return edge.origin == EdgeOrigin::recorded_offset;
    });
    if (!left_over) lanes_us[block.lane_codes()[t]] += durations[t];
  }
  return lanes_us;
}

}  // namespace

std::vector<double> stream_times_us(const Program& program, const Costs& costs, RankClassId c,
                                    InstanceRange instances) {
  const RankClass& rank_class = program.rank_class(c);
  std::vector<double> sum_us(rank_class.lanes.size(), 0.0);
  // Sums by block, computed on first use: many instances share a block.
  std::vector<std::vector<double>> counted(program.blocks().size());
  for (std::size_t i = instances.begin; i < instances.end; ++i) {
    const BlockInstance& instance = rank_class.instances[i];
    std::vector<double>& lanes_us = counted[instance.block.index()];
    if (lanes_us.empty())
      lanes_us = counted_us(program.block(instance.block), costs.duration_us(instance.block));
    for (std::size_t lane = 0; lane < lanes_us.size(); ++lane)
      sum_us[instance.lanes.empty() ? lane : instance.lanes[lane]] += lanes_us[lane];
  }
  for (std::size_t lane = 0; lane < sum_us.size(); ++lane)
    if (rank_class.lanes[lane].kind != LaneKind::gpu_stream) sum_us[lane] = 0;
  return sum_us;
}

StreamBaseline stream_baseline(const Program& program, const Costs& costs, RankClassId c) {
  const std::vector<double> sum_us =
      stream_times_us(program, costs, c, {0, program.rank_class(c).instances.size()});
  StreamBaseline baseline{.time_us = 0, .rank_class = c, .lane = 0};
  for (std::size_t lane = 0; lane < sum_us.size(); ++lane) {
    if (sum_us[lane] <= baseline.time_us) continue;
    baseline.time_us = sum_us[lane];
    baseline.lane = static_cast<std::uint16_t>(lane);
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
