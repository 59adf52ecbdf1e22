#include "stepcast/cost/fair_shares.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace stepcast::fair_shares_test {
namespace {

TEST(FairShares, TwoJobsHalveALink) {
  const std::vector<FlowClass> jobs{{1, {{0, 1}}}, {1, {{0, 1}}}};
  const std::vector<double> link{1.0};
  EXPECT_EQ(fair_rates(jobs, link), (std::vector<double>{0.5, 0.5}));
}

TEST(FairShares, WhoWantsLessThanItsShareGetsIt) {
  const std::vector<FlowClass> jobs{{0.2, {{0, 1}}}, {1, {{0, 1}}}, {1, {{0, 1}}}};
  const std::vector<double> link{1.0};
  const std::vector<double> rates = fair_rates(jobs, link);
  EXPECT_DOUBLE_EQ(rates[0], 0.2);
  EXPECT_DOUBLE_EQ(rates[1], 0.4);
  EXPECT_DOUBLE_EQ(rates[2], 0.4);
}

TEST(FairShares, IncastSharesTheReceiversLink) {
  // Links 0 to 6: out of each sender. Link 7: into the receiver.
  std::vector<FlowClass> senders;
  for (std::size_t s = 0; s < 7; ++s) senders.push_back({50, {{s, 1}, {7, 1}}});
  const std::vector<double> links(8, 50.0);
  for (const double rate : fair_rates(senders, links)) EXPECT_DOUBLE_EQ(rate, 50.0 / 7);
  // The same as one class of seven flows.
  const std::vector<FlowClass> alike{{50, {{0, 7}}}};
  EXPECT_DOUBLE_EQ(fair_rates(alike, std::vector<double>{50})[0], 50.0 / 7);
}

TEST(FairShares, ARingOverTwoRailsIsHeldByTheBusyOne) {
  // Half of a ring passes each rail; another job wants all of the second.
  const std::vector<FlowClass> flows{{50, {{0, 1}}}, {50, {{1, 1}}}, {50, {{1, 1}}}};
  const std::vector<double> rails{50, 50};
  EXPECT_EQ(fair_rates(flows, rails), (std::vector<double>{50, 25, 25}));
}

// The parking lot: a long flow over two links and a short one on each, of 1 and 2.
TEST(FairShares, WhatOneLinkLeavesFillsTheOther) {
  const std::vector<FlowClass> flows{{9, {{0, 1}, {1, 1}}}, {9, {{0, 1}}}, {9, {{1, 1}}}};
  const std::vector<double> links{1, 2};
  EXPECT_EQ(fair_rates(flows, links), (std::vector<double>{0.5, 0.5, 1.5}));
}

// No link carries more than it can, and every flow has all it wants or passes a full link on which nobody has more.
TEST(FairShares, EveryRateIsMaxMinFair) {
  std::mt19937_64 random{11};
  std::uniform_real_distribution<double> amount{0.1, 4};
  for (int round = 0; round < 500; ++round) {
    std::vector<double> links(1 + random() % 4);
    for (double& capacity : links) capacity = amount(random);
    std::vector<FlowClass> flows(1 + random() % 5);
    for (FlowClass& flow : flows) {
      flow.demand = amount(random);
      for (std::size_t l = 0; l < links.size(); ++l)
        if (random() % 2 == 0) flow.passes.push_back({l, 1.0 + static_cast<double>(random() % 3)});
    }
    const std::vector<double> rates = fair_rates(flows, links);
    std::vector<double> load(links.size(), 0.0), most(links.size(), 0.0);
    for (std::size_t f = 0; f < flows.size(); ++f) {
      for (const FlowClass::Passage& p : flows[f].passes) {
        load[p.link] += p.flows * rates[f];
        most[p.link] = std::max(most[p.link], rates[f]);
      }
    }
    for (std::size_t l = 0; l < links.size(); ++l) ASSERT_LE(load[l], links[l] * (1 + 1e-9));
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const bool held = std::ranges::any_of(flows[f].passes, [&](const FlowClass::Passage& p) {
        return load[p.link] >= links[p.link] * (1 - 1e-9) && rates[f] >= most[p.link] * (1 - 1e-9);
      });
      ASSERT_TRUE(held || rates[f] >= flows[f].demand * (1 - 1e-9)) << round << ": flow " << f;
    }
  }
}

}  // namespace
}  // namespace stepcast::fair_shares_test
