#include "stepcast/analyze/body_profiles.h"

#include <algorithm>
#include <utility>

#include "stepcast/analyze/baseline.h"
#include "stepcast/analyze/breakdown.h"

namespace stepcast {
namespace {

// A time before the start of every body. As the start of the rank it ensures that no task of the body is
// bound by the rank's start: waiting at the start of a body is charged to what the body as a whole waited
// for.
constexpr double kBeforeBodyUs = -1;

// The critical path inside a body, from its start to the end of task `last`. The step before the body's start
// is removed.
CriticalPath path_of(const FlatProgram& flat, const TaskTimes& times, const Costs& costs, RankClassId body,
                     std::size_t last) {
  const std::vector<double> starts(flat.class_count(), kBeforeBodyUs);
  CriticalPathOptions options;
  options.to_rank = body;
  options.to_task = last;
  CriticalPath path = critical_path(flat, times, costs, starts, options);
  std::erase_if(path.steps, [](const PathStep& step) { return step.time.start_us < 0; });
  return path;
}

}  // namespace

void BodyProfile::add_computation(const Interval& at, std::vector<Interval>& busy) const {
  double start_us = at.start_us;
  for (const Piece& piece : pieces) {
    const double end_us = at.start_us + piece.end_us;
    if (piece.computes && !busy.empty() && busy.back().end_us == start_us)
      busy.back().end_us = end_us;
    else if (piece.computes)
      busy.push_back({start_us, end_us});
    start_us = end_us;
  }
}

BodyProfiles::BodyProfiles(const PricedBodies& bodies)
    : tasks_(&bodies.tasks), flat_(bodies.tasks.program()) {
  const TaskTimes times = TaskTimes::simulated(flat_, bodies.timeline);
  for (std::size_t b = 0; b < flat_.class_count(); ++b) {
    const RankClassId id{b};
    BodyProfile& body = profiles_.emplace_back();
    body.lanes.resize(flat_.program().rank_class(id).lanes.size());
    break_down_body(flat_, times, bodies.costs, id, {0, bodies.timeline.rank_end_us(id)}, kBeforeBodyUs,
                    body);
    // The whole body ends with the last task of the lane that computes. Its first task is on that lane.
    const std::size_t last = flat_.lane_tasks(id, flat_.lane(id, 0)).back();
    body.path = path_of(flat_, times, bodies.costs, id, last);
    if (flat_.info(id, last).kind == TaskKind::wait)
      body.ends_on = idle_cause_before(flat_, times, bodies.costs, id, last, kBeforeBodyUs);
    const std::vector<double> tasks_us = stream_times_us(flat_.program(), bodies.costs, id, {0, 1});
    const std::span<const Interval> of_body = times.of(id);
    for (std::size_t t = 0; t < of_body.size(); ++t) {
      BodyProfile::Lane& lane = body.lanes[flat_.lane(id, t)];
      ++lane.tasks;
      if (of_body[t].end_us <= 0) ++lane.at_start;
    }
    for (std::size_t lane = 0; lane < tasks_us.size(); ++lane) body.lanes[lane].tasks_us = tasks_us[lane];
  }
}

}  // namespace stepcast
