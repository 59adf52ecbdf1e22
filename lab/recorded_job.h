// A recorded job with what the predict suite asks of it more than once: its rebuilt steps and their host times.
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
  OverheadSamples host;                        // of all steps together
  std::vector<OverheadSamples> host_of_ranks;  // of each rank alone, last step. [rank class]
  // Which operators the first rank calls in the whole file, with their shapes, and how often.
  std::map<std::string, std::uint64_t> operators;
};

// The last steps of the set, or the whole traces where they mark none; those that cannot be rebuilt are left out. An
// error: none can.
[[nodiscard]] Result<RecordedJob> rebuild_job(const TraceSet& set, const std::string& name, unsigned threads);

[[nodiscard]] std::vector<RankClassId> all_classes(const RecordedProgram& recorded);
// True if the two call the same operators with the same shapes, but for a tenth.
[[nodiscard]] bool same_workload(const RecordedJob& a, const RecordedJob& b);
// The first step of a job that is under way: those before it differ by more than kSteadyWithin from the median of
// the ones behind them. The CPU runs ahead of an empty GPU there, or caches are cold.
inline constexpr double kSteadyWithin = 0.2;
[[nodiscard]] std::size_t first_steady_step(const RecordedJob& job);

// Time of the rank in calls of the data loader. It is an input, not a property of the host.
[[nodiscard]] double data_loader_us(const RecordedProgram& recorded, RankClassId c);
// Its recorded time, times `factor`.
void scale_data_loader(const RecordedProgram& recorded, RankClassId c, Costs& costs, double factor);

// The trace sets of a folder of measured data, for suites that go over all of them.

// `data` itself and the folders below it, in order of their names; of a file the file alone. An error: it does
// not exist or cannot be listed.
[[nodiscard]] Result<std::vector<std::filesystem::path>> folders_of(const std::filesystem::path& data);

// How reports call what lies at `path` in `data`: without endings that only say the format.
[[nodiscard]] std::string relative_name(const std::filesystem::path& path, const std::filesystem::path& data);

}  // namespace stepcast
