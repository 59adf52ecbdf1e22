// Scores what nodes draw in the steady phase of a training: the median reading of node_power.csv.
//
//   one_node       (primary) one node alone, its benchmark left out of the fit
//   several_nodes  the same, with the step time given
//   constant_...   the mean over the other benchmarks of the same size class and meter
//   limit_...      the limits of the GPUs alone
//   shipped_...    dgx-h100 as it ships, fitted on all rows; AC meters
//
// Sets are system, benchmark and meter. Fitted are, per meter, the draw of a node that computes and what waiting takes off
// it. Waiting is the forecast's where the benchmark can be described (BERT, LoRA of Llama 2 70B), with the measured step
// time in the place of its own; in the fit also what the rate per GPU lost against one node. A benchmark that is not
// described draws what the others of its size class and maker do: its waiting is not known.
#pragma once

#include <filesystem>

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

// `data`: a folder with node_power.csv.
[[nodiscard]] Result<SuiteResult> validate_node_power(const std::filesystem::path& data);
[[nodiscard]] Suite node_power_suite();

}  // namespace stepcast
