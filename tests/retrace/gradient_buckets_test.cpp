#include "stepcast/retrace/gradient_buckets.h"

#include <cmath>
#include <deque>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/predict/replay.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/trace/readers.h"

#include "tests/support/fails_with.h"
#include "tests/support/trace_generator.h"

namespace stepcast::gradient_buckets_test {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

// Two ranks whose backward has four gradients of 1, 3, 1 and 1 MiB, reduced in two buckets of 4 and 2 MiB, which
// take 20 us and 10 us per MiB:
//
//   us        0  10  20  30  40 45  55  65  75  85 90 100
//   thread    |B0|A0|B1|A1|L|B2|A2|B3|A3|L|O |                 and waits for O
//   stream 7     |B0 100 us |B1 100 us |B2 100 us |B3 100 us |             10, 110, 210, 310 to 410
//   stream 8                           |R0 60 us |            |R1 40 us |  210 to 270, 410 to 450
//   stream 7                                                            |O|  450 to 460
RecordedProgram two_buckets(bool reduces = true) {
  constexpr double kMiB = 1024.0 * 1024.0;
  RecordedProgram recorded;
  Program& program = recorded.program;
  std::vector<Collective> collectives(2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    BlockBuilder block{"rank"};
    const LaneId thread = block.add_lane({LaneKind::cpu_thread, "thread 1", 0});
    const LaneId compute = block.add_lane({LaneKind::gpu_stream, "stream 7", 7});
    const LaneId transfers = block.add_lane({LaneKind::gpu_stream, "stream 8", 8});
    std::vector<Interval> at;
    const auto add = [&](LaneId lane, TaskInfo info, double start, double us) {
      at.push_back({start, start + us});
      return block.add_task(lane, info, Microseconds{us});
    };
    const auto host = [&](const char* op) {
      return TaskInfo{.kind = TaskKind::cpu_segment,
                      .work = program.works.intern(HostWork{.op = program.names.intern(op)})};
    };
    const auto edge = [&](TaskId from, TaskId to, EdgeOrigin origin) {
      block.add_edge(BlockBuilder::end_of(from), to, Microseconds{0}, {.origin = origin});
    };
    const double MiB[] = {1, 3, 1, 1};
    std::vector<TaskId> reductions;
    double cpu = 0;
    TaskId kernel;
    for (int g = 0; g < 4; ++g) {
      const TaskId backward = add(thread, host("MmBackward0"), cpu, 10);
      kernel = add(compute, {.kind = TaskKind::kernel}, 10 + 100.0 * g, 100);
      edge(backward, kernel, EdgeOrigin::launch);
      const StackId accumulates = program.stacks.push(
          StackId{},
          program.names.intern("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"));
      TaskInfo info = host("aten::mul");
      info.stack = accumulates;
      const TaskId call = add(thread, info, cpu + 10, 10);
      const Operation copy{
          .shape = ElementwiseShape{.elements = static_cast<std::int64_t>(MiB[g] * kMiB / 4)},
          .dtype = DType::fp32};
      kernel =
          add(compute, {.kind = TaskKind::kernel, .stack = accumulates, .work = program.works.intern(copy)},
              110 + 100.0 * g, 0);
      edge(call, kernel, EdgeOrigin::launch);
      cpu += 20;
      if (g % 2 == 0 || !reduces) continue;
      const StackId reduces_it = program.stacks.push(accumulates, program.names.intern("c10d::allreduce_"));
      info = host("c10d::allreduce_");
      info.stack = reduces_it;
      const TaskId launch = add(thread, info, cpu, 5);
      const double bytes = (MiB[g - 1] + MiB[g]) * kMiB;
      const TaskId reduction =
          add(transfers,
              {.kind = TaskKind::collective,
               .kernel_class = KernelClass::communication,
               .stack = reduces_it,
               .work = program.works.intern(CollectiveWork{.op = CollectiveOp::all_reduce,
                                                           .dtype = DType::fp32,
                                                           .message = Bytes{bytes},
                                                           .group = program.add_group({"0", {0, 1}})})},
              g == 1 ? 210 : 410, 20 + 10 * bytes / kMiB);
      edge(launch, reduction, EdgeOrigin::launch);
      edge(kernel, reduction, EdgeOrigin::event);
      reductions.push_back(reduction);
      cpu += 5;
    }
    const TaskId launch = add(thread, host("Optimizer"), cpu, 10);
    const TaskId update = add(compute, {.kind = TaskKind::kernel}, 450, 10);
    edge(launch, update, EdgeOrigin::launch);
    for (const TaskId reduction : reductions) edge(reduction, update, EdgeOrigin::event);
    const TaskId end = add(thread, {.kind = TaskKind::sync_return}, 460, 0);
    edge(update, end, EdgeOrigin::synchronization);
    BlockBuilder::Finished finished = value_of(std::move(block).finish_with_map());
    recorded.measured.emplace_back(at.size());
    for (std::size_t t = 0; t < at.size(); ++t) recorded.measured[rank][finished.new_id[t].index()] = at[t];
    RecordedStepFacts facts;
    facts.rank = static_cast<std::int32_t>(rank);
    facts.step_us = {0, 460};
    facts.gpu_window_end_us = 460;
    facts.step_end_task = finished.new_id[end.index()];
    recorded.facts.push_back(facts);
    recorded.start_offset_us.push_back(0);
    recorded.files.emplace_back();
    RankClass ranks;
    ranks.lanes = {finished.block.lanes().begin(), finished.block.lanes().end()};
    const BlockId id = program.add_block(std::move(finished.block));
    const RankClassId c = program.add_rank_class(std::move(ranks));
    const InstanceId instance = program.add_instance(c, {.block = id});
    for (std::size_t b = 0; b < reductions.size(); ++b) {
      collectives[b].op = CollectiveOp::all_reduce;
      collectives[b].members.push_back({c, instance, finished.new_id[reductions[b].index()]});
    }
  }
  for (Collective& collective : collectives) {
    if (!collective.members.empty()) program.add_collective(std::move(collective));
  }
  return recorded;
}

double step_us(const RecordedProgram& recorded) {
  const ReplayScores scores = value_of(score_replay(recorded, Costs{recorded.program}));
  EXPECT_DOUBLE_EQ(scores.ranks[0].step.simulated_us, scores.ranks[1].step.simulated_us);
  return scores.ranks[0].step.simulated_us;
}

RecordedProgram with_buckets(double mb) {
  std::vector<std::string> notes;
  return value_of(with_bucket_size(two_buckets(), mb, {}, notes));
}

TEST(GradientBuckets, OfTheRecordedSizeChangeNothing) {
  EXPECT_DOUBLE_EQ(step_us(two_buckets()), 460);
  // 1 + 3 MiB close at 2 MiB, and so do 1 + 1.
  EXPECT_DOUBLE_EQ(step_us(with_buckets(2)), 460);
}

// One of 6 MiB behind the last gradient: 410 + 20 + 60, and 10 of the optimizer.
TEST(GradientBuckets, JoinInOneBehindTheLastGradient) {
  const RecordedProgram one = with_buckets(100);
  EXPECT_NEAR(step_us(one), 500, 1e-9);
  ASSERT_EQ(one.program.collectives().size(), 1U);
  EXPECT_DOUBLE_EQ(one.program.collectives()[0].message_bytes, 6 * 1024 * 1024);
  EXPECT_EQ(one.program.collectives()[0].members.size(), 2U);
}

// 1, 3, 1 and 1 MiB at 110, 210, 310 and 410: the last takes 30 to 440, and the optimizer 10.
TEST(GradientBuckets, SplitIntoOnePerGradient) {
  const RecordedProgram four = with_buckets(0.5);
  EXPECT_NEAR(step_us(four), 450, 1e-9);
  EXPECT_EQ(four.program.collectives().size(), 4U);
}

// 1 + 3 MiB close at 3 MiB, 1 + 1 with the last gradient; nothing moves. At 5 MiB: 1 + 3 + 1 at 310, 70 us, and 1 behind
// it at 410: 440 and 10.
TEST(GradientBuckets, MayEndWhereNoneDid) {
  EXPECT_DOUBLE_EQ(step_us(with_buckets(3)), 460);
  EXPECT_NEAR(step_us(with_buckets(5)), 450, 1e-9);
}

TEST(GradientBuckets, NeedReducedGradients) {
  std::vector<std::string> notes;
  EXPECT_THAT(with_bucket_size(two_buckets(false), 25, {}, notes),
              test::FailsWith("no all-reduce of gradients was launched from the backward"));
}

// Buckets of 51 KiB, 1 MiB and of everything predict each other: what the generator makes of the other size is the
// truth.
TEST(GradientBuckets, OfAGeneratedJobPredictEachOther) {
  const auto recorded_with = [](double MiB, std::uint64_t seed) {
    test::GeneratorOptions options;
    options.seed = seed;
    options.bucket_bytes = MiB * 1024 * 1024;
    options.collective_metadata = true;
    options.kernel_scale = 4;
    options.start_skew_us = 0;
    options.late_gpu_ranks = {};
    return test::generate_job(options);
  };
  // The shapes of the gradients are in the execution traces.
  std::deque<ExecutionTrace> shapes;
  const auto inputs_of = [&](const test::GeneratedJob& job) {
    std::vector<RecordedInput> inputs;
    for (const test::GeneratedRank& rank : job.ranks) {
      shapes.push_back(value_of(parse_execution_trace(rank.execution_trace, "et.json")));
      inputs.push_back({&rank.recorded, &shapes.back()});
    }
    return inputs;
  };
  const double sizes[] = {0.05, 1, 1000};
  double mean = 0;
  for (const double from : sizes) {
    const test::GeneratedJob job = recorded_with(from, 1);
    for (const double to : sizes) {
      if (from == to) continue;
      const test::GeneratedJob other = recorded_with(to, 2);
      TracePredictionOptions how;
      how.bucket_mb = to;
      const Result<TracePrediction> p = predict_trace(inputs_of(job), how);
      if (from == 1000) {  // one bucket tells no line, and no models were named
        EXPECT_THAT(p, test::FailsWith("cannot be derived from the recorded all-reduces"));
        continue;
      }
      ASSERT_TRUE(p.ok()) << p.error().message();
      const RecordedProgram truth = value_of(rebuild_program(inputs_of(other)));
      EXPECT_EQ(p->recorded.program.collectives().size(), truth.program.collectives().size())
          << from << " MiB to " << to << " MiB: " << p->notes.front();
      for (std::size_t r = 0; r < truth.facts.size(); ++r) {
        const double error = p->ranks[r].step.simulated_us / truth.facts[r].step_us.length_us() - 1;
        EXPECT_LT(std::abs(error), 0.02) << from << " MiB to " << to << " MiB, rank " << r;
        mean += std::abs(error) / 16;
      }
    }
  }
  RecordProperty("mean_error", std::to_string(mean));
  EXPECT_LT(mean, 0.01);
}

}  // namespace
}  // namespace stepcast::gradient_buckets_test
