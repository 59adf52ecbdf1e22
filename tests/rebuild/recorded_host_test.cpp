
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/rebuild/recorded_program.h"

#include "tests/support/host_trace.h"
#include "tests/support/trace_builder.h"

namespace stepcast::recorded_host_test {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

RecordedProgram rebuild(const RecordedRank& rank) {
  const RecordedInput input{&rank, nullptr};
  auto recorded = rebuild_program(std::span{&input, 1});
  EXPECT_TRUE(recorded.ok()) << recorded.error().message();
  return *std::move(recorded);
}

std::string text_of(const StringTable& names, NameId name) {
  return name.valid() ? std::string{names.text(name)} : std::string{"end"};
}

// "T2 aten::addmm 10 us, 1 event".
std::vector<std::string> pieces_of(const RecordedProgram& recorded) {
  std::vector<std::string> out;
  for (const HostPiece& p : recorded.host.front().pieces) {
    out.push_back(fmt::format("{} {} {:g} us, {}", to_string(p.type), text_of(recorded.program.names, p.op),
                              p.duration_us, p.profiler_events));
  }
  return out;
}

double cpu_time_us(const RecordedProgram& recorded) {
  const Block& block = recorded.program.block_of(RankClassId{0}, InstanceId{0});
  double sum = 0;
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    if (block.lanes()[block.lane_codes()[t]].kind == LaneKind::cpu_thread) sum += block.duration_us()[t];
  }
  return sum;
}

double sum_of_pieces_us(const RecordedProgram& recorded) {
  double sum = 0;
  for (const HostPiece& p : recorded.host.front().pieces) sum += p.duration_us;
  return sum;
}

TEST(RecordedHost, CutsAStepIntoTheFiveOverheads) {
  const RecordedProgram recorded = rebuild(test::host_trace());
  // T1 before addmm holds the label, too. Of the 35 us of the first synchronisation 2 are its own, as the other
  // one shows; the step of 200 us has 33 us of waiting.
  EXPECT_THAT(pieces_of(recorded),
              UnorderedElementsAre("T1 aten::addmm after (step begin) 20 us, 2", "T2 aten::addmm 10 us, 1",
                                   "T5 aten::addmm 9 us, 1", "T3 aten::addmm 12 us, 0",
                                   "T1 aten::view after aten::addmm 7 us, 1", "T5 aten::view 3 us, 0",
                                   "T1 aten::copy_ after aten::view 0 us, 1", "T2 aten::copy_ 0 us, 0",
                                   "T5 aten::copy_ 5 us, 0", "T3 aten::copy_ 10 us, 0",
                                   "T1 aten::item after aten::copy_ 10 us, 1", "T2 aten::item 4 us, 0",
                                   "T3 aten::item 4 us, 0", "T1 end 50 us, 0", "T4 cudaLaunchKernel 5 us, 1",
                                   "T4 cudaLaunchKernel 4 us, 1", "T4 cudaMemcpyAsync 10 us, 1",
                                   "T4 cudaStreamSynchronize 2 us, 1", "T4 cudaStreamSynchronize 2 us, 1"));
  EXPECT_DOUBLE_EQ(sum_of_pieces_us(recorded), 167);
  EXPECT_DOUBLE_EQ(cpu_time_us(recorded), 167);
}

TEST(RecordedHost, KeepsTheLaunchesOfEveryOperator) {
  const RecordedProgram recorded = rebuild(test::host_trace());
  const RecordedHost& host = recorded.host.front();
  std::vector<std::string> operators;
  for (const HostOperator& op : host.operators) {
    std::string text = text_of(recorded.program.names, op.op) + ":";
    for (std::uint32_t i = 0; i < op.n_launches; ++i) {
      text += " " + text_of(recorded.program.names, host.launches[op.first_launch + i]);
    }
    operators.push_back(text);
  }
  EXPECT_THAT(operators, ElementsAre("aten::addmm: cudaLaunchKernel cudaLaunchKernel",
                                     "aten::view:", "aten::copy_: cudaMemcpyAsync cudaStreamSynchronize",
                                     "aten::item: cudaStreamSynchronize"));
}

TEST(RecordedHost, CountsOperatorsOfNoLength) {
  // Recorded in whole microseconds: lift_fresh takes none, the gap behind it 4 us, that before it 6 us.
  test::TraceBuilder t;
  const int main = t.thread(1);
  t.step(main, 1, 0, 40).op(main, "aten::ones", 10, 4).op(main, "aten::lift_fresh", 20, 0);
  t.op(main, "aten::fill_", 24, 16).launch(main, 30, 5, 7, "fill", 37, 2);
  const RecordedProgram recorded = rebuild(t.build());
  EXPECT_THAT(
      pieces_of(recorded),
      UnorderedElementsAre("T1 aten::ones after (step begin) 10 us, 1", "T5 aten::ones 4 us, 0",
                           "T1 aten::lift_fresh after aten::ones 6 us, 1", "T5 aten::lift_fresh 0 us, 0",
                           "T1 aten::fill_ after aten::lift_fresh 4 us, 1", "T2 aten::fill_ 6 us, 0",
                           "T4 cudaLaunchKernel 5 us, 1", "T3 aten::fill_ 5 us, 0", "T1 end 0 us, 0"));
}

TEST(RecordedHost, TasksStandForAllOccurrencesOfTheirOverhead) {
  // Three views: gaps of 6, 0 and 3 us before them; the second has an operator of 1 us inside. The last gap is one task
  // that stands for both gaps between views; the second view is three tasks, each its share of one occurrence.
  test::TraceBuilder t;
  const int main = t.thread(1);
  t.step(main, 1, 0, 40).op(main, "aten::view", 6, 4).op(main, "aten::view", 10, 4);
  t.op(main, "aten::as_strided", 11, 1).op(main, "aten::view", 17, 2);
  t.op(main, "aten::fill_", 24, 16).launch(main, 30, 5, 7, "fill", 37, 2);
  const RecordedProgram recorded = rebuild(t.build());
  const Block& block = recorded.program.block_of(RankClassId{0}, InstanceId{0});
  std::vector<std::string> tasks;
  for (std::uint32_t i = 0; i < block.task_count(); ++i) {
    const TaskInfo& task = block.tasks()[i];
    const HostWork* work = recorded.program.works.host(task.work);
    if (work == nullptr || !text_of(recorded.program.names, work->op).starts_with("aten::view")) continue;
    tasks.push_back(
        fmt::format("{} {:g} us x {:g}", to_string(work->type), block.duration_us()[i], task.work_times));
  }
  EXPECT_THAT(tasks, ElementsAre("T1 6 us x 1", "T5 4 us x 1", "T5 1 us x 0.25", "T5 1 us x 0.25",
                                 "T5 2 us x 0.5", "T1 3 us x 2", "T5 2 us x 1"));
}

}  // namespace
}  // namespace stepcast::recorded_host_test
