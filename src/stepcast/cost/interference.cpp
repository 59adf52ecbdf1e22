#include "stepcast/cost/interference.h"

#include <algorithm>
#include <array>
#include <utility>

namespace stepcast {
namespace {

// For kernels nobody measured beside a collective: the middle of the measured classes (A100), wide.
constexpr SlowdownFactor kUnmeasured{1.02, 1.0, 1.5, EstimateSource::assumed};

}  // namespace

Interference::Interference(const Platform& platform) {
  for (const ModelRecord& model : platform.models) {
    if (model.kind != "overlap_slowdown") continue;
    const auto number = [&](std::string_view key) -> std::optional<double> {
      const JsonValue* value = model.parameters.find(key);
      if (value == nullptr || !value->is_number()) return std::nullopt;
      return value->number();
    };
    const auto text = [&](std::string_view key) -> std::string {
      const JsonValue* value = model.parameters.find(key);
      return value != nullptr && value->is_text() ? value->text() : std::string{};
    };
    const auto p50 = number("slowdown_p50");
    if (!p50 || *p50 < 0) continue;
    Entry entry;
    entry.kernel = text("kernel");
    const std::string wanted = text("class");
    for (int c = 0; c < kKernelClassCount; ++c) {
      if (to_string(static_cast<KernelClass>(c)) == wanted) entry.kernel_class = static_cast<KernelClass>(c);
    }
    if (entry.kernel.empty() && entry.kernel_class == KernelClass::none) continue;
    entry.factor.median = 1 + *p50;
    entry.factor.p10 = 1 + std::clamp(number("slowdown_p10").value_or(0), 0.0, *p50);
    entry.factor.p90 = 1 + std::max(number("slowdown_p90").value_or(*p50), *p50);
    entry.factor.source =
        model.provenance.source == FigureSource::assumed ? EstimateSource::assumed : EstimateSource::fitted;
    entries_.push_back(std::move(entry));
  }
}

SlowdownFactor Interference::beside_communication(KernelClass kernel_class,
                                                  std::string_view kernel_name) const {
  for (const Entry& e : entries_) {
    if (!e.kernel.empty() && kernel_name.find(e.kernel) != std::string_view::npos) return e.factor;
  }
  for (const Entry& e : entries_) {
    if (e.kernel.empty() && e.kernel_class == kernel_class) return e.factor;
  }
  return kUnmeasured;
}

SlowdownFactor Interference::sharing_a_link(double bandwidth_share, double others) {
  const double wanted = std::clamp(bandwidth_share, 0.0, 1.0) + std::max(others, 0.0);
  if (wanted <= 1) return {1, 1, 1, EstimateSource::assumed};
  return {wanted, 1, wanted * 1.1, EstimateSource::assumed};
}

}  // namespace stepcast
