#include <vector>

#include <gtest/gtest.h>

#include "stepcast/analyze/collective_list.h"

#include "tests/analyze/hand_made.h"
#include "tests/support/sketch.h"

namespace stepcast::collectives_test {
namespace {

using fixtures::BlockSketch;
using fixtures::ProgramSketch;

TEST(Meetings, SayWhoCameLastAndHowLongTheOthersWaited) {
  const fixtures::TwoRanks hand;
  const Timeline timeline = fixtures::simulated(hand.program);
  const FlatProgram flat{hand.program};
  const std::vector<CollectiveOccurrence> all =
      collective_occurrences(flat, TaskTimes::simulated(flat, timeline));
  ASSERT_EQ(all.size(), 1U);
  const CollectiveOccurrence& meeting = all.front();
  EXPECT_EQ(meeting.op, CollectiveOp::all_reduce);
  EXPECT_EQ(meeting.message_bytes, 4096);
  EXPECT_EQ(meeting.last, 1U);
  EXPECT_DOUBLE_EQ(meeting.start_us(), 3);
  EXPECT_DOUBLE_EQ(meeting.total_wait_us, 7);
  EXPECT_DOUBLE_EQ(meeting.longest_wait_us, 7);
  EXPECT_DOUBLE_EQ(meeting.transfer_us, 8);
  EXPECT_DOUBLE_EQ(meeting.members[0].wait_us, 7);
  EXPECT_DOUBLE_EQ(meeting.members[0].exposed_us, 7);  // 10-11 lies under the gemm
  EXPECT_DOUBLE_EQ(meeting.members[1].wait_us, 0);
  EXPECT_DOUBLE_EQ(meeting.members[1].exposed_us, 8);
}

// Three ranks arrive at 1, 5 and 3; the root is the third. Every transfer takes 2.
std::vector<double> waits_in(CollectiveKind kind) {
  ProgramSketch sketch;
  std::vector<CollectiveMember> members;
  for (const double arrival : {1.0, 5.0, 3.0}) {
    BlockSketch block{"b", 1};
    block.work(0, arrival);
    const TaskId meet = block.join(0, 2);
    const RankClassId c = sketch.ranks(1, 1, {sketch.block(block)});
    members.push_back({c, InstanceId{0}, meet});
  }
  sketch.join(kind, members, /*root=*/2);
  const Timeline timeline = fixtures::simulated(sketch.program);
  const FlatProgram flat{sketch.program};
  std::vector<double> waits;
  const auto all = collective_occurrences(flat, TaskTimes::simulated(flat, timeline));
  for (const CollectiveArrival& m : all.front().members) {
    EXPECT_DOUBLE_EQ(m.transfer_us, 2);
    waits.push_back(m.wait_us);
  }
  return waits;
}

TEST(Meetings, WaitForTheLastOrForTheRoot) {
  EXPECT_EQ(waits_in(CollectiveKind::all), (std::vector<double>{4, 0, 2}));
  EXPECT_EQ(waits_in(CollectiveKind::rooted_from),
            (std::vector<double>{2, 0, 0}));  // the second found the root there
}

}  // namespace
}  // namespace stepcast::collectives_test
