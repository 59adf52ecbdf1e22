// A recorded job with data that the predict suite uses repeatedly: its rebuilt steps and their host times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/sources/recorded_steps.h"
#include "stepcast/sources/trace_set.h"

#include "calibrate/overhead_traces.h"

namespace stepcast {

struct RecordedJob {
  std::string name, folder, device;
  std::vector<RecordedProgram> steps;          // at least one
  OverheadSamples host;                        // of all steps
  std::vector<OverheadSamples> host_of_ranks;  // [rank class] of each rank, last step
  // Calls of the first rank in the whole file: operators with shapes, and their number.
  std::map<std::string, std::uint64_t> operators;
};

// Rebuilds the last steps of the set, or the whole traces if they mark no steps. Steps that cannot be rebuilt are left out.
// An error if none can.
[[nodiscard]] Result<RecordedJob> rebuild_job(const TraceSet& set, const std::string& name, unsigned threads);

[[nodiscard]] std::vector<RankClassId> all_classes(const RecordedProgram& recorded);
// True if the two call the same operators with the same shapes, except for a tenth of the calls.
[[nodiscard]] bool same_workload(const RecordedJob& a, const RecordedJob& b);
// The first step after warm-up. Steps before it differ by more than kSteadyWithin from the median of later steps, because
// the CPU runs ahead of an empty GPU or caches are cold.
inline constexpr double kSteadyWithin = 0.2;
[[nodiscard]] std::size_t first_steady_step(const RecordedJob& job);

// Time of the rank in calls of the data loader. It is an input, not a property of the host.
[[nodiscard]] double data_loader_us(const RecordedProgram& recorded, RankClassId c);
// Sets it to its recorded time multiplied by `factor`.
void scale_data_loader(const RecordedProgram& recorded, RankClassId c, Costs& costs, double factor);

// The trace sets of a folder of measured data, for suites that read all of them.

// `data` and all folders below it, ordered by name; for a file, only the file. An error if it does not exist or cannot be listed.
[[nodiscard]] Result<std::vector<std::filesystem::path>> folders_of(const std::filesystem::path& data);

// Name of `path` in reports: relative to `data`, without endings that only state the format.
[[nodiscard]] std::string relative_name(const std::filesystem::path& path, const std::filesystem::path& data);

}  // namespace stepcast
