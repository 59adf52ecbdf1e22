#include "stepcast/trace/recorded_variants.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace stepcast {
namespace {

// Of edges from GPU work to other lanes.
constexpr EdgeOrigin kWaitsForGpuWork[] = {EdgeOrigin::event, EdgeOrigin::tensor, EdgeOrigin::device_busy,
                                           EdgeOrigin::synchronization};

bool waits_for_gpu_work(EdgeOrigin origin) {
  return std::find(std::begin(kWaitsForGpuWork), std::end(kWaitsForGpuWork), origin) !=
         std::end(kWaitsForGpuWork);
}

// Tasks keep their numbers: they are added in their topological order, which fewer edges do not break.
Result<Block> thinned(const Block& block, const std::vector<Interval>& measured) {
  BlockBuilder builder(block.name());
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

}  // namespace

Costs smallest_handoff_costs(const RecordedProgram& recorded) {
  const Program& program = recorded.program;
  const auto for_each_handoff = [&](auto visit) {
    for (std::size_t b = 0; b < program.blocks().size(); ++b) {
      const Block& block = program.blocks()[b];
      for (std::uint32_t e = 0; e < block.edge_count(); ++e) {
        const DelayId delay = block.edge_infos()[e].delay;
        if (delay.valid() && is_handoff(recorded.delays.of(delay).kind)) visit(BlockId{b}, e, delay);
      }
    }
  };
  std::map<DelayId, double> smallest;
  for_each_handoff([&](BlockId b, std::uint32_t e, DelayId delay) {
    const double own = program.block(b).delay_us()[e];
    const auto [it, fresh] = smallest.emplace(delay, own);
    it->second = std::min(it->second, own);
  });
  Costs costs{program};
  for_each_handoff(
      [&](BlockId b, std::uint32_t e, DelayId delay) { costs.delay_us(b)[e] = smallest.at(delay); });
  return costs;
}

Result<RecordedProgram> without_gpu_dependencies(const RecordedProgram& recorded) {
  RecordedProgram out{.start_offset_us = recorded.start_offset_us,
                      .measured = {},
                      .facts = recorded.facts,
                      .files = recorded.files,
                      .coverage = recorded.coverage,
                      .delays = recorded.delays,
                      .constants = recorded.constants};
  Program& program = out.program;
  program.names = recorded.program.names;
  program.stacks = recorded.program.stacks;
  program.works = recorded.program.works;
  for (const RankGroup& group : recorded.program.groups()) program.add_group(group);
  for (std::size_t c = 0; c < recorded.program.rank_classes().size(); ++c) {
    RankClass rank_class = recorded.program.rank_class(RankClassId{c});
    for (BlockInstance& instance : rank_class.instances) {
      STEPCAST_ASSIGN(Block block, thinned(recorded.program.block(instance.block), recorded.measured[c]));
      instance.block = program.add_block(std::move(block));
    }
    program.add_rank_class(std::move(rank_class));
    for (const EdgeOrigin origin : kWaitsForGpuWork) {
      const auto o = static_cast<std::size_t>(origin);
      out.facts[c].edge_count[o] = out.facts[c].inferred_edge_count[o] = 0;
      out.facts[c].kept_delay_us[o] = 0;
    }
  }
  return out;
}

}  // namespace stepcast
