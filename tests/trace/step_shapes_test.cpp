// Steps of unequal batches: the typical one, and what is said of the others.
#include "stepcast/trace/step_shapes.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/trace/rank_file.h"
#include "stepcast/trace/readers.h"
#include "stepcast/trace/step_selection.h"
#include "stepcast/trace/trace_summary.h"

#include "lab/kineto_writer.h"
#include "tests/support/trace_builder.h"
#include "tests/support/trace_files.h"

namespace stepcast::step_shapes_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(StepShapes, MoveWithTheBatchWhateverTheWeights) {
  const double size = size_by_shapes("aten::mm", "[[2048, 8192], [8192, 8192]]");
  EXPECT_NEAR(size_by_shapes("aten::mm", "[[4096,8192],[8192,8192]]") / size, std::sqrt(2), 1e-9);
  EXPECT_NEAR(size_by_shapes("aten::addmm", "[[16], [8, 16], [16, 16], [], []]"), std::cbrt(16 * 128 * 256),
              1e-6);
  EXPECT_EQ(size_by_shapes("aten::embedding", "[[100, 16], [7]]"), 0) << "lookups vary a little";
  EXPECT_EQ(size_by_shapes("aten::mm", "[[0, 16], []]"), 0);
  EXPECT_EQ(size_by_shapes("aten::mm", "\"nonsense"), 0);
}

StepLength length(std::int64_t number, double us, double size, bool is_special = false) {
  return {.number = number, .us = us, .is_special = is_special, .size = {size}};
}

TEST(StepShapes, TheTypicalStepIsTheMedianOneOfTheMostFrequentShape) {
  const std::vector<StepLength> steps{length(1, 10, 100), length(2, 90, 900),     length(3, 30, 100.4),
                                      length(4, 91, 901), length(5, 20, 100),     length(6, 92, 902),
                                      length(7, 25, 100), length(8, 5, 100, true)};
  EXPECT_EQ(typical_step(steps), 7) << "of 10, 30, 20, 25 the later of the two in the middle";
  const std::vector<ShapeGroup> groups = shape_groups(steps);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_THAT(groups[0].steps, ElementsAre(1, 3, 5, 7)) << "without the special one";
  EXPECT_EQ(groups[1].median_step, 4);
  EXPECT_EQ(
      describe(groups, 7),
      "the steps are of 2 shapes: 4 as step 7 (median 0.025 ms), 3 as step 4 (median 0.091 ms; --step 4)");
}

TEST(StepShapes, ShapesThatAreAsFrequentCountTogether) {
  const std::vector<StepLength> steps{length(1, 10, 100), length(2, 20, 200), length(3, 30, 300)};
  EXPECT_EQ(typical_step(steps), 2) << "the median of all";
  EXPECT_EQ(shape_groups(steps).size(), 3U);
}

TEST(StepShapes, OfOneShapeOrUnknownOnesTheMedianCounts) {
  EXPECT_EQ(typical_step({length(1, 10, 0), length(2, 30, 0), length(3, 20, 0)}), 3);
  EXPECT_THAT(shape_groups({length(1, 10, 0), length(2, 30, 0)}), IsEmpty());
  EXPECT_EQ(describe(shape_groups({length(1, 10, 7), length(2, 30, 7)}), 1), "");
  EXPECT_EQ(typical_step({}), std::nullopt);
}

// Steps 1 to 7, of 2 and 5 sequences each: the first take 1,000 us and are more.
test::TraceBuilder packed() {
  test::TraceBuilder trace;
  const int main = trace.thread(1);
  for (int i = 1; i <= 7; ++i) {
    const double at = 10'000.0 * i, length_us = i % 3 == 0 ? 4000 + i : 1000 + i;
    trace.step(main, i, at, length_us);
    trace.op(main, "aten::mm", at + 30, 300).launch(main, at + 40, 5, 7, "gemm", at + 50, 200);
  }
  return trace;
}

std::string text_of_packed() {
  RecordedRank rank = packed().build();
  int n = 0;
  for (CpuOp& op : rank.cpu_ops)
    if (rank.names.text(op.name) == "aten::mm")
      op.input_shapes = rank.names.intern(++n % 3 == 0 ? "[[5120,64],[64,64]]" : "[[2048,64],[64,64]]");
  return to_kineto_json(rank);
}

TEST(StepShapes, OfATraceAreToldApart) {
  const fixtures::TraceFolder folder;
  const auto file = folder.write("rank0.json", text_of_packed());
  const auto rank = read_kineto(file);
  ASSERT_TRUE(rank.ok()) << rank.error().message();
  ASSERT_EQ(rank->step_sizes.size(), 7U);
  EXPECT_GT(rank->step_sizes[2].size, 1.5 * rank->step_sizes[0].size);
  const RecordedInput input{&*rank, nullptr};
  const auto recorded = rebuild_program({&input, 1});
  ASSERT_TRUE(recorded.ok()) << recorded.error().message();
  EXPECT_EQ(recorded->facts.front().step_number, 4);
  ASSERT_EQ(recorded->shape_groups.size(), 2U);
  EXPECT_THAT(recorded->shape_groups[1].steps, ElementsAre(3, 6));
  EXPECT_THAT(recorded->notes, Contains(HasSubstr("step 4: the median of 5 steps, which take 1.001 ms")));
  EXPECT_THAT(
      recorded->notes,
      Contains("the steps are of 2 shapes: 5 as step 4 (median 1.004 ms), 2 as step 6 (median 4.006 ms; "
               "--step 6)"));
  const auto scanned = scan_steps(file);
  ASSERT_TRUE(scanned.ok());
  EXPECT_EQ(step_to_replay({&*scanned, 1}), 4);
  const RankSummary summary = summarize(*rank, can_be_replayed);
  EXPECT_EQ(summary.steps[2].like_step, 6);
  EXPECT_THAT(summary.notes, Contains(HasSubstr("of 2 shapes")));
  // A rank file of one step holds some operators of others, which say nothing of those.
  const auto again = parse_rank_file(rank_file_bytes({6, *rank, {}}).value(), "rank0.step");
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->rank.step_sizes.size(), 1U);
}

}  // namespace
}  // namespace stepcast::step_shapes_test
