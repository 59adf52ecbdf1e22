// Which rows of kernel measurements are held out together.
//
// A split gives every row the number of the fold in which it is tested, or kNotTested. Folds come out of a
// seed and the order of the rows alone.
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

// By shape: all rows of one Operation, whatever their direction or label, are in one fold.
[[nodiscard]] KernelSplit split_by_shape(std::span<const KernelMeasurement> rows, int n_folds,
                                         std::uint64_t seed);
// By row: repeats of the same parameters are in one fold, but equal shapes from other parameters need not be.
[[nodiscard]] KernelSplit split_by_row(std::span<const KernelMeasurement> rows, int n_folds,
                                       std::uint64_t seed);
// Whole values of the hidden size (or of the sequence length); rows without it are not tested.
enum class HeldOutValue : std::uint8_t { hidden_size, sequence_length };
[[nodiscard]] KernelSplit split_by_value(std::span<const KernelMeasurement> rows, HeldOutValue value,
                                         int n_folds, std::uint64_t seed);
// The largest: hidden sizes above 0.8 of an operator's largest; where rows have none, the tenth of a family
// with the most FLOPs (matrix work) or bytes. One fold.
[[nodiscard]] KernelSplit split_largest(std::span<const KernelMeasurement> rows);

// The tests of the suite kernels on GPUs that nobody measured (suites.h says which).

// unseen_gpu, unseen_gpu_20_points, unseen_gpu_half and unseen_gpu_half_siblings, as far as the data go.
[[nodiscard]] Result<std::vector<TestScore>> score_unseen_gpus(
    const std::vector<DeviceRows>& devices, const std::vector<std::filesystem::path>& files,
    const PublishedErrors& published, unsigned threads);

// The test of the suite kernels on gradients of linear layers in types whose gradients nobody measured.

// held_out_gradients: batches of few large products in the layout of input gradients (nn) stand for single
// ones, with the rows of all of a batch in one product. They are held out of the fit; of single products the
// files have large ones in the layout of forward alone. Nothing if no device has such rows.
[[nodiscard]] Result<std::optional<TestScore>> score_held_out_gradients(
    const std::vector<DeviceRows>& devices, const std::vector<std::filesystem::path>& files,
    const PublishedErrors& published, unsigned threads);

// Name of its extra number: the largest share of the peak at which a product is predicted to run, in percent.
inline constexpr const char* kMostOfPeak = "most_of_peak_pct";

}  // namespace stepcast
