// Steps that are not like the others, told by what is in them.
#include "stepcast/trace/step_kind.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/sources/trace_set.h"
#include "stepcast/trace/readers.h"
#include "stepcast/trace/step_selection.h"
#include "stepcast/trace/trace_summary.h"

#include "lab/kineto_writer.h"
#include "tests/support/trace_builder.h"
#include "tests/support/trace_files.h"

namespace stepcast::step_kind_test {
namespace {

using test::TraceBuilder;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Steps 1 to `n` of 1,000 us on thread 0, each with a batch loaded in 20 us, a product and its backward.
struct Recording {
  TraceBuilder trace;
  int main = trace.thread(1);

  [[nodiscard]] static double start(int step) { return 2000.0 * step; }
  void step(int number, double length_us = 1000, bool backward = true) {
    const double at = start(number);
    trace.step(main, number, at, length_us);
    trace.annotation(main, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 1, 20);
    trace.op(main, "aten::mm", at + 30, 300).launch(main, at + 40, 5, 7, "gemm", at + 50, 200);
    if (backward)
      trace.op(main, "autograd::engine::evaluate_function: MmBackward0", at + 400, 300)
          .launch(main, at + 410, 5, 7, "gemm", at + 420, 300);
  }
};

std::vector<std::string> kinds(const RecordedRank& rank) {
  std::vector<std::string> named;
  for (const SpecialStep& step : rank.special_steps)
    named.push_back(fmt::format("{} {}", step.number, to_string(step.kind)));
  return named;
}

RecordedRank read(const std::string& text) {
  auto rank = parse_kineto(text, "rank0.json");
  EXPECT_TRUE(rank.ok()) << rank.error().message();
  return rank.ok() ? *std::move(rank) : RecordedRank{};
}

Recording each_kind() {
  Recording r;
  for (int i = 1; i <= 9; ++i) r.step(i, i == 4 ? 1900 : 1000, i != 7);
  r.trace.call(r.main, "cudaMalloc", Recording::start(1) + 750, 100);
  r.trace.annotation(r.main, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                     Recording::start(3) + 750, 200);
  // Longer than all others, and nothing in it says why: ordinary.
  r.trace.op(r.main, "aten::add", Recording::start(4) + 800, 1000);
  r.trace.memcpy(r.trace.call(r.main, "cudaMemcpyAsync", Recording::start(5) + 750, 5), 7,
                 "Memcpy DtoH (Device -> Pageable)", Recording::start(5) + 760, 150);
  r.trace.annotation(r.main, "torch.profiler stop", Recording::start(9) + 750, 200);
  return r;
}

TEST(StepKind, IsToldByWhatIsInAStep) {
  const RecordedRank rank = read(to_kineto_json(each_kind().trace.build()));
  EXPECT_THAT(kinds(rank),
              ElementsAre("1 start_up", "3 loader", "5 checkpoint", "7 evaluation", "9 profiler"));
}

// What every step does sets none apart, however long it takes, and a little more of it neither.
TEST(StepKind, OfWhatRepeatsIsOrdinary) {
  Recording r;
  for (int i = 1; i <= 4; ++i) {
    r.step(i);
    r.trace.annotation(r.main, "checkpoint", Recording::start(i) + 710, 200 + 10 * i);
    r.trace.call(r.main, "cudaMalloc", Recording::start(i) + 950, i == 2 ? 30 : 3);
  }
  EXPECT_THAT(kinds(read(to_kineto_json(r.trace.build()))), IsEmpty());
}

// Frames of Python and the profiler's own time are not kept, yet they tell.
TEST(StepKind, IsToldByFrames) {
  Recording r;
  for (int i = 1; i <= 3; ++i) r.step(i);
  std::string text = to_kineto_json(r.trace.build());
  const std::string frame =
      R"({"ph": "X", "cat": "python_function", "name": "torch/serialization.py(850): save", "pid": 1, "tid": 1, )"
      R"("ts": 2750.0, "dur": 100.0, "args": {"Python id": 3}},
  {"ph": "X", "name": "torch/nn/module.py(1): forward", "cat": "python_function", "ts": 700, "dur": 90},
  {"ph": "X", "cat": "overhead", "name": "Buffer Flush", "pid": -1, "tid": 0, "ts": 4750.0, "dur": 100.0},
  )";
  text.insert(text.find("{\"ph\""), frame);
  const RecordedRank rank = read(text);  // times are relative to the begin of step 1
  EXPECT_THAT(kinds(rank), ElementsAre("2 checkpoint", "3 profiler"));
  EXPECT_EQ(rank.skipped.at("python_function"), 2U);
  EXPECT_EQ(rank.skipped.at("overhead"), 1U);
}

TEST(StepKind, OfTwoStepsTheOneWithASignIsSpecial) {
  Recording r;
  r.step(1);
  r.step(2);
  r.trace.annotation(r.main, "save_checkpoint", Recording::start(2) + 750, 200);
  EXPECT_THAT(kinds(read(to_kineto_json(r.trace.build()))), ElementsAre("2 checkpoint"));
}

// The median of the ordinary steps is taken, also of a file that is read step by step, and the others are named.
TEST(StepKind, LeavesSpecialStepsOutOfTheTypicalOne) {
  Recording r;
  for (int i = 1; i <= 3; ++i) r.step(i, 1000 + i);
  for (int i = 4; i <= 8; ++i) {
    r.step(i, 1900);
    r.trace.annotation(r.main, "evaluation", Recording::start(i) + 1000, i < 6 ? 0 : 800);
    if (i < 6) r.trace.annotation(r.main, "save_checkpoint", Recording::start(i) + 1000, 800);
  }
  const fixtures::TraceFolder folder;
  const auto file = folder.write("rank0.json", r.trace.build());
  const auto rank = read_kineto(file);
  ASSERT_TRUE(rank.ok()) << rank.error().message();
  EXPECT_THAT(kinds(*rank),
              ElementsAre("4 checkpoint", "5 checkpoint", "6 evaluation", "7 evaluation", "8 evaluation"));
  const RecordedInput input{&*rank, nullptr};
  const auto recorded = rebuild_program({&input, 1});
  ASSERT_TRUE(recorded.ok()) << recorded.error().message();
  EXPECT_EQ(recorded->facts.front().step_number, 2);
  EXPECT_THAT(recorded->notes, Contains(HasSubstr("unlike the other steps: step 4 writes a checkpoint; ")));
  EXPECT_THAT(recorded->notes, Contains(HasSubstr("step 2: the median of 3 steps, which take 1.001 ms")));
  const auto scanned = scan_steps(file);
  ASSERT_TRUE(scanned.ok());
  EXPECT_EQ(step_to_replay({&*scanned, 1}), 2);
  const auto summary = summarize_kineto(file, can_be_replayed);
  ASSERT_TRUE(summary.ok());
  const RankSummary steps = judged(summary->summary, summary->rank, summary->replayable);
  EXPECT_EQ(steps.steps[2].kind, StepKind::ordinary);
  EXPECT_EQ(steps.steps[3].kind, StepKind::checkpoint);
  EXPECT_EQ(steps.steps[7].kind, StepKind::evaluation);
}

}  // namespace
}  // namespace stepcast::step_kind_test
