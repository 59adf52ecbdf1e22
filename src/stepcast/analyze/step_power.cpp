#include "stepcast/analyze/step_power.h"

#include <algorithm>
#include <cmath>

#include "stepcast/cost/node_power.h"
#include "stepcast/workload/step_work.h"

namespace stepcast {
namespace {

// Share of the step in which nothing runs on a GPU, or only a transfer that leaves the node. Tensor-parallel groups do not.
double waiting_share_of(const Forecast& f, bool several_nodes) {
  if (f.classes.empty() || f.critical().window_ms <= 0) return 0;
  const ForecastClass& c = f.critical();
  const double inside = time_ms(c.exposed_comm_by_group_ms, to_string(GroupKind::tensor));
  const double waiting = sum_ms(c.idle_ms) + (several_nodes ? c.exposed_comm_ms - inside : 0);
  return std::clamp(waiting / c.window_ms, 0.0, 1.0);
}

}  // namespace

void add_power(Forecast& forecast, const Platform& platform, std::optional<double> limit_W) {
  const std::optional<NodePower> power = NodePower::of(platform);
  if (!power || forecast.n_gpus == 0) return;
  const auto n_gpus = static_cast<double>(forecast.n_gpus);
  const double in_node = platform.node.gpus_per_node;
  ForecastPower out{.waiting_share = waiting_share_of(forecast, n_gpus > in_node), .limit_W = limit_W};
  out.gpu_W = power->gpu_watts(out.waiting_share, limit_W);
  out.node_W = power->node_watts(std::min(n_gpus, in_node), out.waiting_share, limit_W);
  out.node_p10_W = out.node_W * std::exp(-power->log_band);
  out.node_p90_W = out.node_W * std::exp(power->log_band);
  out.cluster_W = power->cluster_watts(n_gpus, in_node, out.waiting_share, limit_W);
  if (const std::optional<double>& tokens = forecast.throughput.tokens_per_s; tokens && *tokens > 0)
    out.joules_per_token = out.cluster_W / *tokens;
  forecast.power = out;
}

}  // namespace stepcast
