// What the tests of the suite kernels share: the rows of each device, and predictions as one set per
// operator.
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

// Errors that other people's models state for themselves (data/published.csv), to compare with. No prediction
// uses them.

// Mean errors of operators, by GPU and direction: gpu,operator,direction,mape_percent,source. Optimizer steps
// count as forward.
class PublishedErrors {
 public:
  PublishedErrors() = default;  // none
  // Errors name line and column: a direction that is neither forward nor backward, an error of 0 or less, a row
  // without its source.
  [[nodiscard]] static Result<PublishedErrors> parse(std::string_view text, const std::string& name);
  [[nodiscard]] static Result<PublishedErrors> read(const std::filesystem::path& file);

  // Percent; nothing where none is stated.
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

// The rows of one device, which may be called by several names in the data. Rows that say in which regime they
// were measured are of tables by type, taken by other software than the rest: they stand apart.
struct DeviceRows {
  Platform platform;
  std::vector<KernelMeasurement> rows;
  bool by_type = false;
};

// A prediction for a row that was tested.
struct Tested {
  std::size_t row = 0;
  Estimate estimate;
};

// Rows by device, without impossible ones, in the order of the devices' names. GPUs that no platform
// describes and impossible rows are named in `skipped`.
[[nodiscard]] Result<std::vector<DeviceRows>> rows_by_device(KernelMeasurements all,
                                                             const SuiteOptions& options,
                                                             std::vector<Skipped>& skipped);

// Predictions of some rows of a device by models that are `records` on it.
[[nodiscard]] std::vector<Tested> tested_with(const DeviceRows& device, std::span<const ModelRecord> records,
                                              const std::vector<std::size_t>& rows);

// The kind of a row, whose sets one number should stand for: "transformer operators fp16" (of the
// measurements by parameters of a model), "gemm bf16", "gemm by type fp8".
[[nodiscard]] std::string kernel_group(const KernelMeasurement& measurement);

// One prediction per tested row becomes one set per operator.
class KernelSets {
 public:
  using GroupOf = std::string (*)(const KernelMeasurement&);
  // `published` outlives this object.
  KernelSets(const std::vector<std::filesystem::path>& files, const PublishedErrors& published,
             GroupOf group_of = kernel_group);

  // `n_fit`: rows fitted to, by set.
  void add(const DeviceRows& device, const std::vector<Tested>& tested,
           const std::map<std::string, double>& n_fit);

  // Ordered by name, with the numbers beside the metrics.
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
