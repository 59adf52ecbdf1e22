// Variants of a recorded Program for comparison with the replay.
#include "stepcast/rebuild/recorded_variants.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace stepcast {
namespace {

// Origins of edges from GPU work to other lanes.
constexpr EdgeOrigin kWaitsForGpuWork[] = {EdgeOrigin::event, EdgeOrigin::tensor, EdgeOrigin::device_busy,
                                           EdgeOrigin::synchronization};

bool waits_for_gpu_work(EdgeOrigin origin) {
  return std::find(std::begin(kWaitsForGpuWork), std::end(kWaitsForGpuWork), origin) !=
         std::end(kWaitsForGpuWork);
}

// A copy of the block without waits for GPU work. Collectives become kernels with their measured length. Task
// numbers stay the same, because tasks are added in topological order, which is still valid with fewer edges.
Result<Block> thinned(const Block& block, const std::vector<Interval>& measured) {
  BlockBuilder builder(block.name(), block.role());
  for (const Lane& lane : block.lanes()) builder.add_lane(lane);
  for (const std::string& port : block.in_ports()) builder.add_in_port(port);
  const std::uint32_t n = block.task_count();
  for (std::uint32_t t = 0; t < n; ++t) {
    TaskInfo info = block.tasks()[t];
    double duration_us = block.duration_us()[t];
    if (info.kind == TaskKind::collective) {
      info.kind = TaskKind::kernel;
      duration_us = std::max(0.0, measured[t].length_us());
    }
    builder.add_task(block.lane_of(TaskId{t}), info, Microseconds{duration_us});
  }
  for (std::uint32_t t = 0; t < n; ++t) {
    for (std::uint32_t e = block.first_edge()[t]; e < block.first_edge()[t + 1]; ++e) {
      const EdgeInfo& info = block.edge_infos()[e];
      if (waits_for_gpu_work(info.origin)) continue;
      const std::uint32_t code = block.sources()[e];
      const Moment from = code < 2 * n ? Moment{code} : BlockBuilder::arrival_at(InPortId{code - 2 * n});
      builder.add_edge(from, TaskId{t}, Microseconds{block.delay_us()[e]}, info);
    }
  }
  return std::move(builder).finish();
}

// Calls `visit` for every edge that is a hand-off between CPU threads.
template <class Visit>
void for_each_handoff(const Program& program, const DelayTable& delays, const Visit& visit) {
  for (std::size_t b = 0; b < program.blocks().size(); ++b) {
    const Block& block = program.blocks()[b];
    for (std::uint32_t e = 0; e < block.edge_count(); ++e) {
      const DelayId delay = block.edge_infos()[e].delay;
      if (delay.valid() && is_handoff(delays.of(delay).kind)) visit(BlockId{b}, e, delay);
    }
  }
}

}  // namespace

SmallestHandoffs::SmallestHandoffs(const RecordedProgram& recorded) : delays_(recorded.delays) {
  for_each_handoff(recorded.program, delays_, [&](BlockId b, std::uint32_t e, DelayId delay) {
    const double own_us = recorded.program.block(b).delay_us()[e];
    const auto [it, fresh] = smallest_us_.emplace(delay, own_us);
    it->second = std::min(it->second, own_us);
  });
}

Costs SmallestHandoffs::costs(const Program& program) const {
  Costs costs{program};
  for_each_handoff(program, delays_, [&](BlockId b, std::uint32_t e, DelayId delay) {
    costs.delay_us(b)[e] = smallest_us_.at(delay);
  });
  return costs;
}

Result<RecordedProgram> without_gpu_dependencies(const RecordedProgram& recorded, RankClassId c) {
  RecordedProgram out{.start_offset_us = {recorded.start_offset_us[c.index()]},
                      .measured = {recorded.measured[c.index()]},
                      .facts = {recorded.facts[c.index()]}};
  RankClass rank_class = recorded.program.rank_class(c);
  for (BlockInstance& instance : rank_class.instances) {
    STEPCAST_ASSIGN(Block block, thinned(recorded.program.block(instance.block), out.measured.front()));
    instance.block = out.program.add_block(std::move(block));
  }
  out.program.add_rank_class(std::move(rank_class));
  for (const EdgeOrigin origin : kWaitsForGpuWork) {
    const auto o = static_cast<std::size_t>(origin);
    out.facts.front().edge_count[o] = out.facts.front().inferred_edge_count[o] = 0;
    out.facts.front().kept_delay_us[o] = 0;
  }
  return out;
}

}  // namespace stepcast
