// Common to the tests of the suite kernels: the rows of each device, and predictions as one set for each operator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/operation/operation.h"
#include "stepcast/platform/platform.h"

#include "calibrate/kernel_measurements.h"
#include "lab/suite.h"

namespace stepcast {

// Errors that publications state for their models (data/published.csv), for comparison. Predictions do not use them.

// Mean errors of operators, by GPU and direction: gpu,operator,direction,mape_percent,source. Optimizer steps
// count as forward.
class PublishedErrors {
 public:
  PublishedErrors() = default;  // none
  // Errors name line and column: a direction that is neither forward nor backward, an error of 0 or less, a row without
  // source.
  [[nodiscard]] static Result<PublishedErrors> parse(std::string_view text, const std::string& name);
  [[nodiscard]] static Result<PublishedErrors> read(const std::filesystem::path& file);

  // Percent; nullopt if none is stated.
  [[nodiscard]] std::optional<double> mape_percent(std::string_view gpu, std::string_view operator_label,
                                                   Direction direction) const;
  [[nodiscard]] std::size_t size() const { return rows_.size(); }

 private:
  struct Row {
    std::string gpu, operator_label;
    Direction direction = Direction::forward;
    double mape_percent = 0;
  };
  std::vector<Row> rows_;
};

// The rows of one device, which may have several names in the data. Rows with a stated regime come from tables by type,
// measured with other software than the rest: they form separate entries.
struct DeviceRows {
  Platform platform;
  std::vector<KernelMeasurement> rows;
  bool by_type = false;
};

// The prediction for a tested row.
struct Tested {
  std::size_t row = 0;
  Estimate estimate;
};

// Rows by device, without impossible rows, ordered by name of the device. GPUs without a platform and impossible rows are
// named in `skipped`.
[[nodiscard]] Result<std::vector<DeviceRows>> rows_by_device(KernelMeasurements all,
                                                             const SuiteOptions& options,
                                                             std::vector<Skipped>& skipped);

// Predictions of some rows of a device by the models in `records`.
[[nodiscard]] std::vector<Tested> tested_with(const DeviceRows& device, std::span<const ModelRecord> records,
                                              const std::vector<std::size_t>& rows);

// Group of a row; the sets of a group get one common score: "transformer operators fp16" (of the measurements by parameters
// of a model), "gemm bf16", "gemm by type fp8".
[[nodiscard]] std::string kernel_group(const KernelMeasurement& measurement);

// Collects one prediction for each tested row into one set for each operator.
class KernelSets {
 public:
  using GroupOf = std::string (*)(const KernelMeasurement&);
  // `published` must outlive this object.
  KernelSets(const std::vector<std::filesystem::path>& files, const PublishedErrors& published,
             GroupOf group_of = kernel_group);

  // `n_fit`: number of rows used for fitting, by set.
  void add(const DeviceRows& device, const std::vector<Tested>& tested,
           const std::map<std::string, double>& n_fit);

  // The test with its sets ordered by name, and extras in addition to the metrics.
  [[nodiscard]] TestScore test(std::string name, std::string protocol) &&;

 private:
  struct Entry {
    SetScore set;
    std::uint64_t below_bound = 0;
    std::optional<double> published;
  };
  std::vector<std::string> names_;  // of files
  const PublishedErrors* published_;
  GroupOf group_of_;
  std::map<std::string, Entry> sets_;
};

}  // namespace stepcast
