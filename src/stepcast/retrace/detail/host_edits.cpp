#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/cost/host_overheads.h"
#include "stepcast/retrace/detail/edits.h"
#include "stepcast/retrace/detail/recorded_tasks.h"
#include "stepcast/retrace/host_prices.h"

namespace stepcast::detail {
namespace {

// Notes operators without learned overheads if their means of other operators exceed 1 % of the host time.
void name_unknown_ops(const AppliedHostTimes& applied, std::vector<std::string>& notes) {
  const double all = applied.own_us + applied.default_us;
  if (all <= 0 || applied.default_us < 0.01 * all) return;
  std::string names;
  std::size_t shown = 0;
  for (const auto& [op, n] : applied.unknown_ops) {
    if (shown++ == 3) break;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", op);
  }
  notes.push_back(fmt::format(
      "{:.0f} % of the host time comes from means of other operators: {} operators were not learned ({}{})",
      100 * applied.default_us / all, applied.unknown_ops.size(), names,
      applied.unknown_ops.size() > 3 ? ", ..." : ""));
}

// Replaces host times by the overheads of the platform, times the what-if factor.
Status take_overheads(const TracePredictionOptions& options, EditedStep& step) {
  STEPCAST_ASSIGN(const HostOverheads overheads, HostOverheads::of(*options.platform));
  if (overheads.empty()) {
    return Error{fmt::format("platform {} has no host overheads", options.platform->name)}.advice(
        "learn them with `stepcast calibrate overheads TRACES --platform ...`, or keep the recorded host "
        "time");
  }
  step.host_band = overheads.band();
  AppliedHostTimes all;
  for (std::size_t c = 0; c < step.recorded.facts.size(); ++c) {
    const AppliedHostTimes applied =
        apply_host_overheads(overheads, step.recorded, RankClassId{c}, step.prices.costs,
                             HostSpeed::all(options.assumptions.host_factor));
    all.own_us += applied.own_us;
    all.default_us += applied.default_us;
    for (const auto& [op, n] : applied.unknown_ops) all.unknown_ops[op] += n;
  }
  name_unknown_ops(all, step.notes);
  return Ok{};
}

// Moves all recorded times of a rank so that it starts at `start_us`.
void move_start(RecordedProgram& recorded, std::size_t c, double start_us) {
  const double moved = start_us - recorded.start_offset_us[c];
  recorded.start_offset_us[c] += moved;
  recorded.facts[c].step_us.start_us += moved;
  recorded.facts[c].step_us.end_us += moved;
  recorded.facts[c].gpu_window_end_us += moved;
  for (Interval& task : recorded.measured[c]) {
    task.start_us += moved;
    task.end_us += moved;
  }
}

}  // namespace

Status check_host(const TracePredictionOptions& options, const RecordedProgram& /*recorded*/) {
  if (options.host == HostTimeSource::recorded || options.platform != nullptr) return Ok{};
  return Error{"host overheads need a platform"}.advice(
      "name one that has them (--platform), or keep the recorded host time");
}

Status change_host_times(const TracePredictionOptions& options, EditedStep& step) {
  if (options.host == HostTimeSource::overheads) return take_overheads(options, step);
  for (std::size_t c = 0; c < step.recorded.facts.size(); ++c)
    scale_host_time(step.recorded, RankClassId{c}, step.prices.costs, options.assumptions.host_factor);
  return Ok{};
}

// The common start is that of the earliest rank.
Status start_together(const TracePredictionOptions& /*options*/, EditedStep& step) {
  RecordedProgram& recorded = step.recorded;
  const double first_us = *std::min_element(recorded.start_offset_us.begin(), recorded.start_offset_us.end());
  for (std::size_t c = 0; c < recorded.start_offset_us.size(); ++c) move_start(recorded, c, first_us);
  step.notes.emplace_back("all ranks start the step at the same time");
  return Ok{};
}

// Scales computation and host time of every rank to the median of all ranks, and moves their starts to the median start.
Status level_ranks(const TracePredictionOptions& /*options*/, EditedStep& step) {
  RecordedProgram& recorded = step.recorded;
  const std::size_t n = recorded.facts.size();
  const auto for_each_task = [&](std::size_t c, const auto& with) {
    const Block& block = recorded.program.block(block_id(recorded, c));
    const std::span<double> us = step.prices.costs.duration_us(block_id(recorded, c));
    for (std::uint32_t t = 0; t < block.task_count(); ++t) {
      const TaskInfo& task = block.tasks()[t];
      with(is_kernel_or_copy(task.kind), recorded.program.works.host(task.work) != nullptr, us[t]);
    }
  };
  std::vector<double> computation(n, 0), host(n, 0);
  for (std::size_t c = 0; c < n; ++c) {
    for_each_task(c, [&](bool computes, bool on_host, double us) {
      if (computes) computation[c] += us;
      if (on_host) host[c] += us;
    });
  }
  // All ranks get the median sums; each task keeps its share of its rank.
  const double all_computation = median(computation), all_host = median(host);
  const double start_us = median(recorded.start_offset_us);
  for (std::size_t c = 0; c < n; ++c) {
    for_each_task(c, [&](bool computes, bool on_host, double& us) {
      if (computes && computation[c] > 0) us *= all_computation / computation[c];
      if (on_host && host[c] > 0) us *= all_host / host[c];
    });
    move_start(recorded, c, start_us);
  }
  step.notes.emplace_back("every rank computes and launches as fast as the median rank, and starts with it");
  return Ok{};
}

}  // namespace stepcast::detail
