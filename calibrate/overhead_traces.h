// The overheads of the ordinary steps of traces, job by job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/overhead_type.h"
#include "stepcast/program/program.h"
#include "stepcast/rebuild/recorded_program.h"

namespace stepcast {

// Occurrences of the five overheads T1..T5 (operation/overhead_type.h) in recorded traces, one by one.
//
// Two ways to cut a trace into them:
//   recorded_overheads()    keeps the sum: every microsecond that a CPU thread spends in the step without
//                           waiting is in one occurrence (trace/recorded_program.h)
//   published_overheads()   the rules of Lin et al. (TPDS 2024): lab/published_overheads.h

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
  void multiply(double factor);
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

// The source of one job: the ranks in a folder, or a single file.
struct OverheadSource {
  std::string name;
  std::string device;  // of the first rank; empty: not in the file
  std::size_t ranks = 0;
  std::size_t steps = 0;  // ordinary_steps() of each rank; 1 where the whole file counts as a step
  double times = 1;       // host times as profiled were multiplied by this
};

struct TraceOverheads {
  std::vector<OverheadSamples> jobs;    // at least one that is not empty
  std::vector<OverheadSource> sources;  // [job]
  bool is_scaled = false;               // to measured steps: a folder of the collector is among them
  struct LeftOut {
    std::string what, why;
  };
  std::vector<LeftOut> left_out;  // files, and steps that could not be rebuilt
};

// Each of `places` is a folder with the traces of a job, or of several, or a file, or a folder of the collector. Of that
// host times are multiplied so that a step that the host decides takes what it was measured to take without a profiler;
// those of steps that the GPU decides by the median of that over all. Only ordinary_steps() count. Errors: a place that does
// not exist, or none that holds an overhead. `threads`: for reading; 0: one per hardware thread.
[[nodiscard]] Result<TraceOverheads> read_overheads(std::span<const std::filesystem::path> places,
                                                    unsigned threads = 0);

}  // namespace stepcast
