// Tokens on their way to the ranks of their experts and back, moved by kernels that send a token once to every rank
// that needs it, and once over the network to every node (DeepEP; HybridEP the same with fewer SMs).
//
//   exchange_us(rates, {.tokens = 4096, .hidden_size = 7168, .top_k = 8, .n_experts = 256, .sms = 20},
//               {.ranks = 32, .nodes = 4, .link = ..., .network = ...})
//
// A closed form, fitted to dispatch and combine of DeepEP (calibrate/expert_fit.h). Inside a node the slower of what the
// SMs move and what the links carry; on several nodes what the network carries if that is more. The platform record
// "expert_exchange" holds the rates of all measured devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/json_value.h"
#include "stepcast/base/quantity.h"
#include "stepcast/base/result.h"
#include "stepcast/platform/platform.h"

namespace stepcast {

// Of one device and direction.
struct ExchangeRates {
  std::string device, architecture;
  bool combine = false;           // results back; else tokens there
  double startup_us = 35;         // one node
  double token_us = 0.35;         // of one SM, per token
  double own_copies = 0.2;        // copies of a token that move beside those that travel
  double sm_GBps = 20;            // that one SM moves
  double link_share = 0.7;        // of the bandwidth of the links of a GPU
  double sharpness = 3;           // of the sum of SMs and links
  double network_share = 0.9;     // of the bandwidth of the network per GPU
  double far_congestion = 1;      // time on the network per doubling of the nodes beyond four
  double network_sm_GBps = 15;    // that one SM hands on to links from the network
  double startup_per_node = 0.8;  // beyond the first, as a share of the start-up
  double log_p10 = -0.15, log_p90 = 0.15;
  std::uint64_t n_rows = 0;
  bool over_nodes = false;  // some of the rows are; said by a fit alone, records do not keep it

  friend bool operator==(const ExchangeRates&, const ExchangeRates&) = default;
};

struct TokenExchange {
  double tokens = 0;  // of one rank
  double hidden_size = 0;
  double element_bytes = 2;
  std::optional<double> dispatch_bytes;  // of an element on its way there, if not element_bytes
  std::int64_t top_k = 1, n_experts = 1;
  // Groups of experts, in the order of the ranks, of which a token visits a few; as many as there are: any.
  std::int64_t n_groups = 1, groups_per_token = 1;
  double sms = 20;  // given to the kernel
  friend bool operator==(const TokenExchange&, const TokenExchange&) = default;
};

struct ExchangePlace {
  std::int64_t ranks = 8, nodes = 1;
  BytesPerSecond link;     // of one GPU to the others of its node, one direction
  BytesPerSecond network;  // of one GPU, one direction
};

// Parts of equal size that hold at least one of the experts of a token, on average: with 256 experts on 8 parts and 8
// experts per token 5.3.
[[nodiscard]] double expected_parts(std::int64_t n_experts, std::int64_t parts, std::int64_t top_k);

// The same where routing is limited to groups of experts.
[[nodiscard]] double expected_parts(const TokenExchange& exchange, std::int64_t parts);

[[nodiscard]] double exchange_us(const ExchangeRates& rates, const TokenExchange& exchange,
                                 const ExchangePlace& place);

// So much wider, each side in ln, is the band for a number of nodes that nobody measured.
[[nodiscard]] double band_of_other_nodes(std::int64_t nodes);

class ExpertExchange {
 public:
  // Name and `kind` of the record.
  static constexpr std::string_view kRecordKind = "expert_exchange";

  std::vector<ExchangeRates> measured;

  // Of this device, else the mean of its architecture, else of all, each with a wider band.
  [[nodiscard]] std::optional<ExchangeRates> rates(const Device& device, bool combine) const;

  // Keys: rates[] of (device, architecture, direction: dispatch or combine, startup_us, ...).
  [[nodiscard]] static Result<ExpertExchange> read(const JsonValue& parameters);
  [[nodiscard]] JsonValue write() const;
};

}  // namespace stepcast
