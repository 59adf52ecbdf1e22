#include "stepcast/trace/step_selection.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/rebuild/recorded_program.h"
#include "stepcast/sources/trace_set.h"
#include "stepcast/trace/readers.h"

#include "tests/support/fails_with.h"
#include "tests/support/trace_builder.h"
#include "tests/support/trace_files.h"

namespace stepcast::step_selection_test {
namespace {

using fixtures::TraceFolder;
using test::TraceBuilder;
using ::testing::ElementsAre;
using Paths = std::vector<std::filesystem::path>;

// Of this step alone, however small the files are; of no step: everything.
Result<TraceSet> read_step(const Paths& places, std::optional<std::int64_t> step, bool one_step = true) {
  STEPCAST_ASSIGN(const TraceListing listing, list_traces(places));
  TraceSetOptions options;
  options.one_step = one_step;
  options.step = step;
  options.large_from_bytes = 0;
  return read_trace_set(listing, options);
}

// Five steps of 100 us on thread 1, each with an operator that launches twice: a kernel of 30 us that runs 200 us later,
// two steps on, and one of 5 us at once on another stream.
RecordedRank late_kernels() {
  TraceBuilder builder;
  const int thread = builder.thread(1);
  for (int step = 1; step <= 5; ++step) {
    const double start = 100.0 * step;
    builder.step(thread, step, start, 98);
    builder.op(thread, "aten::mm", start + 5, 40);
    builder.launch(thread, start + 10, 5, 7, "gemm", start + 210, 30);
    builder.launch(thread, start + 20, 5, 8, "small", start + 30, 5);
  }
  return builder.build();
}

TEST(StepSelection, KeepsWhatTheStepNeeds) {
  const TraceFolder folder;
  const auto file = folder.write("rank0.json", late_kernels());
  Result<StepSelection> selection = scan_steps(file);
  ASSERT_TRUE(selection.ok()) << selection.error().message();
  EXPECT_THAT(selection->steps(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_TRUE(selection->launches_gpu_work(3));
  EXPECT_FALSE(selection->launches_gpu_work(6));
  selection->choose(3);  // 300 to 398 us
  const auto kept = read_kineto(file, {.only = &*selection});
  ASSERT_TRUE(kept.ok()) << kept.error().message();
  // Five marks, the step's own operator and those of steps 1 and 2, which know the work of what still runs.
  EXPECT_EQ(kept->cpu_ops.size(), 8U);
  // gemms of steps 1 (310 to 340), 2 (410, launched before the end) and 3 (510); the small ones of step 3 and, as the
  // first of the file to end, of step 1.
  EXPECT_EQ(kept->gpu_ops.size(), 5U);
  // Launches of steps 1 and 2 (gemm) and 3 (both).
  EXPECT_EQ(kept->runtime_calls.size(), 4U);
  const auto whole = read_kineto(file);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(kept->event_count, whole->event_count);
  EXPECT_EQ(kept->skipped.at("of other steps"), 2U + 5U + 6U);
}

TEST(StepSelection, OfAStepThatIsNotThereKeepsTheMarks) {
  const TraceFolder folder;
  folder.write("rank0.json", late_kernels());
  const auto set = read_step({folder.path()}, 9);
  ASSERT_TRUE(set.ok()) << set.error().message();
  EXPECT_EQ(set->ranks[0].cpu_ops.size(), 5U);
  EXPECT_THAT(rebuild_program(set->inputs(), {.step = 9}), test::FailsWith("found steps 1, 2, 3, 4, 5"));
}

// The last step that both ranks have is empty on both: the one before it is what a replay takes.
TEST(StepSelection, ChoosesTheStepThatAReplayTakes) {
  const TraceFolder folder;
  for (int rank = 0; rank < 2; ++rank) {
    TraceBuilder builder(rank, 2);
    const int thread = builder.thread(1);
    for (int step = 1; step <= 4 + rank; ++step) {
      builder.step(thread, step, 100.0 * step, 98);
      builder.op(thread, "aten::mm", 100.0 * step + 5, 40);
      if (step != 4) builder.launch(thread, 100.0 * step + 10, 5, 7, "gemm", 100.0 * step + 20, 30);
    }
    folder.write("rank" + std::to_string(rank) + ".json", builder.build());
  }
  const auto set = read_step({folder.path()}, std::nullopt);
  ASSERT_TRUE(set.ok()) << set.error().message();
  const auto program = rebuild_program(set->inputs());
  ASSERT_TRUE(program.ok()) << program.error().message();
  EXPECT_EQ(program->facts[0].step_number, 2) << "the median of three that launch work";
  EXPECT_EQ(set->ranks[0].cpu_ops.size(), 4U + 1U);  // marks, and the operator of step 2
}

TEST(StepSelection, FilesWithoutStepsAreKeptWhole) {
  const TraceFolder folder;
  TraceBuilder builder;
  const int thread = builder.thread(1);
  for (int i = 0; i < 3; ++i) builder.launch(thread, 10.0 * i, 5, 7, "gemm", 10.0 * i + 6, 3);
  folder.write("rank0.json", builder.build());
  const auto set = read_step({folder.path()}, std::nullopt);
  ASSERT_TRUE(set.ok()) << set.error().message();
  EXPECT_EQ(set->ranks[0].gpu_ops.size(), 3U);
}

struct Variant {
  const char* name;
  test::GeneratorOptions options;
};
void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

class SelectedStep : public ::testing::TestWithParam<Variant> {};

// Every step of a job, rebuilt from what was kept for it and from everything: the same tasks at the same times, the same
// edges with the same delays.
TEST_P(SelectedStep, IsRebuiltAsFromTheWholeFile) {
  const TraceFolder folder;
  const test::GeneratedJob job = test::generate_job(GetParam().options);
  for (std::size_t r = 0; r < job.ranks.size(); ++r) {
    folder.write("kineto_rank" + std::to_string(r) + ".json", job.ranks[r].recorded);
    folder.write("et_rank" + std::to_string(r) + ".json", job.ranks[r].execution_trace);
  }
  const auto whole = read_step({folder.path()}, std::nullopt, false);
  ASSERT_TRUE(whole.ok()) << whole.error().message();
  for (int i = 0; i < GetParam().options.steps; ++i) {
    const std::int64_t step = GetParam().options.first_step + i;
    const auto selected = read_step({folder.path()}, step);
    ASSERT_TRUE(selected.ok()) << selected.error().message();
    EXPECT_LT(selected->ranks[0].gpu_ops.size(), whole->ranks[0].gpu_ops.size());
    const auto from_all = rebuild_program(whole->inputs(), {.step = step});
    const auto from_kept = rebuild_program(selected->inputs(), {.step = step});
    ASSERT_TRUE(from_all.ok() && from_kept.ok());
    const Costs costs_of_all{from_all->program}, costs_of_kept{from_kept->program};
    for (std::size_t r = 0; r < job.ranks.size(); ++r) {
      SCOPED_TRACE("step " + std::to_string(step) + " rank " + std::to_string(r));
      const BlockId block_of_all = from_all->program.rank_class(RankClassId{r}).instances.front().block;
      const BlockId block_of_kept = from_kept->program.rank_class(RankClassId{r}).instances.front().block;
      const auto in_order = [](auto span) { return std::vector(span.begin(), span.end()); };
      EXPECT_EQ(in_order(costs_of_kept.duration_us(block_of_kept)),
                in_order(costs_of_all.duration_us(block_of_all)));
      EXPECT_EQ(in_order(costs_of_kept.delay_us(block_of_kept)),
                in_order(costs_of_all.delay_us(block_of_all)));
      const std::vector<Interval>&kept = from_kept->measured[r], &all = from_all->measured[r];
      ASSERT_EQ(kept.size(), all.size());
      for (std::size_t t = 0; t < kept.size(); ++t) {
        EXPECT_EQ(kept[t].start_us, all[t].start_us);
        EXPECT_EQ(kept[t].end_us, all[t].end_us);
      }
      EXPECT_EQ(from_kept->facts[r].left_over_kernels, from_all->facts[r].left_over_kernels);
      EXPECT_EQ(from_kept->facts[r].edge_count, from_all->facts[r].edge_count);
      EXPECT_EQ(from_kept->facts[r].gpu_window_end_us, from_all->facts[r].gpu_window_end_us);
    }
  }
}

std::vector<Variant> variants() {
  test::GeneratorOptions plain;
  plain.ranks = 2;
  plain.steps = 4;
  test::GeneratorOptions gpu_bound = plain;  // much is left over, and calls wait
  gpu_bound.kernel_scale = 8;
  gpu_bound.read_loss = false;
  gpu_bound.event_records = test::EventRecords::calls;
  test::GeneratorOptions exact = plain;
  exact.whole_microseconds = false;
  exact.event_records = test::EventRecords::sync_records;
  exact.collective_metadata = true;
  exact.launch_linked_to_op = true;
  return {{"Plain", plain}, {"GpuBound", gpu_bound}, {"Exact", exact}};
}

INSTANTIATE_TEST_SUITE_P(Jobs, SelectedStep, ::testing::ValuesIn(variants()),
                         [](const auto& variant) { return std::string{variant.param.name}; });

}  // namespace
}  // namespace stepcast::step_selection_test
