// The trace sets of a folder of measured data, for suites that go over all of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/trace/recorded_rank.h"
#include "stepcast/trace/trace_set.h"

namespace stepcast {

// `data` itself and the folders below it, in order of their names; of a file the file alone. An error: it does
// not exist or cannot be listed.
[[nodiscard]] Result<std::vector<std::filesystem::path>> folders_of(const std::filesystem::path& data);

// Numbers N of ProfilerStep#N.
[[nodiscard]] std::set<std::int64_t> steps_of(const RecordedRank& rank);
// Those that every rank has.
[[nodiscard]] std::set<std::int64_t> common_steps(const TraceSet& set);

// How reports call what lies at `path` in `data`: without endings that only say the format.
[[nodiscard]] std::string relative_name(const std::filesystem::path& path, const std::filesystem::path& data);

}  // namespace stepcast
