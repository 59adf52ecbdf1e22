// Scores steps of recommendation models predicted from a description against measured ones: files with the columns of
// iterations/dlrm_runs.csv, and DLRM rows of iterations/nvidia_dle.csv. Nothing is fitted to their times; one factor
// per software stack, from other organisations' rows (of one organisation: its other systems' with that release), is a test of its own beside a median of like machines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/workload/dlrm.h"

#include "lab/suite.h"

namespace stepcast {

struct DlrmRun {
  std::string set, model, organisation, system, gpu, links, framework, round;
  DlrmStack stack = DlrmStack::hugectr;
  DType dtype = DType::fp16;
  std::int64_t n_nodes = 1, gpus_per_node = 1, n_gpus = 1, global_batch = 1;
  double iter_time_ms = 0;
  std::int32_t release = 0;  // of the software, as DlrmTraining has it
  std::uint32_t line = 0;
};

[[nodiscard]] bool looks_like_dlrm_runs(std::string_view text);
[[nodiscard]] Result<std::vector<DlrmRun>> parse_dlrm_runs(std::string_view text, const std::string& name);

// Adds the tests steps, one_factor_per_stack and median_of_like_machines.
void score_dlrm_runs(const std::vector<DlrmRun>& runs, const SuiteOptions& options, SuiteResult& result);

// The recorded step of a recommendation model against the same step predicted from a description: what a rank's GPU
// computes in all and by class of kernels, and how long the step takes.

// Adds the test described_trace for the traces in `folder` of TorchRec's DLRM on eight V100 (the 26 tables of DCNv2 with 16
// columns, 16 samples per rank, eager Adagrad). Errors: traces that cannot be read or rebuilt.
[[nodiscard]] Status score_described_trace(const std::filesystem::path& folder, SuiteResult& result);

}  // namespace stepcast
