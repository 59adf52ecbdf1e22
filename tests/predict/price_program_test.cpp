#include "stepcast/predict/price_program.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/predicted_step.h"
#include "stepcast/predict/step_program.h"
#include "stepcast/sources/trace_set.h"
#include "stepcast/workload/framework_rule.h"

#include "tests/predict/random_training.h"
#include "tests/support/paths.h"

namespace stepcast::price_program_test {
namespace {

using literals::operator""_us;
using ::testing::HasSubstr;

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

StepModel& steps() {
  static const Platform kPlatform = value_of(load_platform("dgx-h100"));
  static StepModel model{kPlatform};
  return model;
}

// One rank that does what it is told, as a recording would say it: every task took 7 us.
class Recorded {
 public:
  Recorded() {
    cpu_ = block_.add_lane({LaneKind::cpu_thread, "main"});
    gpu_ = block_.add_lane({LaneKind::gpu_stream, "stream 7"});
  }
  TaskId add(TaskKind kind, std::string_view name, const TaskWork& work, double times = 1) {
    const bool host = kind == TaskKind::cpu_call || kind == TaskKind::cpu_segment;
    return block_.add_task(host ? cpu_ : gpu_,
                           {.kind = kind,
                            .kernel_class = host ? KernelClass::none : KernelClass::other,
                            .name = program.names.intern(name),
                            .work = program.works.intern(work),
                            .work_times = times},
                           7_us);
  }
  BlockBuilder& block() { return block_; }
  PricedProgram priced(const std::vector<GroupPlacement>& groups = {}) {
    const BlockId id = program.add_block(value_of(std::move(block_).finish()));
    const RankClassId rank = program.add_rank_class(
        {.name = "rank 0", .lanes = {{LaneKind::cpu_thread, "main"}, {LaneKind::gpu_stream, "stream 7"}}});
    program.add_instance(rank, {.block = id});
    return value_of(price_program(program, steps().worker().pricer(), groups));
  }
  Program program;

