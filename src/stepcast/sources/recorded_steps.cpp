#include "stepcast/sources/recorded_steps.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "stepcast/trace/trace_index.h"

namespace stepcast {
namespace {

// The steps of data/measured in which the profiler stops take 1.37 to 3.5 times the middle one, the others at most 1.08 times.
constexpr double kFarLonger = 1.3;

struct CommonStep {
  std::int64_t number = 0;
  std::int64_t ns = 0;  // of the longest rank
};

bool is_special(const TraceSet& set, std::int64_t step) {
  return std::ranges::any_of(set.ranks, [&](const RecordedRank& rank) {
    return std::ranges::find(rank.special_steps, step, &SpecialStep::number) != rank.special_steps.end();
  });
}

}  // namespace

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

std::vector<std::int64_t> ordinary_steps(const TraceSet& set) {
  std::map<std::int64_t, std::int64_t> longest_ns;
  for (const RecordedRank& rank : set.ranks)
    for (const detail::RecordedStep& step : detail::find_steps(rank))
      longest_ns[step.number] = std::max(longest_ns[step.number], (step.end - step.start).count());
  std::vector<CommonStep> steps;
  for (const std::int64_t step : common_steps(set))
    if (longest_ns.contains(step)) steps.push_back({step, longest_ns[step]});
  const auto special = [&](const CommonStep& step) { return is_special(set, step.number); };
  if (!std::ranges::all_of(steps, special)) std::erase_if(steps, special);
  if (steps.empty()) return {};
  std::vector<std::int64_t> lengths;
  for (const CommonStep& step : steps) lengths.push_back(step.ns);
  std::ranges::sort(lengths);
  // Of two in the middle the shorter: of two steps the longer one is the one that is out of the ordinary.
  const auto most = kFarLonger * static_cast<double>(lengths[(lengths.size() - 1) / 2]);
  std::vector<std::int64_t> ordinary;
  for (const CommonStep& step : steps)
    if (static_cast<double>(step.ns) <= most) ordinary.push_back(step.number);
  return ordinary;
}

}  // namespace stepcast
