// Dispatch of tokens to the ranks of their experts and combine of the results, by kernels that send a token
// once to each rank that needs it, and once over the network to each node (DeepEP; HybridEP is the same
// with fewer SMs).
//
//   exchange_us(rates, {.tokens = 4096, .hidden_size = 7168, .top_k = 8, .n_experts = 256, .sms = 20},
//               {.ranks = 32, .nodes = 4, .link = ..., .network = ...})
//
// A closed form, fitted to dispatch and combine of DeepEP (calibrate/expert_fit.h). Inside a node the
// slower of SMs and links sets the time; on several nodes the network does, if it is slower. The platform
// record "expert_exchange" has the rates of all measured devices.
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

// Fitted rates of one device and direction.
struct ExchangeRates {
  std::string device, architecture;
  bool combine = false;                    // combine (results back), else dispatch
  double startup_us = 35;                  // on one node
  double token_us = 0.35;                  // of one SM, per token
  double own_copies = 0.2;                 // copies of a token that SMs move in addition to those sent
  double sm_GBps = 20;                     // bandwidth of one SM
  double link_share = 0.7;                 // of the nominal link bandwidth of a GPU
  double sharpness = 3;                    // exponent of the sharp sum of SMs and links
  double network_share = 0.9;              // of the nominal network bandwidth per GPU
  double far_congestion = 1;               // factor on the network time per doubling of the nodes beyond four
  double network_sm_GBps = 15;             // bandwidth of one SM that forwards from the network to the links
  double startup_per_node = 0.8;           // per node beyond the first, as a share of the start-up
  double log_p10 = -0.15, log_p90 = 0.15;  // of the residuals ln(measured / predicted)
  std::uint64_t n_rows = 0;                // measured rows behind the fit
  bool over_nodes = false;  // some rows are on several nodes; set by a fit, not stored in records

  friend bool operator==(const ExchangeRates&, const ExchangeRates&) = default;
};

// Load of one dispatch or combine.
struct TokenExchange {
  double tokens = 0;                     // of one rank
  double hidden_size = 0;                // elements of a token
  double element_bytes = 2;              // of an element
  std::optional<double> dispatch_bytes;  // of an element in the dispatch, if not element_bytes
  std::int64_t top_k = 1, n_experts = 1;
  // Routing limited to groups: experts form n_groups groups in the order of the ranks, and a token visits
  // groups_per_token of them. Equal numbers: no limit.
  std::int64_t n_groups = 1, groups_per_token = 1;
  double sms = 20;  // SMs given to the kernel
  friend bool operator==(const TokenExchange&, const TokenExchange&) = default;
};

// The ranks and their bandwidths.
struct ExchangePlace {
  std::int64_t ranks = 8, nodes = 1;  // of the expert-parallel group
  BytesPerSecond link;                // of one GPU to the others of its node, one direction
  BytesPerSecond network;             // of one GPU, one direction
};

// Expected number of parts of equal size with at least one of the experts of a token: 5.3 for 256 experts on
// 8 parts and 8 experts per token.
[[nodiscard]] double expected_parts(std::int64_t n_experts, std::int64_t parts, std::int64_t top_k);

// The same with group-limited routing.
[[nodiscard]] double expected_parts(const TokenExchange& exchange, std::int64_t parts);

// Time in us of one dispatch or combine.
[[nodiscard]] double exchange_us(const ExchangeRates& rates, const TokenExchange& exchange,
                                 const ExchangePlace& place);

// Extra half-width of the band, in ln, for a number of nodes that was not measured; else 0.
[[nodiscard]] double band_of_other_nodes(std::int64_t nodes);

// The rates of all measured devices, as a platform record.
class ExpertExchange {
 public:
  // Name and `kind` of the record.
  static constexpr std::string_view kRecordKind = "expert_exchange";

  std::vector<ExchangeRates> measured;

  // Rates of this device, else the mean of its architecture, else of all devices, each step with a wider
  // band.
  [[nodiscard]] std::optional<ExchangeRates> rates(const Device& device, bool combine) const;

  // Keys: rates[] of (device, architecture, direction: dispatch or combine, startup_us, ...). Errors: an
  // entry without a device or direction, or a missing rate.
  [[nodiscard]] static Result<ExpertExchange> read(const JsonValue& parameters);
  [[nodiscard]] JsonValue write() const;
};

}  // namespace stepcast
