#include "stepcast/sources/recorded_steps.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "stepcast/trace/trace_index.h"

namespace stepcast {
namespace {

// A step longer than this many times the median step is not ordinary. Source: in the steps of data/measured,
// a step in which the profiler stops takes 1.37 to 3.5 times the median, all other steps at most 1.08 times.
constexpr double kFarLonger = 1.3;

// A step that every rank recorded.
struct CommonStep {
  std::int64_t number = 0;
  std::int64_t ns = 0;  // duration on the rank where it took longest
};

// True if any rank marks the step as special, such as a start-up or checkpoint step (step_kind.h).
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
  // A step that was counted once per rank is common to all ranks.
  for (const RecordedRank& rank : set.ranks)
    for (const std::int64_t step : steps_of(rank)) ++seen[step];
  std::set<std::int64_t> common;
  for (const auto& [step, n] : seen)
    if (n == set.ranks.size()) common.insert(step);
  return common;
}

// Filters in two passes. Special steps go first, unless all steps are special. Then steps longer than
// kFarLonger times the median go.
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
  // With an even number of steps, the shorter of the two middle ones is the reference. Of two steps, the
  // longer one is the unusual one, and it must not pass because it is the median.
  const auto most = kFarLonger * static_cast<double>(lengths[(lengths.size() - 1) / 2]);
  std::vector<std::int64_t> ordinary;
  for (const CommonStep& step : steps)
    if (static_cast<double>(step.ns) <= most) ordinary.push_back(step.number);
  return ordinary;
}

}  // namespace stepcast
