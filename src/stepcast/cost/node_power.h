// Power of a node during a training step, and the cost of a power limit of its GPUs.
//
//   const NodePower power = NodePower::of(platform);
//   power.node_watts(8, waiting, limit_W)      // H + n (i + (busy - i) u), u = 1 - w waiting
//   under_limit({}, {...}).slow_down       // computation time under a limit over computation time without
//
// `waiting` is the share of the step in which the GPUs of a node idle or transfer to other nodes. GPUs that
// communicate inside their node draw as much as if they computed (one-node runs of node_power.csv).
#pragma once

#include <optional>
#include <string_view>

#include "stepcast/base/json_value.h"
#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// How a GPU keeps to a power limit. Work has phases with a draw above the base that is spread evenly by
// +-`spread` around its mean. A phase that would draw more than `held` x limit lowers the clock f until base
// + (draw - base) f^exponent equals it, and takes 1 - clock_bound + clock_bound / f times as long. Fitted on
// every row of power_limits.csv (V100, A40) by `stepcast-lab validate power_limits`; no GPU from Hopper on
// was measured.
struct PowerLimitRule {
  double exponent = 1.162;     // of the draw above the base, over the clock
  double clock_bound = 0.405;  // share of the time that scales with the clock
  double held = 0.976;         // share of the limit that the driver's control reaches
  double spread = 0.631;       // relative, of the draw above the base
};

// Effect of a limit on computation.
struct DrawUnderLimit {
  double slow_down = 1;  // time over the time without a limit
  double mean_W = 0;     // mean power under the limit
};

// Watts of one GPU without a limit: `base_W` the smallest draw of any work, `top_W` the data sheet, `mean_W`
// the mean of the work.
struct UncappedDraw {
  double base_W = 0, top_W = 0, mean_W = 0;
};
// Averages the rule over phases of equal share of the unlimited time.
[[nodiscard]] DrawUnderLimit under_limit(const PowerLimitRule& rule, const UncappedDraw& draw,
                                         double limit_W);

// Name and `kind` of the record of a platform.
inline constexpr std::string_view kNodePowerKind = "node_power";

// Power model of a node.
struct NodePower {
  double host_W = 0;          // of a node: CPUs, memory, fans, NICs, losses of the power supplies
  double gpu_idle_W = 0;      // of a GPU that has a job and waits
  double gpu_busy_W = 0;      // of a GPU that computes
  double gpu_top_W = 0;       // limit of the data sheet
  double waiting_weight = 0;  // w: 1 if a waiting GPU draws gpu_idle_W
  double switch_W = 0;        // per node: switches between nodes
  double log_band = 0;        // half-width in ln of node_W, p10 to p90

  // The model of a platform: its record, or else typical shares of the power limit of its GPU. None for a
  // device without a stated power limit.
  [[nodiscard]] static std::optional<NodePower> of(const Platform& platform);
  // Keys: host_W, gpu_idle_share, gpu_busy_share (of the limit), waiting_weight, log_band. Errors name the
  // key.
  [[nodiscard]] static Result<NodePower> read(const JsonValue& parameters, double gpu_top_W);

  // Mean watts of a GPU; `limit_W`: power limit of each GPU.
  [[nodiscard]] double gpu_watts(double waiting_share, std::optional<double> limit_W = {}) const;
  // Mean watts of a node with its host.
  [[nodiscard]] double node_watts(double n_gpus, double waiting_share,
                                  std::optional<double> limit_W = {}) const;
  // Watts of `n_gpus` on nodes of `gpus_per_node`, including the switches between nodes.
  [[nodiscard]] double cluster_watts(double n_gpus, double gpus_per_node, double waiting_share,
                                     std::optional<double> limit_W = {}) const;
  // Computation under a limit, by the rule above.
  [[nodiscard]] DrawUnderLimit computing(double limit_W) const;
};

// The power model of a platform, after a check of `limit_W`. Errors: a limit below the draw of a waiting GPU
// or above the data sheet, a device without a stated limit.
[[nodiscard]] Result<NodePower> power_under(const Platform& platform, double limit_W);

// Parses watts: "500W", "2.5MW", "40kW" or a number. Errors name `flag`.
[[nodiscard]] Result<double> parse_watts(std::string_view text, std::string_view flag);

}  // namespace stepcast
