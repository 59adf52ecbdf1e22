// Fits kernel models to measurements of one device.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"

#include "calibrate/kernel_measurements.h"

namespace stepcast {

struct KernelFitOptions {
  std::uint64_t seed = 42;
  unsigned threads = 2;
};

// The model chosen for one record, and the errors of the candidates in the inner cross-validation.
struct KernelFitNote {
  std::string record;  // name of the ModelRecord
  std::size_t n_rows = 0;
  struct Candidate {
    std::string family;  // "analytic", "trees on ratio", "mlp", "table", ...
    double gmae_percent = 0, mape_percent = 0;
  };
  std::vector<Candidate> candidates;
  std::string chosen;
};

struct KernelFit {
  std::vector<ModelRecord> records;
  std::vector<KernelFitNote> notes;
  std::string problem{};  // why trees were not among the candidates, and what to install; empty: they were
};

// Fits one record for each operation family, dtype and direction in `rows`. Models are chosen by cross-validation inside
// `rows`; intervals come from held-out residuals. All rows must be of `device`, and rows of one family, type and direction
// of one regime (join_regimes in kernel_measurements.h). The same rows, device and seed give the same records for any number
// of threads.
[[nodiscard]] Result<KernelFit> fit_kernel_models(std::span<const KernelMeasurement> rows,
                                                  const Device& device, const KernelFitOptions& options = {});

}  // namespace stepcast
