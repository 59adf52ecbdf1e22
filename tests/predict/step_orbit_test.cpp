// Steps whose period in a row is known: each is recorded once, by itself, and compared with a job that repeats it.
#include "stepcast/predict/step_orbit.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/retrace/trace_prediction.h"

#include "tests/support/trace_builder.h"

namespace stepcast::step_orbit_test {
namespace {

using test::TraceBuilder;

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

struct Speeds {
  double host = 1, gpu = 1, links = 1;
};

double predicted_us(const std::vector<RecordedRank>& ranks, const Speeds& speeds) {
  std::vector<RecordedInput> inputs;
  for (const RecordedRank& rank : ranks) inputs.push_back({&rank, nullptr});
  TracePredictionOptions how;
  how.assumptions.host_factor = 1 / speeds.host;
  how.assumptions.gemm_factor = how.assumptions.memory_bound_factor = 1 / speeds.gpu;
  how.assumptions.communication_factor = 1 / speeds.links;
  return value_of(predict_trace(inputs, how)).step.time.value();
}

// A job: every step launches kernels one behind the other, each call for a while, then works for a while without a
// launch. A launch waits while `depth` kernels are not over; at the end of the step the CPU may wait for all of them.
struct Job {
  std::size_t launches = 100;
  double call_us = 10, kernel_us = 6, tail_us = 100;
  std::size_t depth = 1022;
  bool waits = false;

  [[nodiscard]] Job faster(const Speeds& speeds) const {
    Job job = *this;
    job.call_us /= speeds.host;
    job.tail_us /= speeds.host;
    job.kernel_us /= speeds.gpu;
    return job;
  }
  struct Run {
    std::vector<double> call_us, return_us, start_us, end_us;  // [launch of all steps]
    std::vector<double> begin_us, wait_us;                     // [step]; one begin more
  };
  static constexpr double kDelayUs = 3, kReturnUs = 2;
  [[nodiscard]] Run run(std::size_t steps) const {
    Run r;
    double now = 0;
    for (std::size_t step = 0; step < steps; ++step) {
      r.begin_us.push_back(now);
      for (std::size_t i = 0; i < launches; ++i) {
        const std::size_t n = r.call_us.size();
        r.call_us.push_back(now);
        now += call_us;
        if (n >= depth) now = std::max(now, r.end_us[n - depth] + 1);
        r.return_us.push_back(now);
        r.start_us.push_back(std::max(now + kDelayUs, n > 0 ? r.end_us.back() : 0));
        r.end_us.push_back(r.start_us.back() + kernel_us);
      }
      now += tail_us;
      r.wait_us.push_back(now);
      if (waits) now = std::max(now + 1, r.end_us.back() + kReturnUs);
    }
    r.begin_us.push_back(now);
    return r;
  }
  // Of a step in a long row.
  [[nodiscard]] double period_us() const {
    constexpr std::size_t kSteps = 40, kCounted = kSteps / 2;
    const Run r = run(kSteps);
    const double of_cpu = (r.begin_us[kSteps] - r.begin_us[kSteps / 2]) / kCounted;
    const double of_gpu = (r.end_us[launches * kSteps - 1] - r.end_us[launches * kSteps / 2 - 1]) / kCounted;
    return std::max(of_cpu, of_gpu);
  }
  // The first step.
  [[nodiscard]] RecordedRank recorded() const {
    const Run r = run(1);
    TraceBuilder b;
    const int main = b.thread(1);
    b.step(main, 1, 0, r.begin_us[1]);
    b.op(main, "step", 0, r.begin_us[1]);
    for (std::size_t i = 0; i < r.call_us.size(); ++i)
      b.launch(main, r.call_us[i], r.return_us[i] - r.call_us[i], 7, "gemm", r.start_us[i],
               r.end_us[i] - r.start_us[i]);
    if (waits) b.call(main, "cudaDeviceSynchronize", r.wait_us[0], r.begin_us[1] - r.wait_us[0]);
    return b.build();
  }
};

void expect_periods(const Job& job) {
  const RecordedRank rank = job.recorded();
  for (const Speeds speeds : {Speeds{}, Speeds{2, 1, 1}, Speeds{100, 1, 1}, Speeds{0.1, 1, 1},
                              Speeds{1, 2, 1}, Speeds{1, 100, 1}, Speeds{1, 0.1, 1}, Speeds{4, 0.5, 1}}) {
    SCOPED_TRACE(::testing::Message() << "host " << speeds.host << "x, gpu " << speeds.gpu << "x");
    const double truth = job.faster(speeds).period_us();
    EXPECT_NEAR(predicted_us({rank}, speeds), truth, 0.01 * truth);
  }
}

// 1,100 us of CPU and 600 of GPU in a step: the host holds it back, until one of the two changes by a factor of two.
TEST(StepOrbit, HostBoundStepsAreMetAndSoIsTheGpuBehindThem) { expect_periods({}); }

// The CPU runs ahead of 2,400 us of kernels, none of which it waits for.
TEST(StepOrbit, WorkThatTheCpuRunsAheadOfSetsThePeriod) { expect_periods({.kernel_us = 24}); }

TEST(StepOrbit, AWaitAtTheEndExposesWhatTheCpuDoesAlone) {
  expect_periods({.kernel_us = 6, .waits = true});
  expect_periods({.kernel_us = 24, .waits = true});
}

// 2,000 launches of 2 us each of 12 us of work, 1,022 of which may be pending; then the CPU works alone for less time
// than a full queue lasts, or for more.
TEST(StepOrbit, FullQueuesHoldTheCpuAndEmptyOnesTheGpu) {
  expect_periods({.launches = 2000, .call_us = 2, .kernel_us = 12, .tail_us = 8000});
  expect_periods({.launches = 2000, .call_us = 2, .kernel_us = 12, .tail_us = 20000});
}

// A step of a hand-made Program: the CPU launches 40 us of computation and a transfer of 90 us, for which the next
// step's computation does not wait: links set the period as soon as they take longer than the CPU's 70 us.
TEST(StepOrbit, TransfersSetThePeriodThatNothingWaitsFor) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 70);
  b.op(main, "step", 0, 70);
  b.launch(main, 0, 10, 7, "gemm", 13, 40);
  b.launch(main, 20, 10, 20, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 33, 90);
  const RecordedRank rank = b.build();
  EXPECT_NEAR(predicted_us({rank}, {}), 90, 0.9);
  EXPECT_NEAR(predicted_us({rank}, {.host = 2}), 90, 0.9);
  EXPECT_NEAR(predicted_us({rank}, {.links = 2}), 70, 0.7);
  EXPECT_NEAR(predicted_us({rank}, {.links = 0.1}), 900, 9);
  EXPECT_NEAR(predicted_us({rank}, {.host = 2, .links = 100}), 40, 0.4);
}

