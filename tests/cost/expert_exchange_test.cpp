#include "stepcast/cost/expert_exchange.h"

#include <gtest/gtest.h>

namespace stepcast::expert_exchange_test {
namespace {

TEST(ExpectedParts, FollowDrawsWithoutReplacement) {
  EXPECT_DOUBLE_EQ(expected_parts(256, 1, 8), 1);
  EXPECT_DOUBLE_EQ(expected_parts(8, 8, 2), 2);   // one expert each: two ranks
  EXPECT_DOUBLE_EQ(expected_parts(8, 16, 2), 2);  // more ranks than experts
  EXPECT_DOUBLE_EQ(expected_parts(4, 2, 1), 1);
  // Four experts on two ranks, two per token: 2 (1 - 2/4 x 1/3) = 5/3.
  EXPECT_NEAR(expected_parts(4, 2, 2), 5.0 / 3, 1e-12);
  EXPECT_NEAR(expected_parts(256, 8, 8), 5.3, 0.05);
}

// 4 of 8 groups on 8 nodes: 4 nodes. On 4 nodes of two groups each: 4 (1 - C(6,4) / C(8,4)) = 4 (1 - 15/70) = 22/7. On 16
// nodes, two to a group: the 8 of 128 experts of the groups on 8 parts.
TEST(ExpectedParts, OfGroupsThatATokenVisits) {
  TokenExchange exchange{.top_k = 8, .n_experts = 256, .n_groups = 8, .groups_per_token = 4};
  EXPECT_DOUBLE_EQ(expected_parts(exchange, 8), 4);
  EXPECT_NEAR(expected_parts(exchange, 4), 22.0 / 7, 1e-12);
  EXPECT_DOUBLE_EQ(expected_parts(exchange, 16), expected_parts(128, 8, 8));
  exchange.groups_per_token = 8;
  EXPECT_DOUBLE_EQ(expected_parts(exchange, 8), expected_parts(256, 8, 8));
}

ExchangeRates links_alone() {
  ExchangeRates r;
  r.startup_us = 10;
  r.token_us = 1e-9;
  r.sm_GBps = 1e9;
  r.link_share = 1;
  r.network_share = 1;
  r.network_sm_GBps = 1e9;
  r.startup_per_node = 1e-9;
  return r;
}

TEST(Exchange, LinksCarryATokenOncePerRank) {
  // 1,000 tokens of 1,000 elements of 2 bytes to 2 ranks of 8, 7/8 of them over links of 100 GB/s: 35 us.
  const TokenExchange exchange{
      .tokens = 1000, .hidden_size = 1000, .element_bytes = 2, .top_k = 2, .n_experts = 8};
  const ExchangePlace place{8, 1, BytesPerSecond{100e9}, {}};
  EXPECT_NEAR(exchange_us(links_alone(), exchange, place), 10 + 35, 0.1);
}

TEST(Exchange, TheNetworkCarriesATokenOncePerNode) {
  // Two nodes, one expert of a token: half of 1,000 x 2,000 bytes cross at 1 GB/s: 1,000 us.
  const TokenExchange exchange{
      .tokens = 1000, .hidden_size = 1000, .element_bytes = 2, .top_k = 1, .n_experts = 16};
  const ExchangePlace place{16, 2, BytesPerSecond{1e15}, BytesPerSecond{1e9}};
  EXPECT_NEAR(exchange_us(links_alone(), exchange, place), 10 + 1000, 1);
}

TEST(Exchange, LimitedNodesSendLess) {
  TokenExchange exchange{
      .tokens = 4096, .hidden_size = 7168, .element_bytes = 2, .top_k = 8, .n_experts = 256};
  const ExchangePlace place{64, 8, BytesPerSecond{450e9}, BytesPerSecond{50e9}};
  const double any = exchange_us(links_alone(), exchange, place);
  exchange.n_groups = 8;
  exchange.groups_per_token = 4;
  const double limited = exchange_us(links_alone(), exchange, place);
  EXPECT_LT(limited, any);
  EXPECT_GT(limited, 0.5 * any);
}

// Eight nodes are one doubling beyond four; of tokens that four of them take, whoever chooses them, none is late.
TEST(Exchange, TheNetworkSlowsDownWhereTokensGoToMoreThanFourNodes) {
  ExchangeRates rates = links_alone();
  rates.far_congestion = 2;
  TokenExchange exchange{
      .tokens = 1000, .hidden_size = 1000, .element_bytes = 2, .top_k = 8, .n_experts = 256};
  const ExchangePlace place{64, 8, BytesPerSecond{1e15}, BytesPerSecond{1e9}};
  const auto network_us = [&] {
    return 7.0 / 8 * expected_parts(exchange, 8) * exchange.tokens * exchange.hidden_size * 2 / 1e3;
  };
  EXPECT_NEAR(exchange_us(rates, exchange, place), 10 + 2 * network_us(), 1);
  exchange.top_k = 22;
  EXPECT_NEAR(exchange_us(rates, exchange, place), 10 + 2 * network_us(), 1);
  exchange.top_k = 3;
  EXPECT_NEAR(exchange_us(rates, exchange, place), 10 + network_us(), 1);
  exchange.top_k = 8;
  exchange.n_groups = 8;
  exchange.groups_per_token = 4;
  EXPECT_NEAR(exchange_us(rates, exchange, place), 10 + network_us(), 1);
}

TEST(Exchange, MoreSmsAreFaster) {
  ExchangeRates rates = links_alone();
  rates.sm_GBps = 10;
  TokenExchange exchange{
      .tokens = 4096, .hidden_size = 4096, .element_bytes = 2, .top_k = 8, .n_experts = 64, .sms = 8};
  const ExchangePlace place{8, 1, BytesPerSecond{450e9}, {}};
  const double few = exchange_us(rates, exchange, place);
  exchange.sms = 24;
  EXPECT_GT(few, 2 * exchange_us(rates, exchange, place));
}

TEST(ExpertExchange, KeepsItsRecord) {
  ExpertExchange exchange;
  ExchangeRates r = links_alone();
  r.device = "X";
  r.architecture = "hopper";
  r.combine = true;
  r.token_us = 0.5;
  r.startup_per_node = 0.25;
  r.sm_GBps = r.network_sm_GBps = 12;
  exchange.measured = {r};
  const auto read = ExpertExchange::read(exchange.write());
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->measured, exchange.measured);
  Device device;
  device.name = "X";
  EXPECT_TRUE(read->rates(device, true));
  EXPECT_FALSE(read->rates(device, false));
  EXPECT_FALSE(ExpertExchange::read(JsonValue::object()).ok());
}

}  // namespace
}  // namespace stepcast::expert_exchange_test
