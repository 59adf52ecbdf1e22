#include "calibrate/kernel_rows.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace stepcast {
namespace {

// Sustained rows have to reach this share of the largest extents of the others: assumed.
constexpr double kLeastReach = 0.25;

using Sizes = std::array<double, 3>;
Sizes sizes_of(const Operation& operation) {
  if (const auto* s = std::get_if<GemmShape>(&operation.shape))
    return {static_cast<double>(s->m), static_cast<double>(s->n), static_cast<double>(s->k)};
  return {work_of(operation).flops.value(), work_of(operation).bytes().value(), 0};
}

}  // namespace

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
  for (const auto& [set, n] : counts)
    skipped.push_back({set, "impossible: more than 5 % faster than the bound of the device", n});
  return skipped;
}

std::vector<SkippedRows> keep_one_regime(std::vector<KernelMeasurement>& rows) {
  struct Reach {
    bool any = false;
    Sizes largest{};
  };
  std::map<std::string, std::array<Reach, 2>> reach_of;  // [record key][sustained]
  for (const KernelMeasurement& m : rows) {
    Reach& reach = reach_of[kernel_record_key(m.operation)][m.regime == Regime::sustained ? 1 : 0];
    const Sizes sizes = sizes_of(m.operation);
    reach.any = true;
    for (std::size_t i = 0; i < sizes.size(); ++i) reach.largest[i] = std::max(reach.largest[i], sizes[i]);
  }
  const auto sustained_wanted = [](const std::array<Reach, 2>& reach) {
    if (!reach[1].any) return false;
    for (std::size_t i = 0; reach[0].any && i < reach[0].largest.size(); ++i)
      if (reach[1].largest[i] < kLeastReach * reach[0].largest[i]) return false;
    return true;
  };
  std::map<std::pair<std::string, bool>, std::size_t> counts;
  std::erase_if(rows, [&](const KernelMeasurement& m) {
    const bool sustained = m.regime == Regime::sustained;
    const bool leave = sustained != sustained_wanted(reach_of.at(kernel_record_key(m.operation)));
    if (leave) ++counts[{kernel_set_name(m), sustained}];
    return leave;
  });
  std::vector<SkippedRows> skipped;
  for (const auto& [set, n] : counts) {
    skipped.push_back({set.first,
                       set.second ? "of long runs that reach less than a quarter of the sizes of short ones"
                                  : "of short runs, where the same device has long ones",
                       n});
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
