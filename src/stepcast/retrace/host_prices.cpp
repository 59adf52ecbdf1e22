#include "stepcast/retrace/host_prices.h"

#include <span>
#include <string>
#include <string_view>

#include "stepcast/operation/overhead_name.h"
#include "stepcast/retrace/detail/recorded_tasks.h"

namespace stepcast {

AppliedHostTimes apply_host_overheads(const HostOverheads& overheads, const RecordedProgram& recorded,
                                      RankClassId rank_class, Costs& costs, const HostSpeed& speed) {
  AppliedHostTimes applied;
  const BlockId id = detail::block_id(recorded, rank_class);
  const Block& block = recorded.program.block(id);
  const std::span<double> durations = costs.duration_us(id);
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    const TaskInfo& task = block.tasks()[t];
    const HostWork* work = recorded.program.works.host(task.work);
    if (work == nullptr || work->activity != HostWork::Activity::overhead) continue;
    const std::string_view op = work->op.valid() ? recorded.program.names.text(work->op) : kStepEnd;
    const HostOverhead known = overheads.time(work->type, op);
    if (known.ground != OverheadTimeSource::own) ++applied.unknown_ops[std::string{overhead_name(op)}];
    if (known.ground == OverheadTimeSource::none) continue;
    const double us =
        known.mean_us * task.work_times * (is_in_data_loader(op) ? speed.data_loader : speed.of(work->type));
    (known.ground == OverheadTimeSource::own ? applied.own_us : applied.default_us) += us;
    durations[t] = us;
  }
  // Delays of hand-offs between threads: only learned means replace them, not those of other operators.
  const std::span<double> delays = costs.delay_us(id);
  for (std::uint32_t e = 0; e < block.edge_count(); ++e) {
    const EdgeInfo& edge = block.edge_infos()[e];
    if (!is_host_delay(recorded, edge)) continue;
    const HostOverhead known = overheads.time(OverheadType::t1, hand_off_name(recorded, edge));
    if (known.ground == OverheadTimeSource::own) delays[e] = known.mean_us * speed.in_ops;
  }
  return applied;
}

std::string hand_off_name(const RecordedProgram& recorded, const EdgeInfo& edge) {
  return hand_off_name(describe(recorded.delays.of(edge.delay), recorded.program.names));
}

bool is_host_delay(const RecordedProgram& recorded, const EdgeInfo& edge) {
  return edge.kept && edge.delay.valid() &&
         (edge.origin == EdgeOrigin::thread_handoff || edge.origin == EdgeOrigin::launch) &&
         edge.delay.index() < recorded.delays.size();
}

void scale_host_time(const RecordedProgram& recorded, RankClassId rank_class, Costs& costs, double factor) {
  const BlockId id = detail::block_id(recorded, rank_class);
  const Block& block = recorded.program.block(id);
  const std::span<double> durations = costs.duration_us(id), delays = costs.delay_us(id);
  for (std::uint32_t t = 0; t < block.task_count(); ++t)
    if (recorded.program.works.host(block.tasks()[t].work) != nullptr) durations[t] *= factor;
  for (std::uint32_t e = 0; e < block.edge_count(); ++e) {
    if (is_host_delay(recorded, block.edge_infos()[e])) delays[e] *= factor;
  }
}

}  // namespace stepcast
