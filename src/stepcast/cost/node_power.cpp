#include "stepcast/cost/node_power.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "stepcast/base/scan.h"
#include "stepcast/cost/families/record_numbers.h"

namespace stepcast {
namespace {

constexpr int kPhases = 9;               // samples of the spread; more change nothing
constexpr double kLeastHeadroom = 0.01;  // of the draw above the base; lower bound of the clock

// Shares of the GPU limits for an unmeasured node: those of the measured H100 nodes.
constexpr double kHostShare = 0.33, kIdleShare = 0.15, kBusyShare = 0.95, kWaitingWeight = 0.7;
// Nodes of one kind from different makers differ by 22 %; other GPU kinds were not measured.
constexpr double kGenericBand = 0.2;
// Two-tier network: three ports of a 64-port switch of 940 W for every NIC. Assumed.
constexpr double kSwitchWattsPerAdapter = 44;

}  // namespace

DrawUnderLimit under_limit(const PowerLimitRule& rule, const UncappedDraw& draw, double limit_W) {
  const double above_W = std::max(draw.mean_W - draw.base_W, 1e-3);
  double time = 0, energy = 0;
  for (int i = 0; i < kPhases; ++i) {
    const double place = (i + 0.5) / kPhases * 2 - 1;
    const double factor = std::max(0.0, 1 + rule.spread * place);
    const double phase_W = std::max(std::min(above_W * factor, draw.top_W - draw.base_W), 1e-9);
    const double left = std::max((rule.held * limit_W - draw.base_W) / phase_W, kLeastHeadroom);
    const double clock = std::min(1.0, std::pow(left, 1 / rule.exponent));
    const double takes = 1 - rule.clock_bound + rule.clock_bound / clock;
    time += takes;
    energy += takes * (draw.base_W + phase_W * std::pow(clock, rule.exponent));
  }
  return {time / kPhases, std::min(draw.mean_W, energy / time)};
}

Result<NodePower> NodePower::read(const JsonValue& parameters, double gpu_top_W) {
  NodePower power{.gpu_top_W = gpu_top_W};
  STEPCAST_ASSIGN(power.host_W, positive_number(parameters, "host_W"));
  STEPCAST_ASSIGN(const double idle, positive_number(parameters, "gpu_idle_share"));
  STEPCAST_ASSIGN(const double busy, positive_number(parameters, "gpu_busy_share"));
  if (!(idle < busy && busy <= 1))
    return Error{fmt::format("`gpu_busy_share` is {:g} (must be above gpu_idle_share and at most 1)", busy)};
  power.gpu_idle_W = idle * gpu_top_W;
  power.gpu_busy_W = busy * gpu_top_W;
  STEPCAST_ASSIGN(power.waiting_weight, positive_number(parameters, "waiting_weight"));
  if (power.waiting_weight > 1)
    return Error{fmt::format("`waiting_weight` is {:g} (must be at most 1)", power.waiting_weight)};
  STEPCAST_ASSIGN(power.log_band, positive_number(parameters, "log_band"));
  return power;
}

std::optional<NodePower> NodePower::of(const Platform& platform) {
  if (!platform.device.power_limit_W) return std::nullopt;
  const double top_W = *platform.device.power_limit_W;
  NodePower power{.host_W = kHostShare * top_W * platform.node.gpus_per_node,
                  .gpu_idle_W = kIdleShare * top_W,
                  .gpu_busy_W = kBusyShare * top_W,
                  .gpu_top_W = top_W,
                  .waiting_weight = kWaitingWeight,
                  .log_band = kGenericBand};
  if (const ModelRecord* record = platform.find_model(kNodePowerKind)) {
    // An unreadable record counts as missing.
    if (Result<NodePower> read = NodePower::read(record->parameters, top_W)) power = *read;
  }
  if (platform.node.network) power.switch_W = kSwitchWattsPerAdapter * platform.node.network->nics_per_node;
  return power;
}

DrawUnderLimit NodePower::computing(double limit_W) const {
  return under_limit({}, {gpu_idle_W, gpu_top_W, gpu_busy_W}, limit_W);
}

double NodePower::gpu_watts(double waiting_share, std::optional<double> limit_W) const {
  const double waiting_W = gpu_idle_W + (gpu_busy_W - gpu_idle_W) * (1 - waiting_weight);
  if (!limit_W) return gpu_busy_W + (waiting_W - gpu_busy_W) * waiting_share;
  return computing(*limit_W).mean_W * (1 - waiting_share) + std::min(*limit_W, waiting_W) * waiting_share;
}

double NodePower::node_watts(double n_gpus, double waiting_share, std::optional<double> limit_W) const {
  return host_W + n_gpus * gpu_watts(waiting_share, limit_W);
}

double NodePower::cluster_watts(double n_gpus, double gpus_per_node, double waiting_share,
                                std::optional<double> limit_W) const {
  const double nodes = std::ceil(n_gpus / gpus_per_node);
  return nodes * (host_W + (nodes > 1 ? switch_W : 0)) + n_gpus * gpu_watts(waiting_share, limit_W);
}

Result<NodePower> power_under(const Platform& platform, double limit_W) {
  const std::optional<NodePower> power = NodePower::of(platform);
  if (!power)
    return Error::at("", "power limit")
        .found(fmt::format("{} without `power_limit_W`", platform.device.name))
        .advice("add the limit of its data sheet to the platform file");
  if (limit_W > power->gpu_idle_W && limit_W <= power->gpu_top_W) return *power;
  return Error::at("", "power limit")
      .found(fmt::format("{:g} W", limit_W))
      .expected(fmt::format("above the {:.0f} W of a waiting {}, at most the {:g} W of its data sheet",
                            power->gpu_idle_W, platform.device.name, power->gpu_top_W));
}

Result<double> parse_watts(std::string_view text, std::string_view flag) {
  constexpr ScanUnit kUnits[] = {{"", 1}, {"W", 1}, {"kW", 1e3}, {"MW", 1e6}};
  if (const auto watts = scan_with_unit(text, kUnits); watts && *watts < 1e12) return *watts;
  return Error::at("", std::string{flag})
      .found(fmt::format("`{}`", text.substr(0, 40)))
      .expected("500W, 40kW or 2.5MW");
}

}  // namespace stepcast
