// What a node draws during a training step, and what a power limit of its GPUs costs.
//
//   const NodePower power = NodePower::of(platform);
//   power.node_watts(8, waiting, limit_W)      // H + n (i + (busy - i) u), u = 1 - w waiting
//   under_limit({}, {...}).slow_down       // computation under a limit over computation without
//
// `waiting` is the share of the step in which the GPUs of a node have nothing to do, or transfer to other nodes. GPUs that
// exchange inside their node draw as much as if they computed (one-node runs of node_power.csv).
#pragma once

#include <optional>
#include <string_view>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// How a GPU holds a limit. Work comes in phases whose draw above the base spreads evenly by +-`spread` about its mean;
// a phase that would draw more than `held` x limit lowers the clock f until base + (draw - base) f^exponent is that, and
// takes 1 - clock_bound + clock_bound / f times as long. Fitted on every row of power_limits.csv (V100, A40) by
// `stepcast-lab validate power_limits`; no GPU from Hopper on was measured.
struct PowerLimitRule {
  double exponent = 1.162;     // of the draw above the base, over the clock
  double clock_bound = 0.405;  // share of the time that follows the clock
  double held = 0.976;         // share of the limit that the driver's control reaches
  double spread = 0.631;
};

struct DrawUnderLimit {
  double slow_down = 1;  // time over that without a limit
  double mean_W = 0;
};

// Watts of one GPU: `base_W` the smallest draw of any work, `top_W` the data sheet, `mean_W` the work without a limit.
struct UncappedDraw {
  double base_W = 0, top_W = 0, mean_W = 0;
};
[[nodiscard]] DrawUnderLimit under_limit(const PowerLimitRule& rule, const UncappedDraw& draw,
                                         double limit_W);

// Name and `kind` of the record of a platform.
inline constexpr std::string_view kNodePowerKind = "node_power";

struct NodePower {
  double host_W = 0;          // of a node: CPUs, memory, fans, adapters, losses of the supplies
  double gpu_idle_W = 0;      // of a GPU that holds a job and waits
  double gpu_busy_W = 0;      // of a GPU that computes
  double gpu_top_W = 0;       // limit of the data sheet
  double waiting_weight = 0;  // w: 1 if a GPU that waits draws gpu_idle_W
  double switch_W = 0;        // of a node: switches between nodes
  double log_band = 0;        // half-width in ln of node_W, p10 to p90

  // GPUs of a platform's node. Of its record; a platform without one as nodes usually are: shares of its GPU's limit.
  // Nothing for a device that states no power limit.
  [[nodiscard]] static std::optional<NodePower> of(const Platform& platform);
  // Keys: host_W, gpu_idle_share, gpu_busy_share (of the limit), waiting_weight, log_band. Errors name the key.
  [[nodiscard]] static Result<NodePower> read(const JsonValue& parameters, double gpu_top_W);

  // `limit_W`: of each GPU.
  [[nodiscard]] double gpu_watts(double waiting_share, std::optional<double> limit_W = {}) const;
  [[nodiscard]] double node_watts(double n_gpus, double waiting_share,
                                  std::optional<double> limit_W = {}) const;
  // Of `n_gpus` in nodes of so many, with the switches between them.
  [[nodiscard]] double cluster_watts(double n_gpus, double gpus_per_node, double waiting_share,
                                     std::optional<double> limit_W = {}) const;
  [[nodiscard]] DrawUnderLimit computing(double limit_W) const;
};

// A power limit that the GPUs of this platform can be set to: its power model. Errors: a limit that is below what a
// waiting GPU draws or above the data sheet, a device that states no limit.
[[nodiscard]] Result<NodePower> power_under(const Platform& platform, double limit_W);

// Watts: "500W", "2.5MW", "40kW" or a number. Errors name `flag`.
[[nodiscard]] Result<double> parse_watts(std::string_view text, std::string_view flag);

}  // namespace stepcast
