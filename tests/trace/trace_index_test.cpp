// What is looked up once per file for all of its steps.
#include "stepcast/trace/trace_index.h"

#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/rebuild/recorded_program.h"

#include "tests/support/trace_builder.h"

namespace stepcast::trace_index_test {
namespace {

using detail::TraceIndex;
using test::TraceBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Nanoseconds us(double time) { return Nanoseconds{static_cast<std::int64_t>(time * 1000)}; }

// Steps [0, 100] and [100, 200]; in each a launch at 10 and a kernel of 60 at 50, so that it ends 10 after the step.
RecordedRank two_steps() {
  TraceBuilder b;
  const int main = b.thread(1);
  for (const double at : {0.0, 100.0}) {
    b.step(main, static_cast<int>(at / 100) + 1, at, 100);
    b.op(main, "aten::mm", at + 5, 40);
    b.launch(main, at + 10, 6, 7, "kernel", at + 50, 60);
  }
  return b.build();
}

TEST(TraceIndex, FindsOpsOfAStretch) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.op(main, "whole", 0, 1000);
  b.op(main, "closed", 10, 20);
  b.op(main, "open", 90, 50);
  b.op(main, "inner", 110, 10);
  b.op(main, "behind", 300, 10);
  const RecordedRank recorded = b.build();
  const TraceIndex index(recorded);
  const auto names = [&](double begin, double end) {
    std::vector<std::string_view> out;
    for (const std::int32_t i : index.ops_in(0, us(begin), us(end)))
      out.push_back(recorded.names.text(recorded.cpu_ops[static_cast<std::size_t>(i)].name));
    return out;
  };
  EXPECT_THAT(names(100, 200), ElementsAre("whole", "open", "inner"));
  EXPECT_THAT(names(140, 300), ElementsAre("whole"));
  EXPECT_THAT(names(1000, 2000), IsEmpty());
}

TEST(TraceIndex, FindsCallsAndWorkOfAStep) {
  const RecordedRank recorded = two_steps();
  const TraceIndex index(recorded);
  ASSERT_EQ(index.steps().size(), 2U);
  const detail::IndexRange first = index.calls_of(index.steps()[0]),
                           second = index.calls_of(index.steps()[1]);
  EXPECT_EQ(first.last, 1U);
  EXPECT_EQ(second.first, 1U);
  EXPECT_EQ(second.last, 2U);
  const std::int64_t correlation = recorded.runtime_calls[0].correlation;
  EXPECT_EQ(index.work_of(correlation).size(), 1U);
  EXPECT_EQ(index.call_outside(correlation, second), 0U);
  EXPECT_EQ(index.call_outside(correlation, first), std::nullopt);
  // The first kernel runs until 110, into the second step.
  EXPECT_EQ(index.first_work_running_at(us(100)), 0U);
  EXPECT_EQ(index.first_work_running_at(us(110)), 1U);
  EXPECT_FALSE(index.shows_work_before(us(10)));
  EXPECT_TRUE(index.shows_work_before(us(11)));
}

// An index that is shared says the same of every step as one of its own.
TEST(TraceIndex, SharedIndexChangesNothing) {
  const RecordedRank recorded = two_steps();
  const RecordedInput alone{&recorded, nullptr};
  RecordedInput shared = alone;
  shared.index = index_trace(shared);
  for (const std::int64_t step : {1, 2}) {
    RebuildOptions options;
    options.step = step;
    const auto a = rebuild_program({&alone, 1}, options), b = rebuild_program({&shared, 1}, options);
    ASSERT_TRUE(a.ok()) << a.error().message();
    ASSERT_TRUE(b.ok()) << b.error().message();
    EXPECT_EQ(a->facts[0].step_number, step);
    EXPECT_EQ(a->facts[0].left_over_kernels, step == 1 ? 0U : 1U);
    EXPECT_EQ(b->facts[0].left_over_kernels, a->facts[0].left_over_kernels);
    ASSERT_EQ(a->measured[0].size(), b->measured[0].size());
    for (std::size_t t = 0; t < a->measured[0].size(); ++t)
      EXPECT_EQ(a->measured[0][t].start_us, b->measured[0][t].start_us) << t;
  }
}

}  // namespace
}  // namespace stepcast::trace_index_test
