// Constants of a machine, learned from a set of traces: launch delay, stream gap, event delay, return delay,
// base cost of waiting calls.
//
// They come only from operations that the rebuilt edges show not to have waited for anything else, and never
// from a step time: a plain median would leak waiting into the constant. A class without such an operation
// borrows from its kin (the same call and direction, then the same call, then any), but never more than its
// own smallest value.
#pragma once

#include <map>
#include <vector>

#include "stepcast/rebuild/detail/cpu_lanes.h"
#include "stepcast/rebuild/detail/rank_graph.h"

namespace stepcast::detail {

class Constants {
 public:
  // What was learned for this class; 0: nothing.
  [[nodiscard]] double value_us(const DelayClass& delay) const {
    const auto it = value_us_.find(delay);
    return it == value_us_.end() ? 0 : it->second;
  }
  // In the order in which they were learned.
  [[nodiscard]] const std::vector<LearnedConstant>& table() const { return table_; }

  // `names`: those that Call::name refers to.
  static Constants learn(const std::vector<RankGraph>& ranks, const std::vector<CpuLanes>& lanes,
                         const StringTable& names);

 private:
  friend class ConstantsLearner;
  std::map<DelayClass, double> value_us_;
  std::vector<LearnedConstant> table_;
};

// `kind` is launch or inside_launch.
[[nodiscard]] DelayClass launch_class(DelayKind kind, const RankGraph& g, const GpuWork& w);
[[nodiscard]] DelayClass gap_class(const GpuWork& previous, const GpuWork& next);
[[nodiscard]] DelayClass event_class(const GpuWork& from, const GpuWork& to);
// Of a gap on a stream until a launch that the file does not show.
[[nodiscard]] DelayClass lost_launch_class();
[[nodiscard]] DelayClass return_class(WaitKind kind);
[[nodiscard]] DelayClass base_class(WaitKind kind);

// True when the work starts before its launching call returns, or its call waits for it: its launch edge
// leaves the call's start.
[[nodiscard]] bool starts_inside_call(const RankGraph& g, const GpuWork& w);
// True when all that the work could have waited for (stream and event) had ended before its launch began, or, for
// work that begins inside its call, long before it began.
[[nodiscard]] bool launched_clean(const RankGraph& g, std::size_t work,
                                  const std::vector<std::vector<std::int32_t>>& sources);
// [work] -> edges into it (indices into graph.gpu_edges).
[[nodiscard]] std::vector<std::vector<std::int32_t>> edges_into(const RankGraph& g);

}  // namespace stepcast::detail
