#include "stepcast/calibrate/kernel_rows.h"

#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace stepcast {

bool is_impossible(const KernelMeasurement& measurement, const AnalyticModel& device) {
  return measurement.time < kImpossibleShareOfBound * device.lower_bound(measurement.operation);
}

std::vector<SkippedRows> remove_impossible_rows(std::vector<KernelMeasurement>& rows,
                                                const AnalyticModel& device) {
  std::map<std::string, std::size_t> counts;
  std::erase_if(rows, [&](const KernelMeasurement& m) {
    const bool impossible = is_impossible(m, device);
    if (impossible) ++counts[kernel_set_name(m)];
    return impossible;
  });
  std::vector<SkippedRows> skipped;
  for (const auto& [set, n] : counts) {
    skipped.push_back({set, "impossible: more than 5 % faster than the bound of the device", n});
  }
  return skipped;
}

std::string kernel_set_name(const KernelMeasurement& measurement) {
  return fmt::format("{}/{}/{}", measurement.gpu, measurement.label,
                     to_string(measurement.operation.direction));
}

std::string kernel_record_key(const Operation& operation) {
  return fmt::format("{}/{}/{}", family_of(operation), to_string(operation.dtype),
                     to_string(operation.direction));
}

}  // namespace stepcast
