// Occurrences of the five overheads T1..T5 (operation/overhead_type.h) in recorded traces, one by one.
//
// Two ways to cut a trace into them:
//   recorded_overheads()    keeps the sum: every microsecond that a CPU thread spends in the step without
//                           waiting is in one occurrence (trace/recorded_host.h)
//   published_overheads()   the rules of Lin et al. (TPDS 2024): lab/published_overheads.h
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/operation/overhead_type.h"
#include "stepcast/program/program.h"
#include "stepcast/trace/recorded_program.h"

namespace stepcast {

struct OverheadSample {
  double duration_us = 0;
  std::uint32_t profiler_events = 0;
};

struct OverheadSamples {
  // By overhead and operator: T1 the operator behind the gap, T4 the runtime call; names as overhead_name()
  // gives them.
  std::map<std::pair<OverheadType, std::string>, std::vector<OverheadSample>> of;
  // By operator: how often it made these launches, in this order.
  std::map<std::string, std::map<std::vector<std::string>, std::uint64_t>, std::less<>> launches;

  void add(OverheadType type, std::string_view op, OverheadSample sample);
  void add(const OverheadSamples& more);
  [[nodiscard]] double sum_us() const;
};

// Times outside of these are outliers: 1.5 interquartile ranges beyond the quartiles (Tukey's fences).
struct Fences {
  double low_us = 0, high_us = 0;
};
[[nodiscard]] Fences outlier_fences(const std::vector<double>& times_us);

// Of the rank classes `ranks`.
[[nodiscard]] OverheadSamples recorded_overheads(const RecordedProgram& recorded,
                                                 std::span<const RankClassId> ranks);
// Of all ranks.
[[nodiscard]] OverheadSamples recorded_overheads(const RecordedProgram& recorded);

}  // namespace stepcast
