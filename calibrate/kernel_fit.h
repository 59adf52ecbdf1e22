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

// What was chosen for one model and how well the candidates did in the inner cross-validation.
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
  std::string problem{};  // why no trees were among the candidates, and what to install; empty: they were
};

// All rows must be of `device`, and all of one family, type and direction of one regime (join_regimes in
// kernel_measurements.h). One record per operation family, dtype and direction present in `rows`,
// chosen by cross-validation inside `rows` with intervals from held-out residuals. The same rows, device and
// seed give the same records whatever the number of threads.
[[nodiscard]] Result<KernelFit> fit_kernel_models(std::span<const KernelMeasurement> rows,
                                                  const Device& device, const KernelFitOptions& options = {});

}  // namespace stepcast
