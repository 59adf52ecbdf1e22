// Scores steps of MaxText on TPUs (tpu_steps.csv): each row as a config of MaxText with its layout and what its recipe
// recomputes, on the platform file of its chip and slices of the size that it states.
//
//   dense                (primary) seconds of a step of models without experts, sets by chip
//   experts              the same of models with experts
//   dense_utilisation, experts_utilisation   the trivial answer: the FLOPs of the model at the median share of the peak that
//                        the other rows of the same chip reach
//
// "refit": leave one chip out. One number is fitted: how much longer products take than the corrections say that were
// fitted to GPUs, the median over the dense rows of the other chips (gemm_factor); all_gemm_factor is that of all, which
// platforms/kernels/tpu.json ships. All else is of data sheets. Batches are the tokens that the step printed. Rows that
// state no layout or no rematerialisation, and models that are no preset, are named.
#pragma once

#include <filesystem>

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

// `data`: a folder with tpu_steps.csv.
[[nodiscard]] Result<SuiteResult> validate_tpu(const std::filesystem::path& data);

[[nodiscard]] Suite tpu_suite();

}  // namespace stepcast
