// Constants of a machine, learned from a set of traces: launch delay, stream gap, event delay, return delay,
// base cost of waiting calls.
//
// They come only from operations that the rebuilt edges show not to have waited for anything else, and never
// from a step time: a plain median would leak waiting into the constant. A class without such an operation
// borrows from its kin (the same call and direction, then the same call, then any), but never more than its
// own smallest value.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "stepcast/trace/detail/cpu_lanes.h"
#include "stepcast/trace/detail/rank_graph.h"

namespace stepcast::detail {

class Constants {
 public:
  // From the launching call's end (or, for work that starts inside its call, from its start) to the start of
  // the work.
  [[nodiscard]] double launch_delay_us(const RankGraph& g, const GpuWork& w) const;
  [[nodiscard]] double inside_launch_delay_us(const RankGraph& g, const GpuWork& w) const;
  // Between neighbours on a stream when the second was waiting.
  [[nodiscard]] double stream_gap_us(const RankGraph& g, const GpuWork& previous, const GpuWork& next) const;
  // From the end of the awaited work to the start of work on the waiting stream.
  [[nodiscard]] double event_delay_us(const GpuWork& from, const GpuWork& to) const;
  // From the end of GPU work to the return of the call that waits for it.
  [[nodiscard]] double return_delay_us(WaitKind kind) const {
    return return_delay_[static_cast<std::size_t>(kind)];
  }
  // What a waiting call costs when there is nothing to wait for.
  [[nodiscard]] double base_us(WaitKind kind) const { return base_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] const std::vector<LearnedConstant>& table() const { return table_; }

  static Constants learn(const std::vector<RankGraph>& ranks, const std::vector<CpuLanes>& lanes);

 private:
  std::map<std::string, double> launch_end_, launch_start_;
  std::map<std::pair<int, int>, double> gap_;
  std::map<std::pair<bool, bool>, double> event_;
  std::array<double, kWaitKindCount> return_delay_{};
  std::array<double, kWaitKindCount> base_{};
  std::vector<LearnedConstant> table_;
};

// True when the work starts before its launching call returns, or its call waits for it: its launch edge
// leaves the call's start.
[[nodiscard]] bool starts_inside_call(const RankGraph& g, const GpuWork& w);
// True when all that the work could have waited for (stream and event) had ended before its launch began.
[[nodiscard]] bool launched_clean(const RankGraph& g, std::size_t work,
                                  const std::vector<std::vector<std::int32_t>>& sources);
// [work] -> edges into it (indices into graph.gpu_edges).
[[nodiscard]] std::vector<std::vector<std::int32_t>> edges_into(const RankGraph& g);

}  // namespace stepcast::detail
