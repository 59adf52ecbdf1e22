#include "stepcast/predict/layer_walk.h"

#include <array>
#include <cstddef>
#include <random>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/predict/step_prices.h"

#include "tests/predict/random_training.h"

namespace stepcast::layer_walk_test {
namespace {

const Platform& platform() {
  static const Platform kPlatform = [] {
    Result<Platform> loaded = load_platform("dgx-h100");
    if (!loaded.ok()) throw std::runtime_error(loaded.error().message());
    return std::move(*loaded);
  }();
  return kPlatform;
}

// Eight tensor-parallel ranks on one node.
Placement on_one_node() {
  Placement placement;
  placement.tensor = {.n_ranks = 8, .n_nodes = 1, .ranks_per_node = 8, .min_ranks_per_node = 8};
  return placement;
}

WorkItem product(std::int64_t tokens) {
  return {"product", gemm({.m = tokens, .n = 4096, .k = 4096}, DType::bf16)};
}
WorkItem gather(double bytes, bool beside) {
  WorkItem item{"gather", Transfer{CollectiveOp::all_gather, GroupKind::tensor, Bytes{bytes}}};
  item.overlaps_next = beside;
  return item;
}

class LayerWalk : public ::testing::Test {
 protected:
  double alone(const WorkItem& item) {
    if (const Transfer* transfer = item.transfer()) {
      return prices_.price(*transfer, placement_)->time.value() * static_cast<double>(item.count);
    }
    return prices_.price(*item.operation()).time.value() * static_cast<double>(item.count);
  }
  std::vector<PlacedItem> placed(const WorkList& list) {
    std::vector<PlacedItem> items;
    const Status status = lay_out(list, prices_, placement_, items);
    EXPECT_TRUE(status.ok()) << status.error().message();
    return items;
  }
  // Numbers to reckon with: a computation that is covered takes a quarter longer.
  static StepAssumptions assumptions() {
    StepAssumptions assume;
    assume.overlap_slowdown = 0.25;
    return assume;
  }
  StepPricer prices_{platform(), assumptions()};
  Placement placement_ = on_one_node();
};

// computation  |==a==|~~gather~~|==b==|
TEST_F(LayerWalk, ItemsFollowEachOther) {
  const WorkList list{product(2048), gather(64e6, false), product(4096)};
  const double a = alone(list[0]), transfer = alone(list[1]), b = alone(list[2]);
  const std::vector<PlacedItem> items = placed(list);
  ASSERT_EQ(items.size(), 3U);
  EXPECT_DOUBLE_EQ(items[1].start_us, a);
  EXPECT_DOUBLE_EQ(items[1].exposed_us, transfer);
  EXPECT_DOUBLE_EQ(items[1].hidden_us(), 0);
  EXPECT_DOUBLE_EQ(items[2].start_us, a + transfer);
  const PricedList sum = sum_of(items);
  EXPECT_DOUBLE_EQ(sum.time_us, a + transfer + b);
  EXPECT_DOUBLE_EQ(sum.kernels, 3);
}

// A transfer shorter than the operation hides behind it; the operation slows down by the share it covers:
// b (1 + 0.25 transfer / b) = b + 0.25 transfer.
TEST_F(LayerWalk, ShortTransfersHide) {
  const WorkList list{product(2048), gather(1e6, true), product(65536)};
  const double a = alone(list[0]), transfer = alone(list[1]), b = alone(list[2]);
  ASSERT_LT(transfer, b);
  const std::vector<PlacedItem> items = placed(list);
  EXPECT_EQ(items[1].lane, WorkLane::beside);
  EXPECT_DOUBLE_EQ(items[1].start_us, a);
  EXPECT_DOUBLE_EQ(items[1].exposed_us, 0);
  EXPECT_DOUBLE_EQ(items[1].hidden_us(), transfer);
  EXPECT_DOUBLE_EQ(items[2].start_us, a);
  EXPECT_DOUBLE_EQ(items[2].slowdown, 1 + 0.25 * transfer / b);
  EXPECT_DOUBLE_EQ(sum_of(items).time_us, a + b + 0.25 * transfer);
}

// Two transfers beside one operation share a link. All of the operation is covered, so it takes 1.25 b; what
// sticks out beyond it is exposed, and the operation behind waits for it.
//
//   computation  |==b==|          |==c==|
//   beside       |~first~|~second~|
TEST_F(LayerWalk, LongTransfersStickOut) {
  const WorkList list{gather(256e6, true), gather(512e6, true), product(1024), product(2048)};
  const double first = alone(list[0]), second = alone(list[1]), b = alone(list[2]), c = alone(list[3]);
  ASSERT_GT(first, 1.25 * b);
  const std::vector<PlacedItem> items = placed(list);
  EXPECT_DOUBLE_EQ(items[0].start_us, 0);
  EXPECT_DOUBLE_EQ(items[0].exposed_us, first - 1.25 * b);
  EXPECT_DOUBLE_EQ(items[1].start_us, first);
  EXPECT_DOUBLE_EQ(items[1].exposed_us, second);
  EXPECT_DOUBLE_EQ(items[2].duration_us, 1.25 * b);
  EXPECT_DOUBLE_EQ(items[3].start_us, first + second);
  EXPECT_DOUBLE_EQ(items[3].slowdown, 1);
  const PricedList sum = sum_of(items);
  EXPECT_DOUBLE_EQ(sum.time_us, first + second + c);
  EXPECT_DOUBLE_EQ(sum.exposed_us[static_cast<std::size_t>(GroupKind::tensor)], first + second - 1.25 * b);
  EXPECT_DOUBLE_EQ(sum.transfer_us[static_cast<std::size_t>(GroupKind::tensor)], first + second);
}

TEST_F(LayerWalk, NothingHidesTheLastTransfer) {
  const WorkList list{product(1024), gather(1e6, true)};
  const std::vector<PlacedItem> items = placed(list);
  EXPECT_DOUBLE_EQ(items[1].start_us, alone(list[0]));
  EXPECT_DOUBLE_EQ(items[1].exposed_us, alone(list[1]));
}

// What joins waits for a transfer beside the rest, which is longer than the product that hides it; what is behind a join
// hides nothing of it.
//
//   computation  |==a==|==b==|......|==c==|
//   rest               |~~transfer~~|
TEST_F(LayerWalk, AJoinWaitsForTransfersBesideTheRest) {
  WorkList list{product(2048), gather(512e6, false), product(1024), product(65536)};
  list[1].overlaps_remainder = true;
  const double a = alone(list[0]), transfer = alone(list[1]), b = alone(list[2]), c = alone(list[3]);
  ASSERT_GT(transfer, b);
  ASSERT_GT(b + c, transfer);
  EXPECT_DOUBLE_EQ(sum_of(placed(list)).time_us, a + b + c);
  list[3].joins = true;
  const std::vector<PlacedItem> items = placed(list);
  EXPECT_DOUBLE_EQ(items[1].start_us, a);
  EXPECT_NEAR(items[1].exposed_us, transfer - b, 1e-9);
  EXPECT_DOUBLE_EQ(items[3].start_us, a + transfer);
  EXPECT_TRUE(items[3].joins);
  EXPECT_NEAR(sum_of(items).time_us, a + transfer + c, 1e-9);
}

// A join in front of an item that takes no time holds for the next one.
TEST_F(LayerWalk, AJoinIsNotLostWithTransfersThatTakeNoTime) {
  WorkList list{gather(512e6, false), product(1024), gather(0, false), product(65536)};
  list[0].overlaps_remainder = list[2].joins = true;
  const std::vector<PlacedItem> items = placed(list);
  ASSERT_EQ(items.size(), 3U);
  EXPECT_DOUBLE_EQ(items[2].start_us, alone(list[0]));
}

// Gradients of dispatched tokens t, experts e in the forward pass of another micro-batch, weight gradients w. Without delay
// all of t runs beside e: t - e sticks out. With delay half of it runs beside w: t / 2 - e and t / 2 - w, if above 0.
TEST_F(LayerWalk, DelayedWeightGradientsHideHalfOfTheTransfer) {
  WorkList forward{gather(512e6, false), product(4096)}, backward{gather(512e6, false), product(16384)};
  forward[0].overlaps_remainder = backward[0].overlaps_remainder = true;
  const double t = alone(forward[0]), e = alone(forward[1]), w = alone(backward[1]);
  ASSERT_TRUE(t / 2 > e && t / 2 < w);
  backward[0].share = 0;
  EXPECT_NEAR(sum_of(placed(forward)).time_us + sum_of(placed(backward)).time_us, t + w, 1e-9);
  forward[0].share = backward[0].share = 0.5;
  EXPECT_NEAR(sum_of(placed(forward)).time_us + sum_of(placed(backward)).time_us, t / 2 + w, 1e-9);
}

TEST_F(LayerWalk, LeavesOutGroupsOfOneRank) {
  placement_.tensor = {};
  EXPECT_EQ(placed({gather(1e6, true), product(1024), gather(1e6, false)}).size(), 1U);
}

// 100 launches of 4 us against 150 us on the GPU: 250 us are missing.
TEST(WaitForLaunches, AListTakesAtLeastItsLaunches) {
  PricedList list;
  list.time_us = list.low_us = list.high_us = 150;
  list.kernels = 100;
  wait_for_launches(list, time_with_launches({}, list, 4));
  EXPECT_DOUBLE_EQ(list.time_us, 400);
  EXPECT_DOUBLE_EQ(list.host_us, 250);
  EXPECT_DOUBLE_EQ(list.low_us, 280);  // 0.7 of it: kFastestLaunchShare
  EXPECT_DOUBLE_EQ(list.high_us, 400);
  wait_for_launches(list, time_with_launches({}, list, 4));
  EXPECT_DOUBLE_EQ(list.host_us, 250);
}

// What every list of random trainings must obey: no two items of a lane at once, computation and exposed
// transfers fill the list, a transfer is hidden or exposed.
TEST(LayerWalkOfTrainings, LanesAreFilledWithoutOverlap) {
  StepModel steps{platform()};
  std::mt19937_64 random{11};
  for (int i = 0; i < 100; ++i) {
    const test::RandomTraining training = test::random_training(random);
    SCOPED_TRACE(describe(training));
    const Result<PricedStep> step = steps.price(training.model, training.layout);
    ASSERT_TRUE(step.ok()) << step.error().message();
    std::vector<PlacedItem> items;
    for (const auto& layer : step->work.layer_kinds) {
      for (const WorkList* list : {&layer->forward, &layer->backward, &layer->held_back}) {
        ASSERT_TRUE(lay_out(*list, steps.worker(*step).pricer(), step->placement, items).ok());
        std::array<double, 3> free_us = {};  // by lane
        double end_us = 0;
        for (const PlacedItem& item : items) {
          double& lane_us = free_us[static_cast<std::size_t>(item.lane)];
          EXPECT_GE(item.start_us, lane_us * (1 - 1e-12)) << item.item->name;
          lane_us = item.start_us + item.duration_us;
          end_us = std::max(end_us, lane_us);
          EXPECT_GE(item.exposed_us, 0);
          EXPECT_GE(item.hidden_us(), -1e-9 * item.duration_us);
          EXPECT_GE(item.slowdown, 1);
        }
        EXPECT_NEAR(sum_of(items).time_us, end_us, 1e-9 * end_us);
      }
    }
  }
}

// Launches take 1 us. Behind the wait: exchange launched at 1, until 51; 90 launches of the host alone; the product launched
// at 92, until 122; then the attention in front of the wait of the next list, until 222. The GPU works for 180 of these.
TEST(TimeWithLaunches, TheHostHasNoLeadBehindAWait) {
  const WorkItem attention{"attention", gemm({.m = 1, .n = 1, .k = 1}, DType::bf16)};
  const WorkItem host{"host", Operation{AmountShape{.kernel_class = KernelClass::none}, DType::bf16}};
  WorkItem exchange{"exchange", Transfer{CollectiveOp::all_to_all, GroupKind::expert, Bytes{1}}};
  const auto item = [](const WorkItem& of, double us, double launches) {
    PlacedItem placed;
    placed.item = &of;
    placed.duration_us = placed.exposed_us = us;
    placed.kernels = launches;
    return placed;
  };
  const std::vector<PlacedItem> items = {item(attention, 100, 2), item(exchange, 50, 1), item(host, 0, 90),
                                         item(attention, 30, 1)};
  const PricedList sum = sum_of(items);
  EXPECT_DOUBLE_EQ(sum.time_us, 180);
  EXPECT_DOUBLE_EQ(time_with_launches(items, sum, 1), 180);  // nothing waits
  exchange.host_waits = true;
  EXPECT_DOUBLE_EQ(time_with_launches(items, sum, 1), 222);
  EXPECT_DOUBLE_EQ(time_with_launches(items, sum, 0), 180);  // launched at once
  // Launches of 10 us: the product launched at 920, until 950; the attention launched at 940, from 950 until 1,050.
  EXPECT_DOUBLE_EQ(time_with_launches(items, sum, 10), 1050);
}

}  // namespace
}  // namespace stepcast::layer_walk_test
