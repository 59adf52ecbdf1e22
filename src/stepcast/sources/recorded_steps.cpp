#include "stepcast/sources/recorded_steps.h"

#include <cstddef>
#include <map>

namespace stepcast {

std::set<std::int64_t> steps_of(const RecordedRank& rank) {
  std::set<std::int64_t> steps;
  for (const CpuOp& op : rank.cpu_ops) {
    if (op.kind != CpuOp::Kind::step) continue;
    if (const auto number = profiler_step_number(rank.names.text(op.name))) steps.insert(*number);
  }
  return steps;
}

std::set<std::int64_t> common_steps(const TraceSet& set) {
  std::map<std::int64_t, std::size_t> seen;
  for (const RecordedRank& rank : set.ranks)
    for (const std::int64_t step : steps_of(rank)) ++seen[step];
  std::set<std::int64_t> common;
  for (const auto& [step, n] : seen)
    if (n == set.ranks.size()) common.insert(step);
  return common;
}

}  // namespace stepcast
