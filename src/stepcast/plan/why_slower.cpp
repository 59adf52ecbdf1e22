#include "stepcast/plan/why_slower.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/duration_text.h"

namespace stepcast {
namespace {

// Time difference of one part of the step.
struct PartDifference {
  std::string_view part;
  double more_us = 0;  // narrow minus wide type
};

// Differences of all parts of the step, largest first.
std::vector<PartDifference> differences(const StepShares& narrow, const StepShares& wide) {
  std::vector<PartDifference> all;
  for (std::size_t i = 0; i < kKernelClassCount; ++i)
    all.push_back({to_string(static_cast<KernelClass>(i)), narrow.class_us[i] - wide.class_us[i]});
  all.push_back(
      {"exposed communication", narrow.exposed_communication_us() - wide.exposed_communication_us()});
  all.push_back({"the host", narrow.host_us - wide.host_us});
  all.push_back({"the pipeline's bubble", narrow.bubble_us - wide.bubble_us});
  all.push_back({"the optimizer", narrow.optimizer_us - wide.optimizer_us});
  std::ranges::stable_sort(all, std::greater{}, &PartDifference::more_us);
  return all;
}

}  // namespace

std::optional<std::string> why_slower(const StepPrediction& narrow, DType narrow_type,
                                      const StepPrediction& wide, DType wide_type) {
  const double narrow_ms = narrow.step.time.value() * 1e-3, wide_ms = wide.step.time.value() * 1e-3;
  if (narrow_ms <= wide_ms) return std::nullopt;
  const std::vector<PartDifference> parts = differences(narrow.shares, wide.shares);
  const PartDifference &most = parts.front(), &second = parts[1], &least = parts.back();
  std::string more = fmt::format("{} {}", most.part, duration_text(most.more_us * 1e-3));
  constexpr double kWorthNaming = 0.2;  // share of the largest difference
  if (second.more_us > kWorthNaming * most.more_us)
    more += fmt::format(" and {} {}", second.part, duration_text(second.more_us * 1e-3));
  const std::string less = least.more_us < 0 ? fmt::format("{} takes {} less, but ", least.part,
                                                           duration_text(-least.more_us * 1e-3))
                                             : "";
  return fmt::format("{} is slower than {} here, {} against {}: {}{} more", to_string(narrow_type),
                     to_string(wide_type), duration_text(narrow_ms, 4), duration_text(wide_ms, 4), less,
                     more);
}

std::optional<Layout> with_wide_products(const Layout& layout) {
  const Precision& precision = layout.layer.precision;
  if (precision.compute != DType::fp8 && precision.compute != DType::fp4) return std::nullopt;
  Layout wide = layout;
  wide.layer.precision.compute = precision.other;
  return wide;
}

}  // namespace stepcast