 private:
  BlockBuilder block_{"step"};
  LaneId cpu_, gpu_;
};

// A recorded task and a described one that do the same take the same time, to the last bit.
TEST(PriceProgram, RecordedAndDescribedWorkCostTheSame) {
  Transformer model;
  model.name = "gpt";
  model.n_layers = 4;
  model.hidden_size = 2048;
  model.ffn_hidden_size = 8192;
  model.n_heads = 16;
  model.vocab_size = 51200;
  model.max_position = 2048;
  Layout layout;
  layout.degrees = {.tensor = 4, .data = 2};
  layout.batch = {.micro_batch_sequences = 2, .global_batch_sequences = 8, .seq_len_tokens = 2048};
  const PredictedStep described = value_of(predict_step(model, layout, steps()));

  Recorded recorded;
  std::vector<std::pair<TaskId, double>> expected;
  int products = 0, attentions = 0, norms = 0, all_reduces = 0;
  for (std::size_t b = 0; b < described.program.blocks().size(); ++b) {
    const Block& block = described.program.blocks()[b];
    for (std::size_t t = 0; t < block.task_count(); ++t) {
      const TaskInfo& task = block.tasks()[t];
      // The recorded tasks run alone.
      const bool is_slowed = std::any_of(block.overlaps().begin(), block.overlaps().end(),
                                         [&](const Overlap& o) { return o.computation == TaskId{t}; });
      if (is_slowed) continue;
      TaskWork work = described.program.works.of(task.work);
      if (const Operation* operation = std::get_if<Operation>(&work)) {
        products += kernel_class_of(*operation) == KernelClass::gemm ? 1 : 0;
        attentions += kernel_class_of(*operation) == KernelClass::attention ? 1 : 0;
        norms += kernel_class_of(*operation) == KernelClass::normalization ? 1 : 0;
      } else if (auto* collective = std::get_if<CollectiveWork>(&work)) {
        all_reduces += collective->op == CollectiveOp::all_reduce ? 1 : 0;
        const RankGroup& group = described.program.groups()[collective->group.index()];
        // The process group of a trace has a name of its own, and ranks.
        collective->group =
            recorded.program.add_group({.label = "process group " + group.label, .ranks = {0, 1}});
      } else {
        continue;
      }
      const double us = described.prices.costs.duration_us(BlockId{b})[t];
      expected.emplace_back(recorded.add(TaskKind::kernel, "kernel", work, task.work_times), us);
    }
  }
  EXPECT_GT(products, 0);
  EXPECT_GT(attentions, 0);
  EXPECT_GT(norms, 0);
  EXPECT_GT(all_reduces, 0);
  std::vector<GroupPlacement> places;
  for (const RankGroup& group : recorded.program.groups()) {
    for (std::size_t g = 0; g < described.groups.size(); ++g) {
      if (group.label == "process group " + described.program.groups()[g].label) {
        places.push_back(described.groups[g]);
      }
    }
  }
  const PricedProgram priced = recorded.priced(places);
  for (const auto& [task, us] : expected) EXPECT_EQ(priced.costs.duration_us(BlockId{0})[task.index()], us);
}

// step_program() takes the times of its lists and transfers from the same prices; here every task is priced
// by the work it carries.
TEST(PriceProgram, ReproducesTheTimesOfDescribedPrograms) {
  std::mt19937_64 random{13};
  std::size_t slowed = 0, shares = 0, hybrid = 0;
  for (int i = 0; i < 300; ++i) {
    const test::RandomTraining training = test::random_training(random);
    SCOPED_TRACE(fmt::format("{}: {}", i, describe(training)));
    const PredictedStep step = value_of(predict_step(training.model, training.layout, steps()));
    for (std::size_t b = 0; b < step.program.blocks().size(); ++b) {
      const Block& block = step.program.blocks()[b];
      slowed += block.overlaps().size();
      for (std::size_t t = 0; t < block.task_count(); ++t) {
        const double built = block.duration_us()[t];
        const TaskInfo& task = block.tasks()[t];
        ASSERT_TRUE(task.work.valid()) << step.program.names.text(task.name);
        ASSERT_NEAR(step.prices.costs.duration_us(BlockId{b})[t], built, 1e-12 * built)
            << step.program.names.text(task.name);
        if (task.work_times < 1) ++shares;
      }
    }
    for (const RankGroup& group : step.program.groups()) hybrid += group.label == "replicate" ? 1U : 0U;
    const Coverage& coverage = step.prices.coverage;
    EXPECT_TRUE(coverage.unmodelled.empty());
    EXPECT_EQ(coverage.gpu_share(EstimateSource::measured), 0);
    EXPECT_NEAR(step.timeline.end_us() / step.summary.times.step_us, 1, 1e-9);
  }
  EXPECT_GT(slowed, 0U);
  EXPECT_GT(shares, 0U);
  EXPECT_GT(hybrid, 0U);
}

// Another platform, another price: nothing of the first platform stays in the durations.
TEST(PriceProgram, PricesAProgramOfAnotherPlatform) {
  std::mt19937_64 random{14};
  const Platform platform = value_of(load_platform("dgx-a100"));
  StepModel others{platform};
  for (int i = 0; i < 40; ++i) {
    const test::RandomTraining training = test::random_training(random);
    SCOPED_TRACE(fmt::format("{}: {}", i, describe(training)));
    if (training.layout.layer.attention == AttentionMethod::flash) continue;  // kernels differ by device
    if (training.layout.layer.precision.compute == DType::fp8) continue;      // the other one has no units
    if (training.layout.layer.operator_launches || rule_of(training.layout).layers.launches_operators)
      continue;  // counted for one host
    const PredictedStep here = value_of(predict_step(training.model, training.layout, steps()));
    const PredictedStep there = value_of(predict_step(training.model, training.layout, others));
    const PricedProgram moved =
        value_of(price_program(here.program, others.worker(there.parts).pricer(), here.groups));
    const double end = value_of(value_of(Plan::compile(here.program)).simulate(moved.costs)).end_us();
    EXPECT_NEAR(end / there.timeline.end_us(), 1, 1e-9);
  }
}

// Two transfers of 1 and 2 MB beside a product: it takes 1 + 2 % of the share of its time that they cover.
TEST(PriceProgram, SlowsComputationBesideTransfers) {
  Recorded recorded;
  const GroupId group = recorded.program.add_group({.label = "tensor"});
  const Operation product = gemm({.m = 65536, .n = 4096, .k = 4096}, DType::bf16);
  const auto transfer = [&](double bytes) {
    return CollectiveWork{.op = CollectiveOp::all_gather, .message = Bytes{bytes}, .group = group};
  };
  const TaskId first = recorded.add(TaskKind::kernel, "first", transfer(1e6));
  const TaskId second = recorded.add(TaskKind::kernel, "second", transfer(2e6));
  const TaskId slow = recorded.add(TaskKind::kernel, "product", product);
  const TaskId alone = recorded.add(TaskKind::kernel, "product", product);
  recorded.block().add_overlap(slow, first);
  recorded.block().add_overlap(slow, second);
  const GroupPlacement place{.n_ranks = 8, .n_nodes = 1, .ranks_per_node = 8, .min_ranks_per_node = 8};
  const PricedProgram priced = recorded.priced({place});
  const auto us = [&](TaskId task) { return priced.costs.duration_us(BlockId{0})[task.index()]; };
  EXPECT_DOUBLE_EQ(us(alone), steps().worker().pricer().price(product).time.value());
  ASSERT_LT(us(first) + us(second), us(alone));
  EXPECT_DOUBLE_EQ(us(slow), us(alone) + 0.02 * (us(first) + us(second)));
}

// What cannot be priced keeps its 7 us, and coverage says so.
TEST(PriceProgram, KeepsRecordedTimesOfWhatItDoesNotKnow) {
  Recorded recorded;
  const GroupId one = recorded.program.add_group({.label = "default", .ranks = {0}});
  const Operation product = gemm({.m = 4096, .n = 4096, .k = 4096}, DType::bf16);
  const TaskId half = recorded.add(TaskKind::kernel, "ampere_gemm", product, 0.5);
  const TaskId twice = recorded.add(TaskKind::kernel, "ampere_gemm", product, 2);
  const TaskId custom = recorded.add(TaskKind::kernel, "my_kernel", std::monostate{});
  const TaskId copy =
      recorded.add(TaskKind::kernel, "nccl_all_reduce",
                   CollectiveWork{.op = CollectiveOp::all_reduce, .message = Bytes{1e6}, .group = one});
  const TaskId launch =
      recorded.add(TaskKind::cpu_call, "cudaLaunchKernel", HostWork{.type = OverheadType::t4});
  const TaskId between = recorded.add(TaskKind::cpu_segment, "data loader",
                                      HostWork{.activity = HostWork::Activity::between_steps});
  const TaskId pause = recorded.add(TaskKind::wait, "wait", Waiting{});
  const PricedProgram priced = recorded.priced({GroupPlacement{}});
  const auto us = [&](TaskId task) { return priced.costs.duration_us(BlockId{0})[task.index()]; };
  const double once = steps().worker().pricer().price(product).time.value();
  EXPECT_DOUBLE_EQ(us(half), once / 2);
  EXPECT_DOUBLE_EQ(us(twice), 2 * once);
  EXPECT_DOUBLE_EQ(us(custom), 7);
  EXPECT_DOUBLE_EQ(us(copy), 7);
  EXPECT_DOUBLE_EQ(us(launch), 7);
  EXPECT_DOUBLE_EQ(us(between), steps().assumptions().step_fixed_us);
  EXPECT_DOUBLE_EQ(us(pause), 0);

  const Coverage& coverage = priced.coverage;
  EXPECT_DOUBLE_EQ(coverage.gpu_total_us(), 2.5 * once + 14);
  EXPECT_DOUBLE_EQ(coverage.gpu_share(EstimateSource::measured), 14 / (2.5 * once + 14));
  EXPECT_DOUBLE_EQ(coverage.host_us[static_cast<std::size_t>(EstimateSource::measured)], 7);
  ASSERT_EQ(coverage.unmodelled.size(), 2U);
  EXPECT_EQ(coverage.unmodelled[0].name, "my_kernel");
  EXPECT_EQ(coverage.unmodelled[0].why, "no operation is known");
  EXPECT_EQ(coverage.unmodelled[1].name, "nccl_all_reduce");
  EXPECT_EQ(coverage.unmodelled[1].why, "a group of one rank");
  EXPECT_EQ(coverage.unmodelled[1].tasks, 1U);

  const Block& block = recorded.program.blocks()[0];
  const Estimate of_twice = priced.estimate(block.task(twice), us(twice));
  EXPECT_DOUBLE_EQ(of_twice.time.value(), 2 * once);
  EXPECT_LT(of_twice.p10, of_twice.time);
  EXPECT_EQ(priced.estimate(block.task(custom), 7).source, EstimateSource::measured);
}

TEST(PriceProgram, RefusesPlacementsOfAnotherProgram) {
  Program program;
  program.add_group({.label = "tensor"});
  const auto priced = price_program(program, steps().worker().pricer(), {});
  ASSERT_FALSE(priced.ok());
  EXPECT_THAT(priced.error().message(), HasSubstr("found 0 placements, expected 1, one per group"));
}

// Groups {0, 1} and {2, 3} of one label on nodes of two: each has a node to itself.
TEST(PlaceRecordedGroups, CountsGroupsOfTheSameLabel) {
  Program program;
  program.add_group({.label = "tensor", .ranks = {0, 1}});
  program.add_group({.label = "tensor", .ranks = {2, 3}});
  program.add_group({.label = "data", .ranks = {0, 2}});
  program.add_group({.label = "data", .ranks = {1, 3}});
  const std::vector<GroupPlacement> places = place_recorded_groups(program, 2);
  ASSERT_EQ(places.size(), 4U);
  EXPECT_EQ(places[0].n_nodes, 1);
  EXPECT_EQ(places[0].groups_per_node, 1);
  EXPECT_EQ(places[3].n_nodes, 2);
  EXPECT_EQ(places[3].groups_per_node, 2);
}

// A recorded step of a recommendation model: every time is finite, and what is not modelled has a name.
TEST(PriceProgram, SaysWhatItCannotPriceOfARecordedStep) {
  const std::vector<std::filesystem::path> place{test::source_dir() / "examples" / "dlrm_4gpu"};
  const TraceSet set = value_of(read_trace_set(value_of(list_traces(place))));
  const RecordedProgram recorded = value_of(rebuild_program(set.inputs()));
  const Program& program = recorded.program;
  const PricedProgram priced =
      value_of(price_program(program, steps().worker().pricer(), place_recorded_groups(program, 8)));
  ASSERT_TRUE(priced.costs.check(program).ok());
  const Timeline timeline = value_of(value_of(Plan::compile(program)).simulate(priced.costs));
  EXPECT_TRUE(std::isfinite(timeline.end_us()));
  const Coverage& coverage = priced.coverage;
  EXPECT_GT(coverage.gpu_total_us(), 0);
  double shares = 0;
  for (int source = 0; source < kEstimateSourceCount; ++source) {
    shares += coverage.gpu_share(static_cast<EstimateSource>(source));
  }
  EXPECT_NEAR(shares, 1, 1e-12);
  ASSERT_FALSE(coverage.unmodelled.empty());
  double unmodelled_us = 0;
  for (const Coverage::Unmodelled& work : coverage.unmodelled) {
    unmodelled_us += work.time_us;
    EXPECT_FALSE(work.name.empty());
    EXPECT_FALSE(work.why.empty());
    EXPECT_GT(work.tasks, 0U);
  }
  EXPECT_NEAR(unmodelled_us / coverage.gpu_total_us(), coverage.gpu_share(EstimateSource::measured), 1e-12);
}

}  // namespace
}  // namespace stepcast::price_program_test
