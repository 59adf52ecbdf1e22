#include "stepcast/cost/embedding_lookup.h"

#include <gtest/gtest.h>

#include "stepcast/base/quantity.h"
#include "stepcast/cost/plausible_lookups.h"

namespace stepcast::embedding_lookup_test {
namespace {

// 1 byte per nanosecond and share, 10 MB of cache, no launch floor: times can be worked out by hand.
Device device_of(double memory_GBps) {
  Device device;
  device.name = "test";
  device.memory_bandwidth = BytesPerSecond{memory_GBps * 1e9};
  device.memory_size = Bytes{1e12};
  device.l2_size = Bytes{10e6};
  device.sm_count = 10;
  device.kernel_floor = Microseconds{1};
  device.host_link_bandwidth = BytesPerSecond{memory_GBps * 1e9 / 100};
  return device;
}

TableLookup table_of(double rows, double pooling) {
  return {.rows = rows, .dim = 64, .bags = 10000, .pooling = pooling};
}

TEST(LookupModel, GathersMissesAtTheRateOfScatteredRows) {
  const LookupModel model{device_of(1000), {.memory_share = 0.5, .gather_share = 1}};
  // 1e9 rows, each as likely: of 100,000 lookups next to none finds its row cached. 256 B a row at 0.5 of 1e6 B/us:
  // 51.2 us. Outputs 10,000 x 256 B and indices 110,000 x 8 B, 3.44e6 B at 0.82e6 B/us: 4.2 us.
  const LookupCost cost = model.cost(table_of(1e9, 10));
  EXPECT_NEAR(cost.forward_us, 51.2 + 3.44 / 0.82, 0.05);
  EXPECT_NEAR(cost.distinct_rows, 1e5, 10);
}

TEST(LookupModel, GathersHitsAtTheirCap) {
  const LookupModel model{device_of(1000), {.memory_share = 0.5, .gather_share = 1}};
  // 100 rows stay cached: 99,900 hits at 1e6 B/us, 25.6 us; 100 misses.
  const LookupCost cost = model.cost(table_of(100, 10));
  EXPECT_DOUBLE_EQ(cost.hits, 1e5 - 100);
  EXPECT_NEAR(cost.forward_us, 25.6 + 0.05 + 3.44 / 0.82, 0.1);
}

TEST(LookupModel, EmptyBagsCostTheirOutputs) {
  const LookupModel model{device_of(1000)};
  const LookupCost cost = model.cost(table_of(1000, 0));
  EXPECT_NEAR(cost.forward_us, (10000 * 256 + 10000 * 8) / 0.82e6, 1e-6);
  EXPECT_EQ(model.backward_us(cost), 12);  // kernels of 1 us
  EXPECT_EQ(model.backward_us(LookupCost{}), 0);
  EXPECT_EQ(model.forward_us(LookupCost{}), 0);
}

TEST(LookupModel, MoreReuseIsNeverSlower) {
  const LookupModel model{device_of(1000)};
  double forward = 1e300, backward = 1e300;
  for (const double exponent : {0.0, 0.5, 1.0, 1.5}) {
    const AccessPattern pattern = AccessPattern::zipf(1e7, exponent);
    TableLookup table = table_of(1e7, 20);
    table.pattern = &pattern;
    const LookupCost cost = model.cost(table);
    EXPECT_LE(cost.forward_us, forward);
    EXPECT_LE(cost.backward_us, backward);
    forward = cost.forward_us, backward = cost.backward_us;
  }
}

TEST(LookupModel, TablesOfOneKernelAddUp) {
  const LookupModel model{device_of(1000)};
  const LookupCost a = model.cost(table_of(1e6, 10)), b = model.cost(table_of(1e4, 3));
  LookupCost both = a;
  both += b;
  EXPECT_DOUBLE_EQ(both.forward_us, a.forward_us + b.forward_us);
  EXPECT_LT(model.forward_us(both), model.forward_us(a) + model.forward_us(b));
}

TEST(LookupModel, HostMemoryIsSlowerAndAssumed) {
  const LookupModel model{device_of(1000)};
  TableLookup table = table_of(1e8, 10);
  const double hbm = model.cost(table).forward_us;
  table.placement = TablePlacement::uvm_cached;
  const double cached = model.cost(table).forward_us;
  table.placement = TablePlacement::uvm;
  const double uvm = model.cost(table).forward_us;
  EXPECT_LT(hbm, cached);
  EXPECT_LT(cached, uvm);
  EXPECT_EQ(model.estimate(uvm, true, Direction::forward).source, EstimateSource::assumed);
  EXPECT_EQ(model.estimate(hbm, false, Direction::forward).source, EstimateSource::analytic);
}

TEST(LookupModel, MissesBesideHitsTakeTheLongerOfBoth) {
  // As GathersMissesAtTheRateOfScatteredRows: 51.2 us of misses and 4.2 us of outputs at 0.5 and 0.82e6 B/us, longer than
  // the 25.6 us that all 100,000 rows of 256 B take to be gathered at 1e6 B/us.
  const LookupModel model{device_of(1000),
                          {.memory_share = 0.5, .gather_share = 1, .misses_beside_hits = true}};
  EXPECT_NEAR(model.cost(table_of(1e9, 10)).forward_us, 51.2 + 3.44 / 0.82, 0.05);
  // And shorter where next to all hit.
  EXPECT_NEAR(model.cost(table_of(100, 10)).forward_us, 25.6, 0.05);
}

TEST(LookupModel, NarrowGradientsTakePartOfAWarpOrLeaveLanesIdle) {
  TableLookup narrow = table_of(1e4, 10), wide = narrow;
  narrow.dim = 32, wide.dim = 128;
  const auto gradients_us = [](const TableLookup& table, double fewest) {
    const LookupModel model{device_of(1000), {.backward_memory_share = 1, .fewest_columns = fewest}};
    const LookupCost cost = model.cost(table);
    return cost.backward_us - cost.sort_us - 2 * cost.distinct_rows * table.dim * 4 / 1e6;
  };
  // 100,000 lookups of 32 and of 128 columns of 4 B at 1e6 B/us.
  EXPECT_NEAR(gradients_us(narrow, 32), 12.8, 1e-9);
  EXPECT_NEAR(gradients_us(narrow, 128), 51.2, 1e-9);
  EXPECT_NEAR(gradients_us(wide, 32), 51.2, 1e-9);
  narrow.dim = 40;  // of 64
  EXPECT_NEAR(gradients_us(narrow, 32), 25.6, 1e-9);
}

TEST(LookupModel, PlausibleModelsHoldEachUnknownBothWays) {
  const auto all = plausible_lookups();
  double split = 0, packed = 0, beside = 0, keeps = 0, keeps_and_packs = 0;
  for (const LookupConstants& c : all) {
    split += c.most_of_one_block < 1e9 ? 1 : 0;
    packed += c.fewest_columns < 128 ? 1 : 0;
    beside += c.misses_beside_hits ? 1 : 0;
    keeps += c.keeps_rows ? 1 : 0;
    keeps_and_packs += c.keeps_rows && c.fewest_columns < 128 ? 1 : 0;
    EXPECT_EQ(c.memory_share, LookupConstants{}.memory_share);
  }
  EXPECT_EQ(split, 4);
  EXPECT_EQ(packed, 4);
  EXPECT_EQ(beside, 4);
  EXPECT_EQ(keeps, 4);
  EXPECT_EQ(keeps_and_packs, 2);
}

TEST(LookupModel, WithoutACacheAllRowsComeFromTheMemory) {
  const TableLookup hot = table_of(100, 10);
  const LookupCost without =
      LookupModel{device_of(1000), {.memory_share = 0.5, .keeps_rows = false}}.cost(hot);
  EXPECT_EQ(without.hits, 0);
  EXPECT_NEAR(without.forward_us, 51.2 + 3.44 / 0.82, 0.05);
}

TEST(LookupModel, TheLongestBagBinds) {
  const LookupModel model{device_of(1000)};
  TableLookup table = table_of(1e6, 1);
  const double even = model.forward_us(model.cost(table));
  table.longest_bag = 10000;
  EXPECT_GT(model.forward_us(model.cost(table)), even + 1000);
}

}  // namespace
}  // namespace stepcast::embedding_lookup_test
