// Peaks of allocated memory that tables of $STEPCAST_DATA/field state, against those forecast, in GiB.
#pragma once

#include <filesystem>
#include <vector>

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

// A set for each table of `folder`: megatron_lines.csv, where the last rank writes what it allocated, and ab_pairs.csv, both
// sides of the pairs of Megatron Bridge whose layout and batch are printed, the fullest stage. Settings in words, not
// flags, are left out, and so is what is not forecast.
[[nodiscard]] Result<std::vector<SetScore>> stated_peaks(const std::filesystem::path& folder);

}  // namespace stepcast
