// Scores kernel models against measured kernel times (files of kernel_measurements.h, or folders of them; to a
// folder `kernels` belongs a folder `modern/kernels` beside it).
//
// Under the protocol `refit` models are fitted to the rows of a device that are not held out. Five folds:
//   held_out_rows              (primary) by shape: no shape that is tested was fitted to, in any direction
//   random_rows                by row, where equal shapes come from different parameters, as the published
//                              errors are: a tested row may have a twin among the fitted ones
//   held_out_hidden_size       whole values of the hidden size
//   held_out_sequence_length   whole values of the sequence length
// One fold:
//   beyond_range               the largest hidden sizes; elsewhere the tenth with the most FLOPs or bytes
//   held_out_gradients         products in a layout of gradients that was measured in batches alone
//   unseen_gpu                 every GPU in turn from at least two others that measured the same family: fp32
//                              and what else is not 16 bits
//   unseen_gpu_20_points       the same with 20 measured points of each operator of the new GPU
//   unseen_gpu_half            tables by type: the whole generation of a GPU left out, from others' tables
//   unseen_gpu_half_siblings   16-bit types, from at least one other GPU, which may be of its generation
// Under the protocol `shipped`:
//   shipped                    the shipped platform of the row's GPU, on rows that it was not fitted on
//
// Sets are "GPU/operator/direction". Rows faster than the bound of their device are left out and counted.
#pragma once

#include <filesystem>

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

[[nodiscard]] Result<SuiteResult> validate_kernels(const std::filesystem::path& data,
                                                   const SuiteOptions& options = {});

[[nodiscard]] Suite kernels_suite();

}  // namespace stepcast