// Work of the step before, still running as the recorded one begins, is the last of the copy before: it is neither
// done twice nor forgotten. 200 us of kernels in a step of 200 us whose CPU waits for nothing, 50 us behind.
// 70 us of calls alone; two kernels of 40 us each, one period of whose stream holds both.
TEST(StepOrbit, OnePeriodHoldsAllWorkOfAStep) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 70);
  b.op(main, "step", 0, 70);
  b.launch(main, 0, 10, 7, "gemm", 13, 40);
  b.launch(main, 20, 10, 7, "gemm", 53, 40);
  const RecordedRank rank = b.build();
  const RecordedInput input{&rank, nullptr};
  const Result<RecordedProgram> recorded = rebuild_program(std::span{&input, 1});
  ASSERT_TRUE(recorded.ok()) << recorded.error().message();
  StepOrbit orbit{*recorded};
  const Result<StepPeriod> period = orbit.period(Costs{recorded->program});
  ASSERT_TRUE(period.ok()) << period.error().message();
  EXPECT_NEAR(period->us, 80, 0.8);
  EXPECT_TRUE(period->bound_by_stream());
  ASSERT_TRUE(period->settled);
  const Interval window = period->settled->windows.at(0);
  EXPECT_NEAR(window.length_us(), period->us, 1e-9);
  const Block& block = recorded->program.block_of(RankClassId{std::size_t{0}}, InstanceId{0});
  const std::span<const Interval> at =
      period->settled->timeline.instance(RankClassId{std::size_t{0}}, 0, InstanceId{0});
  double work_us = 0;
  for (std::uint32_t t = 0; t < block.task_count(); ++t) {
    if (block.tasks()[t].kind != TaskKind::kernel) continue;
    work_us += std::min(at[t].end_us, window.end_us) - std::max(at[t].start_us, window.start_us);
  }
  EXPECT_NEAR(work_us, 80, 1e-6);
  ASSERT_TRUE(period->settled->last);
  EXPECT_NEAR(at[period->settled->last->task.index()].end_us, window.end_us, 1e-6);
}

TEST(StepOrbit, LeftOverWorkIsTheLastOfTheStepBefore) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, -200, 200);
  b.op(main, "step", -200, 200);
  b.launch(main, -200, 10, 7, "gemm", -150, 100);
  b.launch(main, -100, 10, 7, "gemm", -50, 100);
  b.step(main, 2, 0, 200);
  b.op(main, "step", 0, 200);
  b.launch(main, 0, 10, 7, "gemm", 50, 100);
  b.launch(main, 100, 10, 7, "gemm", 150, 100);
  const RecordedRank rank = b.build();
  EXPECT_NEAR(predicted_us({rank}, {}), 200, 0.5);
  EXPECT_NEAR(predicted_us({rank}, {.host = 100}), 200, 2);
  EXPECT_NEAR(predicted_us({rank}, {.gpu = 0.5}), 400, 4);
  EXPECT_NEAR(predicted_us({rank}, {.gpu = 2}), 200, 2);
}

// Workers deliver a batch every 10 ms to a step that works for 4 ms with it, 2 ms of them on the GPU, and waits for that.
TEST(StepOrbit, ALoaderKeepsItsPaceWhateverTheStepDoes) {
  TraceBuilder b;
  const int main = b.thread(1);
  b.step(main, 1, 0, 10000);
  b.op(main, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0, 6000);
  b.op(main, "step", 6000, 4000);
  b.launch(main, 6000, 10, 7, "gemm", 6013, 3000);
  b.call(main, "cudaDeviceSynchronize", 8000, 1015);
  const RecordedRank rank = b.build();
  EXPECT_NEAR(predicted_us({rank}, {}), 10000, 20);
  EXPECT_NEAR(predicted_us({rank}, {.gpu = 2}), 10000, 100);
  EXPECT_NEAR(predicted_us({rank}, {.gpu = 0.5}), 10000, 100);  // 7 ms of step with a batch every 10
  EXPECT_NEAR(predicted_us({rank}, {.gpu = 0.1}), 31000, 310);  // 30 ms of GPU and 1 behind the wait
  EXPECT_NEAR(predicted_us({rank}, {.host = 2}), 5000, 50);     // the workers are on the host, too
}

}  // namespace
}  // namespace stepcast::step_orbit_test
