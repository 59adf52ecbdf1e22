// The test of the suite kernels on gradients of linear layers in types whose gradients nobody measured.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "stepcast/base/result.h"

#include "lab/kernel_sets.h"
#include "lab/suite.h"

namespace stepcast {

// held_out_gradients: batches of few large products in the layout of input gradients (nn) stand for single
// ones, with the rows of all of a batch in one product. They are held out of the fit; of single products the
// files have large ones in the layout of forward alone. Nothing if no device has such rows.
[[nodiscard]] Result<std::optional<TestScore>> score_held_out_gradients(
    const std::vector<DeviceRows>& devices, const std::vector<std::filesystem::path>& files,
    const PublishedErrors& published, unsigned threads);

// Name of its extra number: the largest share of the peak at which a product is predicted to run, in percent.
inline constexpr const char* kMostOfPeak = "most_of_peak_pct";

}  // namespace stepcast
