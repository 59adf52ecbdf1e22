// Reads the overheads of the ordinary steps of traces, job by job.
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

// All occurrences of the five overheads T1..T5 (operation/overhead_type.h) in recorded traces.
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
  // By overhead and operator: for T1 the operator after the gap, for T4 the runtime call. Names as in overhead_name().
  std::map<std::pair<OverheadType, std::string>, std::vector<OverheadSample>> of;
  // By operator: number of times that it made this sequence of launches.
  std::map<std::string, std::map<std::vector<std::string>, std::uint64_t>, std::less<>> launches;

  void add(OverheadType type, std::string_view op, OverheadSample sample);
  void add(const OverheadSamples& more);
  void multiply(double factor);
  [[nodiscard]] double sum_us() const;
};

// Times outside of these fences are outliers: 1.5 interquartile ranges beyond the quartiles (Tukey's fences).
struct Fences {
  double low_us = 0, high_us = 0;
};
[[nodiscard]] Fences outlier_fences(const std::vector<double>& times_us);

// Overheads of the rank classes `ranks`.
[[nodiscard]] OverheadSamples recorded_overheads(const RecordedProgram& recorded,
                                                 std::span<const RankClassId> ranks);
// Overheads of all ranks.
[[nodiscard]] OverheadSamples recorded_overheads(const RecordedProgram& recorded);

// The source of one job: the ranks in a folder, or a single file.
struct OverheadSource {
  std::string name;
  std::string device;  // of the first rank; empty if the file does not name it
  std::size_t ranks = 0;
  std::size_t steps = 0;  // ordinary_steps() of each rank; 1 if the whole file counts as a step
  double times = 1;       // factor by which profiled host times were multiplied
};

struct TraceOverheads {
  std::vector<OverheadSamples> jobs;    // at least one is not empty
  std::vector<OverheadSource> sources;  // [job]
  bool is_scaled = false;               // to measured steps: one is a folder of the collector
  struct LeftOut {
    std::string what, why;
  };
  std::vector<LeftOut> left_out;  // files, and steps that could not be rebuilt
};

// Reads `places`. Each is a folder with traces of one or more jobs, a file, or a folder of the collector. Host times of a
// collector's host-bound step are scaled so that the step takes the time measured without a profiler; those of GPU-bound
// steps are scaled by the median factor of all. Only ordinary_steps() are read. Errors: a place that does not exist or has
// no overhead. `threads`: for reading; 0: one for each hardware thread.
[[nodiscard]] Result<TraceOverheads> read_overheads(std::span<const std::filesystem::path> places,
                                                    unsigned threads = 0);

}  // namespace stepcast
