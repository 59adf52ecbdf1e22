// Fits kernel models for unmeasured GPUs from measurements of several other GPUs, and adapts them to one GPU with a few
// measured rows.
//
//   STEPCAST_ASSIGN(GenericFit generic, fit_generic_models(measured));  // V100, T4, A100, ...
//   KernelModel{h100, generic.records}.estimate(operation);             // H100, from figures of the device only
//   STEPCAST_ASSIGN(auto records, adapt_generic_models(generic.records, twenty_rows, h100));
//   KernelModel{h100, records}.estimate(operation);                     // H100 with 20 measured points
//
// The records are those of cost/generic_kernel.h. Adapting adds the device to them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"

#include "calibrate/kernel_measurements.h"

namespace stepcast {

// Below this number of rows of a family, adapting a generic model is better than fitting a new one. First value: GEMMs,
// attention and convolutions. Second: streaming work, which has a reference with three constants.
inline constexpr std::size_t kFewMatrixRows = 24, kFewStreamingRows = 8;

struct MeasuredDevice {
  Device device;
  std::vector<const KernelMeasurement*> rows;  // all of this device
};

// Errors of one record when every device is left out in turn.
struct GenericFitNote {
  std::string record;  // "generic/gemm/fp32/forward"
  std::vector<std::string> devices;
  std::size_t n_rows = 0;
  double unseen_mape_percent = 0;  // mean over the devices
};

struct GenericFit {
  std::vector<ModelRecord> records;
  std::vector<GenericFitNote> notes;
};

// True if one of the records is for the family, class of element types and direction of the operation.
[[nodiscard]] bool has_generic_model(std::span<const ModelRecord> records, const Operation& operation);

// Fits a record for every measured family, class of element types and direction. Rows faster than the bound of their device
// are left out. The same input gives the same records.
[[nodiscard]] Result<GenericFit> fit_generic_models(std::span<const MeasuredDevice> devices);

// Returns `generic` with the records adapted to `rows` that these determine, as far as the number of rows allows; other
// records are unchanged. `rows`: any number, all of `device`.
[[nodiscard]] Result<std::vector<ModelRecord>> adapt_generic_models(
    std::span<const ModelRecord> generic, std::span<const KernelMeasurement* const> rows,
    const Device& device);

}  // namespace stepcast
