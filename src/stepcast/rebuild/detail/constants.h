// Constants of a machine, learned from a set of traces: launch delays, stream gaps, event delays, return
// delays, and the base cost of waiting calls.
//
// They are learned only from operations that, by the rebuilt edges, waited for nothing else, and never from
// step times: a plain median would include waiting time. A class without such operations uses those of
// similar classes (same call and direction, then same call, then any), limited by its own smallest sample.
#pragma once

#include <map>
#include <vector>

#include "stepcast/rebuild/detail/cpu_lanes.h"
#include "stepcast/rebuild/detail/rank_graph.h"

namespace stepcast::detail {

// The learned values by class of delay.
class Constants {
 public:
  // The constant of a class in microseconds; 0 if none was learned.
  [[nodiscard]] double value_us(const DelayClass& delay) const {
    const auto it = value_us_.find(delay);
    return it == value_us_.end() ? 0 : it->second;
  }
  // All constants, in the order in which they were learned.
  [[nodiscard]] const std::vector<LearnedConstant>& table() const { return table_; }

  // Learns the constants of all ranks together. `names`: the string table to which Call::name refers.
  static Constants learn(const std::vector<RankGraph>& ranks, const std::vector<CpuLanes>& lanes,
                         const StringTable& names);

 private:
  friend class ConstantsLearner;
  std::map<DelayClass, double> value_us_;
  std::vector<LearnedConstant> table_;
};

// The class of a launch. `kind` is launch or inside_launch.
[[nodiscard]] DelayClass launch_class(DelayKind kind, const RankGraph& g, const GpuWork& w);
// The class of the gap between two neighbours on a stream.
[[nodiscard]] DelayClass gap_class(const GpuWork& previous, const GpuWork& next);
// The class of the delay from awaited work to work on the waiting stream.
[[nodiscard]] DelayClass event_class(const GpuWork& from, const GpuWork& to);
// The class of a gap before a launch that the file does not show.
[[nodiscard]] DelayClass lost_launch_class();
// The classes of waiting calls: return delay and base cost.
[[nodiscard]] DelayClass return_class(WaitKind kind);
[[nodiscard]] DelayClass base_class(WaitKind kind);

// True if the work starts before its launching call returns, or if the call waits for it. Its launch edge
// then starts at the start of the call.
[[nodiscard]] bool starts_inside_call(const RankGraph& g, const GpuWork& w);
// True if everything that the work could have waited for (stream and events) had ended before its launch
// began, or, for work that starts inside its call, long before the work started. `sources` is the result of
// edges_into().
[[nodiscard]] bool launched_clean(const RankGraph& g, std::size_t work,
                                  const std::vector<std::vector<std::int32_t>>& sources);
// [work] -> edges into it, as indices into graph.gpu_edges.
[[nodiscard]] std::vector<std::vector<std::int32_t>> edges_into(const RankGraph& g);

}  // namespace stepcast::detail
