#include "stepcast/analyze/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/describe/job.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/forecast_document.h"

#include "tests/support/trace_builder.h"
#include "tests/support/trace_generator.h"

namespace stepcast::sensitivity_test {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

//   us       0    20                      120   140
//   thread   |host|
//   stream 7      |gemm 100 us            |add 20|
//   stream 8      |transfer 99.95 us     |
Program two_streams(double transfer_us) {
  Program program;
  BlockBuilder block{"step"};
  const LaneId cpu = block.add_lane({LaneKind::cpu_thread, "thread"});
  const LaneId compute = block.add_lane({LaneKind::gpu_stream, "compute"});
  const LaneId transfers = block.add_lane({LaneKind::gpu_stream, "transfers"});
  const TaskId launch = block.add_task(
      cpu, {.kind = TaskKind::cpu_segment, .work = program.works.intern(HostWork{})}, Microseconds{20});
  const TaskId gemm = block.add_task(compute, {.kind = TaskKind::kernel, .kernel_class = KernelClass::gemm},
                                     Microseconds{100});
  const TaskId transfer =
      block.add_task(transfers, {.kind = TaskKind::kernel, .kernel_class = KernelClass::communication},
                     Microseconds{transfer_us});
  const TaskId add = block.add_task(
      compute, {.kind = TaskKind::kernel, .kernel_class = KernelClass::elementwise}, Microseconds{20});
  for (const auto& [from, to] : {std::pair{launch, gemm}, {launch, transfer}, {transfer, add}})
    block.add_edge(BlockBuilder::end_of(from), to, Microseconds{0}, {});
  RankClass ranks;
  ranks.lanes = {{LaneKind::cpu_thread, "thread"},
                 {LaneKind::gpu_stream, "compute"},
                 {LaneKind::gpu_stream, "transfers"}};
  const BlockId id = program.add_block(value_of(std::move(block).finish()));
  program.add_instance(program.add_rank_class(std::move(ranks)), {.block = id});
  return program;
}

struct Simulated {
  explicit Simulated(const Program& program)
      : flat(program), costs(program), plan(value_of(Plan::compile(program))) {
    const Timeline timeline = value_of(plan.simulate(costs));
    times.emplace(TaskTimes::simulated(flat, timeline));
  }
  SensitivityInput input() const {
    return {.flat = flat,
            .costs = costs,
            .times = *times,
            .rank_start_us = starts,
            .path = {},
            .step_us = [this](const Costs& changed) -> Result<double> {
              STEPCAST_ASSIGN(const Timeline timeline, plan.simulate(changed));
              return timeline.end_us();
            },
            .crosses_nodes = {},
            .is_host_delay = {}};
  }
  FlatProgram flat;
  Costs costs;
  Plan plan;
  std::vector<double> starts{0};
  std::optional<TaskTimes> times;
};

std::string text_of(const Sensitivity& s) {
  ReportDocument document;
  document.made_for = Shown::terminal;
  add_sensitivity(document, s, Shown::everywhere);
  return report_text(document);
}

const ResourceSensitivity& of(const Sensitivity& s, const std::string& resource) {
  for (const ResourceSensitivity& one : s.resources) {
    if (one.resource == resource) return one;
  }
  throw std::runtime_error("no " + resource);
}

// Of 140 us, 20 are the host's, 100 of gemm, 20 elementwise. 10 % faster, gemm takes 90.9 and saves 9.09 us where the
// transfer of 60 us is out of its way; behind one of 99.95 us it saves 0.05, and only 0.05 of the 0.1 of 0.1 %.
TEST(Sensitivity, IsTheShareOfTheCriticalPath) {
  const Program program = two_streams(60);
  const Simulated simulated{program};
  const Sensitivity s = value_of(sensitivity(simulated.input()));
  EXPECT_NEAR(s.step_time_ms, 0.140, 1e-12);
  ASSERT_EQ(s.resources.size(), 3U);
  EXPECT_EQ(s.resources.front().resource, "gemm");
  EXPECT_NEAR(of(s, "gemm").elasticity, 100.0 / 140, 1e-12);
  EXPECT_NEAR(of(s, "host").elasticity, 20.0 / 140, 1e-12);
  EXPECT_NEAR(of(s, "gemm").saved_ms, 0.100 * (1 - 1 / 1.1), 1e-12);
  EXPECT_FALSE(of(s, "gemm").switches);
  EXPECT_EQ(text_of(s).find('*'), std::string::npos);
}

TEST(Sensitivity, NamesWhatAnotherPathTakesOver) {
  const Program program = two_streams(99.95);
  const Simulated simulated{program};
  const Sensitivity s = value_of(sensitivity(simulated.input()));
  EXPECT_NEAR(of(s, "gemm").saved_ms, 0.05e-3, 1e-9);
  EXPECT_TRUE(of(s, "gemm").switches_at_once);
  EXPECT_TRUE(of(s, "gemm").switches);
  EXPECT_FALSE(of(s, "host").switches);
  EXPECT_EQ(s.resources.back().resource, "gemm") << "10 % of the others save more";
  EXPECT_NE(text_of(s).find("** before it is 0.1 % faster"), std::string::npos);
  EXPECT_NE(sensitivity_json(s).find(R"("path_switches_within_10_percent": true)"), std::string::npos);
}

void expect_finite_differences(const SensitivityInput& input) {
  const Sensitivity s = value_of(sensitivity(input));
  const double step_us = value_of(input.step_us(input.costs));
  ASSERT_GE(s.resources.size(), 3U);
  std::size_t compared = 0;
  for (const ResourceSensitivity& one : s.resources) {
    if (one.switches_at_once) continue;
    ++compared;
    const double faster = value_of(input.step_us(with_resource(input, one.resource, 0.999)));
    EXPECT_NEAR((step_us - faster) / step_us / 1e-3, one.elasticity, 1e-5) << one.resource;
  }
  EXPECT_GE(compared, 2U);
}

TEST(Sensitivity, OfADescribedStepIsAFiniteDifference) {
  Job job;
  job.model = "llama-3-8b";
  job.n_gpus = 16;
  job.settings.tensor = 2;
  job.settings.pipeline = 2;
  job.settings.global_batch_sequences = 32;
  const ResolvedJob resolved = value_of(resolve(job));
  const Platform platform = value_of(load_platform("dgx-h100"));
  const PredictedStep step = value_of(predict_step(resolved.model, resolved.layout, platform));
  const Simulated simulated{step.program};
  SensitivityInput input = simulated.input();
  const TaskTimes times = TaskTimes::simulated(simulated.flat, step.timeline);
  const std::vector<double> starts(simulated.flat.class_count(), 0.0);
  const SensitivityInput priced{.flat = simulated.flat,
                                .costs = step.prices.costs,
                                .times = times,
                                .rank_start_us = starts,
                                .path = {},
                                .step_us = input.step_us,
                                .crosses_nodes = {},
                                .is_host_delay = {}};
  expect_finite_differences(priced);
  const Sensitivity s = value_of(step_sensitivity(step));
  EXPECT_NEAR(s.step_time_ms, step.timeline.end_us() * 1e-3, 1e-9);
  EXPECT_GT(of(s, "gemm").elasticity, 0.3);
}

TEST(Sensitivity, OfARecordedStepIsAFiniteDifference) {
  test::GeneratorOptions options;
  options.kernel_scale = 3;
  const test::GeneratedJob job = test::generate_job(options);
  std::vector<RecordedInput> inputs;
  for (const test::GeneratedRank& rank : job.ranks) inputs.push_back({&rank.recorded, nullptr});
  const TracePrediction p = value_of(predict_trace(inputs, {}));
  const FlatProgram flat{p.recorded.program};
  const TaskTimes times = TaskTimes::simulated(flat, p.timeline);
  const Sensitivity s = value_of(trace_sensitivity(p, {}, flat, times));
  double sum = 0, longest = 0;
  for (const ReplayedRank& rank : p.ranks) longest = std::max(longest, rank.step.simulated_us);
  for (const ResourceSensitivity& one : s.resources) {
    sum += one.elasticity;
    EXPECT_GE(one.saved_ms, -1e-9) << one.resource;
  }
  EXPECT_NEAR(s.step_time_ms, longest * 1e-3, 1e-9);
  EXPECT_GT(sum, 0.8);
  EXPECT_GT(of(s, "host").elasticity, 0);
  std::size_t straight = 0;
  for (const ResourceSensitivity& one : s.resources) straight += one.switches_at_once ? 0 : 1;
  EXPECT_GE(straight, 2U);
}

// 20 launches in 200 us; a product of 9 us and a sum of 1 behind each, and 50 us that the step before had left. Six times
// as slow the GPU takes 20 x 60 us for a step, whose CPU alone still takes 260: repeated, a step takes 1,200 us, and what
// the other step had left counts to that one. Products are 0.9 of it; a tenth faster they save 1,200 x 0.9 x (1 - 1/1.1).
TEST(Sensitivity, OfRepeatedGpuWorkIsItsShareOfTheStep) {
  test::TraceBuilder t;
  const int main = t.thread(1);
  t.op(main, "aten::early", -40, 10);
  const std::int64_t early = t.call(main, "cudaLaunchKernel", -39, 5);
  t.kernel(early, 7, "gemm", -30, 50 + 30);
  t.step(main, 1, 0, 260);
  for (int i = 0; i < 20; ++i) {
    const double at = 50 + 10.0 * i;
    t.op(main, "aten::linear", at, 8);
    t.launch(main, at + 1, 2, 7, "gemm", at + 6, 9);
    t.launch(main, at + 4, 2, 7, "vectorized_elementwise_kernel", at + 15, 1);
  }
  const RecordedRank rank = t.build();
  const std::vector<RecordedInput> inputs{{&rank, nullptr}};
  TracePredictionOptions how;
  how.assumptions.gemm_factor = how.assumptions.memory_bound_factor = 6;
  const TracePrediction p = value_of(predict_trace(inputs, how));
  EXPECT_NEAR(p.step.time.value(), 1200, 1e-6);
  const FlatProgram flat{p.recorded.program};
  const TaskTimes times = TaskTimes::simulated(flat, p.timeline);
  const Sensitivity s = value_of(trace_sensitivity(p, how, flat, times));
  EXPECT_NEAR(s.step_time_ms, 1.2, 1e-9);
  EXPECT_NEAR(of(s, "gemm").elasticity, 0.9, 1e-9);
  EXPECT_NEAR(of(s, "gemm").saved_ms, 1.2 * 0.9 * (1 - 1 / 1.1), 1e-9);
  EXPECT_FALSE(of(s, "gemm").switches);
  EXPECT_NEAR(of(s, "elementwise").elasticity, 0.1, 1e-9);
}

// 10 ms more on 100 for 16 micro-batches instead of 8: 10 % of the step for 100 % more.
TEST(Sensitivity, OfTheBatchIsTheDifferenceOfTwo) {
  Sensitivity s;
  s.step_time_ms = 100;
  add_batch(s, 8, 16, 100, 110);
  ASSERT_EQ(s.resources.size(), 1U);
  EXPECT_NEAR(s.resources[0].elasticity, 0.1, 1e-12);
}

// 10 ms of products, and behind them the longer of transfers of 5 ms and a host of 4.9.
TEST(Sensitivity, OfWhatIfsAlone) {
  const std::vector<std::string_view> parts{"gemm", "network", "attention"};
  const Sensitivity found =
      value_of(what_if_sensitivity(parts, [](std::string_view part, double speed) -> Result<double> {
        return 10 / (part == "gemm" ? speed : 1) + std::max(5 / (part == "network" ? speed : 1), 4.9);
      }));
  EXPECT_DOUBLE_EQ(found.step_time_ms, 15);
  ASSERT_EQ(found.resources.size(), 2U) << "attention is no part of it";
  EXPECT_EQ(found.resources[0].resource, "gemm");
  EXPECT_NEAR(found.resources[0].elasticity, 10.0 / 15, 1e-6);
  EXPECT_NEAR(found.resources[0].saved_ms, 10 - 10 / 1.1, 1e-9);
  EXPECT_FALSE(found.resources[0].switches);
  EXPECT_EQ(found.resources[1].resource, "network");
  EXPECT_NEAR(found.resources[1].saved_ms, 0.1, 1e-9) << "then the host is longer";
  EXPECT_TRUE(found.resources[1].switches);
  EXPECT_FALSE(found.resources[1].switches_at_once);
}

}  // namespace
}  // namespace stepcast::sensitivity_test
