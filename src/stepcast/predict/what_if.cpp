#include "stepcast/predict/what_if.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/scan.h"
#include "stepcast/cost/node_power.h"

namespace stepcast {
namespace {

// A name that users can change and one of its factors.
struct Part {
  std::string_view name;
  double StepAssumptions::*factor;
};
// A name with several factors has several rows; a change applies to all of them.
constexpr Part kParts[] = {{"gemm", &StepAssumptions::gemm_factor},
                           {"attention", &StepAssumptions::attention_factor},
                           {"memory_bound", &StepAssumptions::memory_bound_factor},
                           {"compute", &StepAssumptions::gemm_factor},
                           {"compute", &StepAssumptions::attention_factor},
                           {"gpu", &StepAssumptions::gemm_factor},
                           {"gpu", &StepAssumptions::attention_factor},
                           {"gpu", &StepAssumptions::memory_bound_factor},
                           {"communication", &StepAssumptions::communication_factor},
                           {"nvlink", &StepAssumptions::intra_node_factor},
                           {"network", &StepAssumptions::inter_node_factor},
                           {"host", &StepAssumptions::host_factor},
                           {"host", &StepAssumptions::host_launch_us},
                           {"host", &StepAssumptions::compiled_host_launch_us},
                           {"host", &StepAssumptions::step_fixed_us}};

// The factor in "2x" or "1.5"; 0 if the text is not a number.
double speed_of(std::string_view text) {
  if (text.ends_with('x')) text.remove_suffix(1);
  return scan<double>(text).value_or(0);
}

// Error if a name is given twice, since both changes would apply.
Status check_names(std::span<const std::string> changes) {
  std::vector<std::string_view> names;
  for (const std::string& change : changes) {
    const std::string_view name = std::string_view{change}.substr(0, change.find('='));
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      return Error::at("", "--what-if", fmt::format("`{}` is given twice", name.substr(0, 60)))
          .advice("choose one");
    }
    names.push_back(name);
  }
  return Ok{};
}

}  // namespace

Status apply_what_if(std::span<const std::string> changes, StepAssumptions& assumptions,
                     std::span<const WhatIfFactor> own) {
  STEPCAST_TRY(check_names(changes));
  constexpr double kSlowest = 0.01, kFastest = 100;  // wider changes are most likely typing errors
  for (const std::string_view change : changes) {
    const std::size_t equals = change.find('=');
    const std::string_view name = change.substr(0, equals);
    const double times = equals == std::string_view::npos ? 0 : speed_of(change.substr(equals + 1));
    const auto changed = std::ranges::find(own, name, &WhatIfFactor::name);
    const bool is_own = changed != own.end();
    const bool is_known = is_own || std::ranges::find(kParts, name, &Part::name) != std::end(kParts);
    if (!is_known || !(times >= (is_own ? 0.1 : kSlowest) && times <= kFastest)) {
      return Error::at("", "--what-if")
          .found(fmt::format("`{}`", change.substr(0, 60)))
          .expected(is_own ? fmt::format("{}=2x, from 0.1 to 100 times", name)
                           : fmt::format("NAME=FACTORx with gemm, attention, memory_bound, compute, gpu, "
                                         "communication, nvlink, network or "
                                         "host, from {} to {} times as fast, such as nvlink=2x",
                                         kSlowest, kFastest));
    }
    // Factors of the model are multiplied by `times`; assumptions are times, so they are divided by it.
    if (is_own) *changed->factor *= times;
    for (const Part& part : kParts)
      if (!is_own && part.name == name) assumptions.*(part.factor) /= times;
  }
  return Ok{};
}

Status apply_power_limit(const Platform& platform, double limit_W, StepAssumptions& assumptions) {
  STEPCAST_ASSIGN(const NodePower power, power_under(platform, limit_W));
  const double slow_down = power.computing(limit_W).slow_down;
  for (const Part& part : kParts)
    if (part.name == "gpu") assumptions.*(part.factor) *= slow_down;
  // Uncertainty of the slowdown, as a share of the additional time, to both sides. V100 and A40, each left
  // out of the fit, have errors of a fifth of it. Kernels of newer GPUs were not measured under a limit.
  constexpr double kBandOfSlowDown = 0.4;
  const double more = kBandOfSlowDown * (slow_down - 1) / slow_down;
  assumptions.structure_low = std::hypot(assumptions.structure_low, more);
  assumptions.structure_high = std::hypot(assumptions.structure_high, more);
  return Ok{};
}

}  // namespace stepcast
