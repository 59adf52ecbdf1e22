// Splits of rows of kernel measurements into folds that are held out together.
//
// A split gives every row the number of the fold in which it is tested, or kNotTested. Folds depend only on a seed and the
// order of the rows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "stepcast/base/result.h"

#include "calibrate/kernel_measurements.h"
#include "lab/kernel_sets.h"
#include "lab/suite.h"

namespace stepcast {

inline constexpr int kNotTested = -1;

struct KernelSplit {
  std::vector<int> fold;  // [row]
  int n_folds = 0;
};

// By shape: all rows of one Operation are in one fold, for any direction and label.
[[nodiscard]] KernelSplit split_by_shape(std::span<const KernelMeasurement> rows, int n_folds,
                                         std::uint64_t seed);
// By row: repeats of the same parameters are in one fold; equal shapes from other parameters may be in another.
[[nodiscard]] KernelSplit split_by_row(std::span<const KernelMeasurement> rows, int n_folds,
                                       std::uint64_t seed);
// By whole values of the hidden size or the sequence length. Rows without it are not tested.
enum class HeldOutValue : std::uint8_t { hidden_size, sequence_length };
[[nodiscard]] KernelSplit split_by_value(std::span<const KernelMeasurement> rows, HeldOutValue value,
                                         int n_folds, std::uint64_t seed);
// The largest shapes in one fold: hidden sizes above 0.8 of the largest of an operator; without hidden sizes, the tenth of a
// family with the most FLOPs (matrix work) or bytes.
[[nodiscard]] KernelSplit split_largest(std::span<const KernelMeasurement> rows);

// Tests of the suite kernels on unmeasured GPUs (defined in suites.h).

// unseen_gpu, unseen_gpu_20_points, unseen_gpu_half and unseen_gpu_half_siblings, if the data allow them.
[[nodiscard]] Result<std::vector<TestScore>> score_unseen_gpus(
    const std::vector<DeviceRows>& devices, const std::vector<std::filesystem::path>& files,
    const PublishedErrors& published, unsigned threads);

// Test of the suite kernels on gradients of linear layers in types without measured gradients.

// held_out_gradients: batches of few large GEMMs in the layout of input gradients (nn) are used as single GEMMs with the
// rows of the whole batch. They are held out of the fit. The files have large single GEMMs only in the layout of forward.
// nullopt if no device has such rows.
[[nodiscard]] Result<std::optional<TestScore>> score_held_out_gradients(
    const std::vector<DeviceRows>& devices, const std::vector<std::filesystem::path>& files,
    const PublishedErrors& published, unsigned threads);

// Name of the extra with the largest predicted share of the peak of a GEMM, percent.
inline constexpr const char* kMostOfPeak = "most_of_peak_pct";

}  // namespace stepcast
