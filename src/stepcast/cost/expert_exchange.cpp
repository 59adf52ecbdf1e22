#include "stepcast/cost/expert_exchange.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "stepcast/cost/detail/device_rates.h"

// Closed form of token dispatch and combine.

namespace stepcast {
namespace {

// Up to this number of nodes the network carries its nominal bandwidth, and also where a token goes to no
// more nodes. The measurement on eight nodes has tokens that go to 5.3 of them, at half the rate.
constexpr double kNearNodes = 4;
// Forecasts of two and four nodes from one and eight are off by 20 % on average and 45 % at the ninth decile.
constexpr double kOtherNodesBand = 0.25;
// Exponent of the sharp sum of SM and link time with network time. Assumed.
constexpr double kNetworkSharpness = 4;
constexpr std::array<detail::RateField<ExchangeRates>, 12> kFields{
    {{"startup_us", &ExchangeRates::startup_us},
     {"token_us", &ExchangeRates::token_us},
     {"own_copies", &ExchangeRates::own_copies},
     {"sm_GBps", &ExchangeRates::sm_GBps},
     {"link_share", &ExchangeRates::link_share},
     {"sharpness", &ExchangeRates::sharpness},
     {"network_share", &ExchangeRates::network_share},
     {"far_congestion", &ExchangeRates::far_congestion},
     {"network_sm_GBps", &ExchangeRates::network_sm_GBps},
     {"startup_per_node", &ExchangeRates::startup_per_node},
     {"log_p10", &ExchangeRates::log_p10, false},
     {"log_p90", &ExchangeRates::log_p90, false}}};
constexpr std::span<const detail::RateField<ExchangeRates>> kRates{kFields};

}  // namespace

// parts * (1 - probability that none of top_k draws without replacement is in a given part).
double expected_parts(std::int64_t n_experts, std::int64_t parts, std::int64_t top_k) {
  if (parts <= 1 || n_experts <= 0) return 1;
  const double all = static_cast<double>(n_experts),
               of_part = std::max(1.0, all / static_cast<double>(parts));
  double none_here = 1;
  for (std::int64_t i = 0; i < std::min(top_k, n_experts); ++i) {
    const auto drawn = static_cast<double>(i);
    none_here *= std::max(0.0, all - of_part - drawn) / (all - drawn);
  }
  return std::min(static_cast<double>(parts), all / of_part) * (1 - none_here);
}

// Group-limited routing. Parts that contain whole groups: the number of parts that the visited groups are on.
// Smaller parts: only those of the visited groups can be reached.
double expected_parts(const TokenExchange& exchange, std::int64_t parts) {
  const std::int64_t groups = exchange.n_groups, visited = exchange.groups_per_token;
  if (groups <= 1 || visited >= groups || visited < 1)
    return expected_parts(exchange.n_experts, parts, exchange.top_k);
  if (parts <= groups) return expected_parts(groups, parts, visited);
  return expected_parts(exchange.n_experts * visited / groups, parts * visited / groups, exchange.top_k);
}

double exchange_us(const ExchangeRates& rates, const TokenExchange& exchange, const ExchangePlace& place) {
  const auto nodes = static_cast<double>(place.nodes), ranks = static_cast<double>(place.ranks);
  const double to_ranks = expected_parts(exchange, place.ranks),
               to_nodes = expected_parts(exchange, place.nodes);
  const double token_bytes = exchange.hidden_size * exchange.element_bytes;
  const double sm_us = exchange.tokens / exchange.sms *
                       (rates.token_us + (to_ranks + rates.own_copies) * token_bytes / (rates.sm_GBps * 1e3));
  const double link_us = exchange.tokens * to_ranks * (ranks - 1) / ranks * token_bytes /
                         (place.link.value() * rates.link_share * 1e-6);
  double us = detail::sharp_sum(sm_us, link_us, rates.sharpness);
  double startup_us = rates.startup_us;
  if (place.nodes > 1) {
    const double remote = to_nodes * (nodes - 1) / nodes;
    static const double measured_on = expected_parts(256, 8, 8);
    const double reach = std::clamp((to_nodes - kNearNodes) / (measured_on - kNearNodes), 0.0, 1.0);
    const double congestion =
        std::pow(rates.far_congestion, reach * std::max(0.0, std::log2(nodes / kNearNodes)));
    const double network_us = exchange.tokens * remote * token_bytes /
                              (place.network.value() * rates.network_share * 1e-6) * congestion;
    const double handed_on_us =
        exchange.tokens * to_nodes * token_bytes / (exchange.sms * rates.network_sm_GBps * 1e3);
    us = detail::sharp_sum(us + handed_on_us, network_us, kNetworkSharpness);
    // Start-up handshakes visit all nodes one after the other, on both sides (DeepEP, notify_dispatch).
    startup_us *= 1 + rates.startup_per_node * (nodes - 1);
  }
  return startup_us + us;
}

double band_of_other_nodes(std::int64_t nodes) {
  const bool is_measured = nodes == 1 || nodes == 2 || nodes == 4 || nodes == 8;
  return is_measured ? 0 : kOtherNodesBand;
}

std::optional<ExchangeRates> ExpertExchange::rates(const Device& device, bool combine) const {
  std::vector<const ExchangeRates*> of_direction;
  for (const ExchangeRates& r : measured)
    if (r.combine == combine) of_direction.push_back(&r);
  return detail::rates_for<ExchangeRates>(device, of_direction, kRates);
}

Result<ExpertExchange> ExpertExchange::read(const JsonValue& parameters) {
  ExpertExchange exchange;
  const auto read_direction = [](const auto& text, ExchangeRates& rates) -> Status {
    const std::string direction = text("direction");
    if (rates.device.empty() || (direction != "dispatch" && direction != "combine"))
      return Error{"an entry of `rates` lacks its device or a direction (dispatch or combine)"};
    rates.combine = direction == "combine";
    return Ok{};
  };
  STEPCAST_ASSIGN(exchange.measured, detail::read_rates<ExchangeRates>(parameters, kRates, read_direction));
  return exchange;
}

JsonValue ExpertExchange::write() const {
  return detail::write_rates<ExchangeRates>(
      measured, kRates, [](JsonValue& item, const ExchangeRates& rates) {
        item.add("direction", JsonValue{rates.combine ? "combine" : "dispatch"});
      });
}

}  // namespace stepcast
