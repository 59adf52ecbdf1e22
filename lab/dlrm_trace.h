// The recorded step of a recommendation model against the same step predicted from a description: what a rank's GPU
// computes in all and by class of kernels, and how long the step takes.
#pragma once

#include <filesystem>

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

// Adds the test described_trace for the traces in `folder` of TorchRec's DLRM on eight V100 (the 26 tables of DCNv2 with 16
// columns, 16 samples per rank, eager Adagrad). Errors: traces that cannot be read or rebuilt.
[[nodiscard]] Status score_described_trace(const std::filesystem::path& folder, SuiteResult& result);

}  // namespace stepcast
