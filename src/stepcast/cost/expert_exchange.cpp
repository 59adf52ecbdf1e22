#include "stepcast/cost/expert_exchange.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stepcast/cost/families/record_numbers.h"

namespace stepcast {
namespace {

// Up to so many nodes the network is taken to carry its nominal bandwidth: what was measured on eight says nothing of
// two and four.
constexpr double kNearNodes = 4;
// Of the sum of what SMs and links take and what the network takes. Assumed.
constexpr double kNetworkSharpness = 4;
// What rates of another device lose in certainty, each side, in ln. Assumed.
constexpr double kOfArchitecture = 0.10, kOfAnyDevice = 0.25;

double sharp_sum(double a, double b, double sharpness) {
  if (a <= 0 || b <= 0) return std::max(a, b);
  const double most = std::max(a, b);
  return most * std::pow(std::pow(a / most, sharpness) + std::pow(b / most, sharpness), 1 / sharpness);
}

struct Field {
  std::string_view name;
  double ExchangeRates::*member;
  bool positive = true;
};
constexpr std::array<Field, 12> kFields{{{"startup_us", &ExchangeRates::startup_us},
                                         {"token_us", &ExchangeRates::token_us},
                                         {"own_copies", &ExchangeRates::own_copies},
                                         {"sm_GBps", &ExchangeRates::sm_GBps},
                                         {"link_share", &ExchangeRates::link_share},
                                         {"sharpness", &ExchangeRates::sharpness},
                                         {"network_share", &ExchangeRates::network_share},
                                         {"far_congestion", &ExchangeRates::far_congestion},
                                         {"network_sm_GBps", &ExchangeRates::network_sm_GBps},
                                         {"startup_per_doubling", &ExchangeRates::startup_per_doubling},
                                         {"log_p10", &ExchangeRates::log_p10, false},
                                         {"log_p90", &ExchangeRates::log_p90, false}}};

ExchangeRates mean_of(const std::vector<const ExchangeRates*>& of, double wider) {
  ExchangeRates mean = *of.front();
  const auto n = static_cast<double>(of.size());
  for (const Field& field : kFields) {
    double sum = 0;
    for (const ExchangeRates* r : of) sum += field.positive ? std::log(r->*field.member) : r->*field.member;
    mean.*field.member = field.positive ? std::exp(sum / n) : sum / n;
  }
  mean.log_p10 -= wider;
  mean.log_p90 += wider;
  return mean;
}

}  // namespace

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

double exchange_us(const ExchangeRates& rates, const TokenExchange& exchange, const ExchangePlace& place) {
  const auto nodes = static_cast<double>(place.nodes), ranks = static_cast<double>(place.ranks);
  double to_ranks = expected_parts(exchange.n_experts, place.ranks, exchange.top_k);
  double to_nodes = expected_parts(exchange.n_experts, place.nodes, exchange.top_k);
  if (exchange.max_nodes > 0 && exchange.max_nodes < place.nodes) {
    const double share = static_cast<double>(exchange.max_nodes) / nodes;
    to_nodes = std::min(to_nodes, static_cast<double>(exchange.max_nodes));
    to_ranks =
        std::min(to_ranks, expected_parts(std::llround(static_cast<double>(exchange.n_experts) * share),
                                          std::llround(ranks * share), exchange.top_k));
  }
  const double token_bytes = exchange.hidden_size * exchange.element_bytes;
  const double sm_us = exchange.tokens / exchange.sms *
                       (rates.token_us + (to_ranks + rates.own_copies) * token_bytes / (rates.sm_GBps * 1e3));
  const double link_us = exchange.tokens * to_ranks * (ranks - 1) / ranks * token_bytes /
                         (place.link.value() * rates.link_share * 1e-6);
  double us = sharp_sum(sm_us, link_us, rates.sharpness);
  double startup_us = rates.startup_us;
  if (place.nodes > 1) {
    const double remote = to_nodes * (nodes - 1) / nodes;
    const double congestion = std::pow(rates.far_congestion, std::max(0.0, std::log2(nodes / kNearNodes)));
    const double network_us = exchange.tokens * remote * token_bytes /
                              (place.network.value() * rates.network_share * 1e-6) * congestion;
    const double handed_on_us =
        exchange.tokens * to_nodes * token_bytes / (exchange.sms * rates.network_sm_GBps * 1e3);
    us = sharp_sum(us + handed_on_us, network_us, kNetworkSharpness);
    startup_us *= 1 + rates.startup_per_doubling * std::log2(2 * nodes);
  }
  return startup_us + us;
}

std::optional<ExchangeRates> ExpertExchange::rates(const Device& device, bool combine) const {
  std::vector<const ExchangeRates*> own, of_architecture, all;
  for (const ExchangeRates& r : measured) {
    if (r.combine != combine) continue;
    all.push_back(&r);
    if (same_name(r.architecture, device.architecture)) of_architecture.push_back(&r);
    if (device.is_called(r.device)) own.push_back(&r);
  }
  if (!own.empty()) return mean_of(own, 0);
  if (!of_architecture.empty()) return mean_of(of_architecture, kOfArchitecture);
  if (!all.empty()) return mean_of(all, kOfAnyDevice);
  return std::nullopt;
}

Result<ExpertExchange> ExpertExchange::read(const JsonValue& parameters) {
  const JsonValue* list = parameters.find("rates");
  if (list == nullptr || !list->is_array()) return Error{"`rates` is missing (an array)"};
  ExpertExchange result;
  for (const JsonValue& item : list->items()) {
    if (!item.is_object()) return Error{"`rates` must hold objects"};
    ExchangeRates rates;
    const auto text = [&](std::string_view key) {
      const JsonValue* value = item.find(key);
      return value != nullptr && value->is_text() ? value->text() : std::string{};
    };
    rates.device = text("device");
    rates.architecture = text("architecture");
    const std::string direction = text("direction");
    if (rates.device.empty() || (direction != "dispatch" && direction != "combine")) {
      return Error{"an entry of `rates` lacks its device or a direction (dispatch or combine)"};
    }
    rates.combine = direction == "combine";
    for (const Field& field : kFields) {
      STEPCAST_ASSIGN(rates.*field.member,
                      field.positive ? positive_number(item, field.name) : finite_number(item, field.name));
    }
    result.measured.push_back(std::move(rates));
  }
  return result;
}

JsonValue ExpertExchange::write() const {
  JsonValue list = JsonValue::array();
  for (const ExchangeRates& rates : measured) {
    JsonValue item = JsonValue::object();
    item.add("device", JsonValue{rates.device});
    item.add("architecture", JsonValue{rates.architecture});
    item.add("direction", JsonValue{rates.combine ? "combine" : "dispatch"});
    for (const Field& field : kFields) {
      item.add(field.name, JsonValue{rounded(rates.*field.member, 4)});
    }
    list.add(std::move(item));
  }
  JsonValue value = JsonValue::object();
  value.add("rates", std::move(list));
  return value;
}

}  // namespace stepcast
