#include "lab/dlrm_trace.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/describe/dlrm_presets.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/dlrm_step.h"
#include "stepcast/predict/replay.h"
#include "stepcast/sources/trace_listing.h"
#include "stepcast/sources/trace_set.h"

namespace stepcast {
namespace {

using ClassTimes = std::array<double, kKernelClassCount>;
constexpr std::size_t kCommunication = static_cast<std::size_t>(KernelClass::communication);

// Of a rank's GPU, mean over ranks, without what was launched before the step.
ClassTimes recorded_us(const Replay& replayed) {
  ClassTimes us{};
  const Program& program = replayed.recorded.program;
  const auto n_ranks = static_cast<double>(program.rank_classes().size());
  for (std::size_t b = 0; b < program.blocks().size(); ++b) {
    const Block& block = program.block(BlockId{b});
    const std::vector<bool> before = left_over_tasks(block);
    const std::span<const double> durations = replayed.costs.duration_us(BlockId{b});
    for (std::size_t t = 0; t < block.tasks().size(); ++t) {
      const TaskInfo& task = block.tasks()[t];
      if (before[t] || (task.kind != TaskKind::kernel && task.kind != TaskKind::memcpy)) continue;
      us[static_cast<std::size_t>(task.kernel_class)] += durations[t] / n_ranks;
    }
  }
  us[kCommunication] = 0;
  return us;
}

// What the traces' job was, from the shapes that its execution traces hold.
Dlrm described_model() {
  Dlrm model = *dlrm_preset("dlrm-dcnv2-mlperf");
  model.name = "dlrm8";
  model.bottom_mlp = {256, 128, 16};
  model.top_mlp = {512, 512, 256, 1};
  model.interaction = Interaction::dot;
  for (EmbeddingTable& table : model.tables) table.dim = 16;
  return model;
}

// Three tables on every rank, as rows and lookups of the execution traces tell, and the two of 3 and 4 rows on all.
ShardingPlan described_plan() {
  constexpr std::size_t kTables = 26;
  constexpr std::array<std::array<std::size_t, 3>, 8> kTablesOfRank{{{0, 1, 7},
                                                                     {9, 4, 17},
                                                                     {19, 2, 15},
                                                                     {20, 23, 24},
                                                                     {21, 14, 8},
                                                                     {10, 3, 25},
                                                                     {22, 6, 18},
                                                                     {11, 13, 12}}};
  ShardingPlan plan{.name = "as traced", .tables = std::vector<TablePlan>(kTables)};
  for (TablePlan& table : plan.tables) table.kind = ShardingKind::data_parallel;
  for (std::size_t r = 0; r < kTablesOfRank.size(); ++r)
    for (const std::size_t t : kTablesOfRank[r])
      plan.tables[t] = {.kind = ShardingKind::table_wise, .ranks = {static_cast<std::int32_t>(r)}};
  return plan;
}

double sum_of(const ClassTimes& us) {
  double sum = 0;
  for (const double x : us) sum += x;
  return sum;
}

}  // namespace

Status score_described_trace(const std::filesystem::path& folder, SuiteResult& result) {
  constexpr std::int64_t kRanks = 8, kSamples = 16;
  STEPCAST_ASSIGN(const TraceListing listing, list_traces(std::vector{folder}));
  STEPCAST_ASSIGN(const TraceSet set, read_trace_set(listing));
  STEPCAST_ASSIGN(const Replay replayed, replay(set.inputs(), {.compare_variants = false}));
  STEPCAST_ASSIGN(const Platform platform, load_platform("dgx-1-v100-32gb"));
  const DlrmTraining training{.stack = DlrmStack::torchrec,
                              .global_batch = kRanks * kSamples,
                              .dtype = DType::fp32,
                              .dense_optimizer = OptimizerKind::adagrad,
                              .table_optimizer = OptimizerKind::adagrad,
                              .dense_optimizer_implementation = OptimizerImplementation::for_loop};
  STEPCAST_ASSIGN(DlrmStepModel steps, DlrmStepModel::create(described_model(), training, platform, kRanks));
  STEPCAST_ASSIGN(const DlrmStep step, steps.predict(described_plan()));
  const Coverage coverage = steps.coverage();
  ClassTimes predicted{};
  for (std::size_t k = 0; k < kKernelClassCount; ++k) {
    if (k == kCommunication) continue;
    for (const double us : coverage.gpu_us[k]) predicted[k] += us;
  }
  const ClassTimes recorded = recorded_us(replayed);
  TestScore test{.test = "described_trace", .protocol = "shipped", .unit = "us"};
  SetScore gpu{.set = "dlrm8 GPU time"}, classes{.set = "dlrm8 by class"}, whole{.set = "dlrm8 step"};
  gpu.rows.push_back({"computation of a rank", sum_of(recorded), sum_of(predicted)});
  for (std::size_t k = 0; k < kKernelClassCount; ++k)
    if (recorded[k] > 0 || predicted[k] > 0)
      classes.rows.push_back(
          {std::string{to_string(static_cast<KernelClass>(k))}, recorded[k], predicted[k]});
  double measured = 0;
  for (const ReplayedRank& rank : replayed.ranks)
    measured += rank.step.measured_us / static_cast<double>(replayed.ranks.size());
  whole.rows.push_back(
      {"mean over ranks", measured, step.time.time.value(), step.time.p10.value(), step.time.p90.value()});
  test.sets = {std::move(gpu), std::move(classes), std::move(whole)};
  test.finish();
  result.tests.push_back(std::move(test));
  return Ok{};
}

}  // namespace stepcast
