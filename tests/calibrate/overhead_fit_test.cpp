#include "calibrate/overhead_fit.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/replay.h"
#include "stepcast/retrace/host_prices.h"
#include "stepcast/sources/trace_set.h"

#include "lab/published_overheads.h"
#include "tests/support/data.h"
#include "tests/support/host_trace.h"
#include "tests/support/trace_builder.h"
#include "tests/support/trace_generator.h"

namespace stepcast::overhead_fit_test {
namespace {

using ::testing::ElementsAre;

RecordedProgram rebuild(const RecordedRank& rank) {
  const RecordedInput input{&rank, nullptr};
  auto recorded = rebuild_program(std::span{&input, 1});
  EXPECT_TRUE(recorded.ok()) << recorded.error().message();
  return *std::move(recorded);
}

const OverheadRecord& record_of(const OverheadFit& fit, OverheadType type, std::string_view op) {
  static const OverheadRecord none{};
  for (const OverheadRecord& record : fit.records) {
    if (record.type == type && record.op == op) return record;
  }
  ADD_FAILURE() << to_string(type) << " of " << op << " is missing";
  return none;
}

// Host time of a recorded step, summed over its CPU threads, waiting left out.
struct HostTimeOfStep {
  double recorded_us = 0;
  double from_overheads_us = 0;            // the same pieces with their mean times
  double on_family_us = 0, on_all_us = 0;  // of it, for operators that `host` does not know itself
  double unknown_us = 0;                   // recorded time of pieces for which `host` has nothing
};
HostTimeOfStep host_time_of_step(const RecordedProgram& recorded, RankClassId rank,
                                 const HostOverheads& host) {
  HostTimeOfStep time;
  for (const HostPiece& piece : recorded.host[rank.index()].pieces) {
    const HostOverhead overhead =
        host.time(piece.type, piece.op.valid() ? recorded.program.names.text(piece.op) : kStepEnd);
    time.recorded_us += piece.duration_us;
    time.from_overheads_us += overhead.mean_us;
    switch (overhead.ground) {
      case OverheadTimeSource::own: break;
      case OverheadTimeSource::family: time.on_family_us += overhead.mean_us; break;
      case OverheadTimeSource::all: time.on_all_us += overhead.mean_us; break;
      case OverheadTimeSource::none: time.unknown_us += piece.duration_us; break;
    }
  }
  return time;
}

TEST(OverheadFit, TakesMeansOverAllOccurrences) {
  const OverheadFit fit = fit_overheads(recorded_overheads(rebuild(test::host_trace())));
  // Two launches of 5 and 4 us: mean 4.5, standard deviation 0.5.
  const OverheadRecord& launch = record_of(fit, OverheadType::t4, "cudaLaunchKernel");
  EXPECT_DOUBLE_EQ(launch.mean_us, 4.5);
  EXPECT_DOUBLE_EQ(*launch.std_us, 0.5);
  EXPECT_EQ(launch.n, 2U);
  EXPECT_DOUBLE_EQ(record_of(fit, OverheadType::t2, "aten::addmm").mean_us, 10);
  EXPECT_DOUBLE_EQ(*record_of(fit, OverheadType::t2, "aten::addmm").profiler_events, 1);
  // T2 of addmm, copy_, item: 10, 0, 4. T1 before four operators: 20, 7, 0, 10; the end of the step is in none.
  EXPECT_NEAR(record_of(fit, OverheadType::t2, "").mean_us, 14.0 / 3, 1e-4);
  EXPECT_DOUBLE_EQ(record_of(fit, OverheadType::t1, "").mean_us, 37.0 / 4);
  EXPECT_DOUBLE_EQ(record_of(fit, OverheadType::t1, kStepEnd).mean_us, 50);
  // T5 of the view is a view's; those of addmm and copy_ (9 and 5 us) are of other operators.
  EXPECT_DOUBLE_EQ(record_of(fit, OverheadType::t5, "(view)").mean_us, 3);
  EXPECT_DOUBLE_EQ(record_of(fit, OverheadType::t5, "(operator)").mean_us, 7);
  EXPECT_DOUBLE_EQ(fit.sum_us, 167);
  EXPECT_THAT(fit.launches.at("aten::copy_").calls, ElementsAre("cudaMemcpyAsync", "cudaStreamSynchronize"));
  EXPECT_DOUBLE_EQ(fit.launches.at("aten::view").mean_calls, 0);
}

TEST(OverheadFit, KeepsWhatOutliersAddAsAFigureOfItsOwn) {
  OverheadSamples samples;
  for (const double us : {10.0, 10.0, 10.0, 10.0, 150.0}) samples.add(OverheadType::t1, "x", {us, 1});
  const OverheadRecord record = record_of(fit_overheads(samples), OverheadType::t1, "x");
  // 190 / 5; both quartiles are 10, so 150 is an outlier and the others have a mean of 10.
  EXPECT_DOUBLE_EQ(record.mean_us, 38);
  EXPECT_DOUBLE_EQ(*record.outlier_us, 28);
}

TEST(OverheadFit, TakesTheCostOfTheProfilerOffOnceAndSaysHowMuch) {
  OverheadSamples samples;
  samples.add(OverheadType::t2, "x", {10, 2});
  samples.add(OverheadType::t2, "x", {3, 2});
  const OverheadFit fit = fit_overheads(samples, {.profiler_cost_us = 2});
  // 10 - 2 x 2 = 6 and 3 - 4 < 0: 0. Taken off: 4 + 3 of 13 us.
  const OverheadRecord& record = record_of(fit, OverheadType::t2, "x");
  EXPECT_DOUBLE_EQ(record.mean_us, 3);
  EXPECT_FALSE(record.profiler_events);
  EXPECT_DOUBLE_EQ(fit.sum_us, 13);
  EXPECT_DOUBLE_EQ(fit.profiler_cost_us, 7);
}

TEST(OverheadFit, PoolsJobsByOccurrence) {
  OverheadSamples one, other;
  one.add(OverheadType::t5, "x", {4, 0});
  one.launches["x"][{}] = 1;
  other.add(OverheadType::t5, "x", {1, 0});
  other.add(OverheadType::t5, "x", {1, 0});
  other.launches["x"][{"cudaLaunchKernel"}] = 2;
  one.add(other);
  const OverheadFit fit = fit_overheads(one);
  EXPECT_DOUBLE_EQ(record_of(fit, OverheadType::t5, "x").mean_us, 2);
  EXPECT_THAT(fit.launches.at("x").calls, ElementsAre("cudaLaunchKernel"));
  EXPECT_NEAR(fit.launches.at("x").mean_calls, 2.0 / 3, 1e-4);
}

TEST(OverheadFit, RebuildsTheStepItWasLearnedFrom) {
  const RecordedProgram recorded = rebuild(test::host_trace());
  const HostOverheads host = fit_overheads(recorded_overheads(recorded)).host();
  const HostTimeOfStep time = host_time_of_step(recorded, RankClassId{0}, host);
  EXPECT_DOUBLE_EQ(time.recorded_us, 167);
  EXPECT_NEAR(time.from_overheads_us, 167, 1e-3);
  EXPECT_EQ(time.on_family_us, 0);
  EXPECT_EQ(time.unknown_us, 0);
  // Without what is known of operators nothing is left to rebuild it from.
  const HostTimeOfStep nothing = host_time_of_step(recorded, RankClassId{0}, HostOverheads{});
  EXPECT_EQ(nothing.from_overheads_us, 0);
  EXPECT_DOUBLE_EQ(nothing.unknown_us, 167);
}

TEST(OverheadFit, ComesBackFromAPlatformFile) {
  const OverheadFit fit = fit_overheads(recorded_overheads(rebuild(test::host_trace())));
  auto platform = load_platform("v100-sxm2-32gb");
  ASSERT_TRUE(platform.ok()) << platform.error().message();
  platform->overheads = {};
  Provenance provenance;
  provenance.source = FigureSource::fitted;
  provenance.document = "a made trace";
  fit.write_to(*platform, provenance);
  const auto read = parse_platform(platform_json(*platform), "x.json", {});
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*read, *platform);
  const auto host = HostOverheads::of(*read);
  ASSERT_TRUE(host.ok()) << host.error().message();
  EXPECT_EQ(host->time(OverheadType::t2, "aten::addmm").mean_us, 10);
  EXPECT_EQ(*host->launches("aten::copy_"), fit.launches.at("aten::copy_"));
}

// What every trace has to keep: no time is lost between the threads' tasks, their pieces and the records.
void expect_sum_kept(const std::filesystem::path& place) {
  SCOPED_TRACE(place);
  const auto listing = list_traces(std::span{&place, 1});
  ASSERT_TRUE(listing.ok()) << listing.error().message();
  std::vector<TraceListing::Other> skipped;
  for (const TraceSet& set : read_trace_sets(*listing, {}, skipped)) {
    std::vector<RecordedInput> inputs;
    for (const RecordedRank& rank : set.ranks) inputs.push_back({&rank, nullptr});
    const auto recorded = rebuild_program(inputs);
    if (!recorded.ok()) continue;
    SCOPED_TRACE(set.name);
    const HostOverheads host = fit_overheads(recorded_overheads(*recorded)).host();
    double pieces_us = 0, rebuilt_us = 0, tasks_us = 0, priced_us = 0, unspread_us = 0;
    for (std::size_t r = 0; r < recorded->host.size(); ++r) {
      const HostTimeOfStep time = host_time_of_step(*recorded, RankClassId{r}, host);
      pieces_us += time.recorded_us;
      rebuilt_us += time.from_overheads_us;
      const Block& block = recorded->program.block_of(RankClassId{r}, InstanceId{0});
      for (std::uint32_t t = 0; t < block.task_count(); ++t) {
        const HostWork* work = recorded->program.works.host(block.tasks()[t].work);
        if (work == nullptr) continue;
        tasks_us += block.duration_us()[t];
        const std::string_view op = work->op.valid() ? recorded->program.names.text(work->op) : kStepEnd;
        priced_us += block.tasks()[t].work_times * host.time(work->type, op).mean_us;
      }
      // Overheads that have no length on this rank, but have some on others, have no task to carry them.
      unspread_us += 0.002 * time.recorded_us;
    }
    ASSERT_GT(pieces_us, 0);
    EXPECT_NEAR(pieces_us, tasks_us, 1e-6 * tasks_us);
    EXPECT_NEAR(rebuilt_us, pieces_us, 1e-4 * pieces_us);
    EXPECT_NEAR(priced_us, pieces_us, unspread_us);
  }
}

TEST(OverheadFit, KeepsTheHostTimeOfRecordedSteps) {
  SKIP_WITHOUT_DATA();
  const auto traces = *test::measured_data() / "traces";
  expect_sum_kept(traces / "dlrm8");
  expect_sum_kept(traces / "kineto_w0");
}

std::vector<double> host_durations(const RecordedProgram& recorded, const Costs& costs, RankClassId c) {
  const std::span<const double> us =
      costs.duration_us(recorded.program.rank_class(c).instances.front().block);
  return {us.begin(), us.end()};
}

// Whatever is learned from a rank keeps its sum; what the other ranks say comes close to it.
TEST(OverheadFit, OfAGeneratedJobKeepsItsHostTime) {
  test::GeneratorOptions options;
  options.ranks = 4;
  options.cpu_jitter = 0.3;
  const test::GeneratedJob job = test::generate_job(options);
  std::vector<RecordedInput> inputs;
  for (const test::GeneratedRank& rank : job.ranks) inputs.push_back({&rank.recorded, nullptr});
  const Result<RecordedProgram> recorded = rebuild_program(inputs);
  ASSERT_TRUE(recorded.ok()) << recorded.error().message();
  for (std::size_t c = 0; c < 4; ++c) {
    const RankClassId id{c};
    const std::vector<double> own = host_durations(*recorded, Costs{recorded->program}, id);
    Costs costs{recorded->program};
    (void)apply_host_overheads(fit_overheads(recorded_overheads(*recorded, std::vector{id})).host(),
                               *recorded, id, costs);
    const std::vector<double> means = host_durations(*recorded, costs, id);
    EXPECT_NE(own, means);
    EXPECT_NEAR(std::accumulate(own.begin(), own.end(), 0.0),
                std::accumulate(means.begin(), means.end(), 0.0), 0.02)
        << "records hold four digits";
    std::vector<RankClassId> others;
    for (std::size_t o = 0; o < 4; ++o) {
      if (o != c) others.emplace_back(o);
    }
    Costs foreign{recorded->program};
    (void)apply_host_overheads(fit_overheads(recorded_overheads(*recorded, others)).host(), *recorded, id,
                               foreign);
    const Result<ReplayScores> scores = score_replay(*recorded, foreign);
    ASSERT_TRUE(scores.ok()) << scores.error().message();
    EXPECT_LT(std::abs(scores->ranks[c].step.error()), 0.06) << "rank " << c;
  }
}

// One loader and one operator of the same name outside of it: 20 us inside, 3 us outside; gaps 100 and 7 us.
TEST(OverheadFit, LearnsADataLoaderApartAndGapsByBothSides) {
  test::TraceBuilder t;
  const int main = t.thread(1);
  t.step(main, 1, 0, 200).op(main, "enumerate(DataLoader)#_SingleProcess", 0, 120);
  t.op(main, "aten::to", 100, 20).op(main, "aten::to", 127, 3);
  t.op(main, "aten::fill_", 130, 16).launch(main, 135, 5, 7, "fill", 142, 2);
  const OverheadFit fit = fit_overheads(recorded_overheads(rebuild(t.build())));
  EXPECT_DOUBLE_EQ(record_of(fit, OverheadType::t5, "enumerate(DataLoader) aten::to").mean_us, 20);
  EXPECT_DOUBLE_EQ(record_of(fit, OverheadType::t5, "aten::to").mean_us, 3);
  EXPECT_DOUBLE_EQ(record_of(fit, OverheadType::t5, "(operator)").mean_us, 23.0 / 2);
  EXPECT_DOUBLE_EQ(record_of(fit, OverheadType::t1, "aten::to after aten::to").mean_us, 7);
  EXPECT_DOUBLE_EQ(record_of(fit, OverheadType::t1, "enumerate(DataLoader) aten::to").mean_us, 100);
  const HostOverheads host = fit.host();
  // A loader that runs another operator takes that of the same operator elsewhere; an unknown pair that behind the gap.
  EXPECT_EQ(host.time(OverheadType::t2, "enumerate(DataLoader) aten::fill_").mean_us, 5);
  EXPECT_EQ(host.time(OverheadType::t1, "aten::to after aten::mm").mean_us, 7);
}

double error_pct(double predicted, double measured) { return 100 * (predicted - measured) / measured; }

// Host time of every rank of the 8-rank DLRM step from the overheads of the other seven, beside their mean host
// time and what the published rules make of the same seven.
TEST(OverheadFit, ForecastsTheHostTimeOfARankFromTheOthers) {
  SKIP_WITHOUT_DATA();
  const std::filesystem::path place = *test::measured_data() / "traces" / "dlrm8";
  const auto listing = list_traces(std::span{&place, 1});
  ASSERT_TRUE(listing.ok()) << listing.error().message();
  const auto set = read_trace_set(*listing);
  ASSERT_TRUE(set.ok()) << set.error().message();
  const auto recorded = rebuild_program(set->inputs());
  ASSERT_TRUE(recorded.ok()) << recorded.error().message();
  const std::size_t n = recorded->host.size();
  ASSERT_EQ(n, 8U);
  std::vector<double> host_us;
  for (std::size_t r = 0; r < n; ++r) {
    host_us.push_back(host_time_of_step(*recorded, RankClassId{r}, HostOverheads{}).recorded_us);
  }
  double sum_of_errors = 0, largest = 0, sum_of_mean = 0;
  for (std::size_t left_out = 0; left_out < n; ++left_out) {
    std::vector<RankClassId> others;
    OverheadSamples published;
    double mean_us = 0;
    for (std::size_t r = 0; r < n; ++r) {
      if (r == left_out) continue;
      others.emplace_back(r);
      published.add(published_overheads(set->ranks[r]));
      mean_us += host_us[r] / static_cast<double>(n - 1);
    }
    const RankClassId rank{left_out};
    const HostTimeOfStep ours =
        host_time_of_step(*recorded, rank, fit_overheads(recorded_overheads(*recorded, others)).host());
    const HostTimeOfStep theirs =
        host_time_of_step(*recorded, rank, fit_overheads(published, {.published_rules = true}).host());
    const double error = error_pct(ours.from_overheads_us, ours.recorded_us);
    fmt::print(
        "rank {}: host time {:.0f} us, from the other ranks {:+.1f} %, their mean {:+.1f} %, published "
        "{:+.1f} %\n",
        left_out, ours.recorded_us, error, error_pct(mean_us, ours.recorded_us),
        error_pct(theirs.from_overheads_us, theirs.recorded_us));
    sum_of_errors += std::abs(error);
    sum_of_mean += std::abs(error_pct(mean_us, ours.recorded_us));
    largest = std::max(largest, std::abs(error));
    EXPECT_EQ(ours.unknown_us, 0);
    EXPECT_LT(std::abs(error), std::abs(error_pct(theirs.from_overheads_us, theirs.recorded_us)));
  }
  fmt::print("mean |error| {:.2f} %, largest {:.2f} %; mean of the other ranks {:.2f} %\n",
             sum_of_errors / static_cast<double>(n), largest, sum_of_mean / static_cast<double>(n));
  EXPECT_LT(sum_of_errors / static_cast<double>(n), 3.5);
  EXPECT_LT(largest, 6);
}

}  // namespace
}  // namespace stepcast::overhead_fit_test
