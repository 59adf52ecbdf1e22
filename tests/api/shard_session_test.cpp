// Shardings compared by the library: order, what is written, what is refused.
#include <algorithm>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/stop.h"

#include "tests/support/fails_with.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::shard_session_test {
namespace {

using test::FailsWith;
using ::testing::HasSubstr;

ShardRequest request_of(std::vector<std::string> sharders) {
  ShardRequest request{.model = "dlrm-mlperf-v1", .n_gpus = 8};
  request.choices.sharders = std::move(sharders);
  return request;
}

TEST(ShardSession, PutsTheBestFirst) {
  const Result<ShardingComparison> all = Session{}.shard(request_of({"naive", "size_lookup", "random"}));
  ASSERT_TRUE(all.ok()) << all.error().message();
  ASSERT_EQ(all->shardings.size(), 3U);
  EXPECT_EQ(all->n_gpus, 8);
  EXPECT_TRUE(std::is_sorted(
      all->shardings.begin(), all->shardings.end(),
      [](const ComparedSharding& a, const ComparedSharding& b) { return a.expected_us < b.expected_us; }));
  const ComparedSharding& best = all->shardings.front();
  EXPECT_LE(all->least_step_us, best.step.time.time.value());
  EXPECT_THAT(all->verdict(), HasSubstr(best.plan.name));
  // Every table is somewhere: the parts that ranks hold are no fewer than tables.
  std::size_t parts = 0;
  for (const std::size_t n : best.tables) parts += n;
  EXPECT_GE(parts, all->model.tables.size());
  EXPECT_GE(best.most_lookups_us() * 8, best.step.ranks[3].lookup_us + best.step.ranks[3].lookup_backward_us);
}

// One question, one answer: what `predict` takes for HugeCTR is a row of the comparison, and no search is behind it.
TEST(ShardSession, ShowsWhatTheSoftwareDoesAndForecastsTheSame) {
  struct Case {
    std::string model, platform, name;
  };
  for (const Case& c : {Case{"dlrm-mlperf-v1", "dgx-a100", "hybrid"},
                        Case{"dlrm-dcnv2-mlperf", "dgx-h100", "row_balanced"}}) {
    ShardRequest request{.model = c.model, .platform = c.platform, .n_gpus = 8, .global_batch = 65536};
    request.choices.sharders = {"search", "stack", "size_lookup"};
    const Result<ShardingComparison> all = Session{}.shard(request);
    ASSERT_TRUE(all.ok()) << all.error().message();
    const auto of_stack =
        std::ranges::find(all->shardings, c.name, [](const ComparedSharding& s) { return s.plan.name; });
    ASSERT_NE(of_stack, all->shardings.end());
    const Result<Forecast> forecast = Session{}.predict(
        PredictDlrmRequest{.model = c.model, .platform = c.platform, .n_gpus = 8, .global_batch = 65536});
    ASSERT_TRUE(forecast.ok()) << forecast.error().message();
    EXPECT_DOUBLE_EQ(of_stack->step.time.time.value() * 1e-3, forecast->step_time_ms);
    const auto search =
        std::ranges::find(all->shardings, "search", [](const ComparedSharding& s) { return s.plan.name; });
    if (c.name == "row_balanced") {
      EXPECT_LE(search->expected_us, of_stack->expected_us);
      // The search ends there, too: the verdict is about the next plan that is another one.
      EXPECT_EQ(search->plan.tables, of_stack->plan.tables);
      EXPECT_THAT(all->verdict(),
                  ::testing::AllOf(HasSubstr("fastest"), HasSubstr("faster than size_lookup")));
    }
  }
}

// Hybrid embeddings are no plan of TorchRec's.
TEST(ShardSession, WritesTheBestThatTorchRecKnows) {
  const test::TemporaryFolder folder;
  ShardRequest request = request_of({"stack"});
  request.platform = "dgx-a100";
  request.plan = folder.path() / "plan.json";
  EXPECT_THAT(Session{}.shard(request), FailsWith("no sharding that TorchRec supports fits"));
  EXPECT_FALSE(std::filesystem::exists(request.plan));
  request.choices.sharders = {"stack", "size"};
  const Result<ShardingComparison> all = Session{}.shard(request);
  ASSERT_TRUE(all.ok()) << all.error().message();
  EXPECT_EQ(all->shardings.front().plan.name, "hybrid");
  EXPECT_EQ(all->first_torchrec_plan()->plan.name, "size");
  EXPECT_TRUE(std::filesystem::exists(request.plan));
}

TEST(ShardSession, SoftwareWithoutASharderOfItsOwn) {
  ShardRequest request = request_of({"stack"});
  request.settings = {{"stack", "torchrec"}};
  EXPECT_THAT(Session{}.shard(request), FailsWith("has no sharder"));
}

TEST(ShardSession, ThePlanThatItWritesIsTheBest) {
  const test::TemporaryFolder folder;
  ShardRequest request = request_of({"size_lookup"});
  request.plan = folder.path() / "plan.json";
  const Result<ShardingComparison> written = Session{}.shard(request);
  ASSERT_TRUE(written.ok()) << written.error().message();
  ShardRequest again = request_of({"size_lookup"});
  again.choices.plans = {request.plan};
  const Result<ShardingComparison> read = Session{}.shard(again);
  ASSERT_TRUE(read.ok()) << read.error().message();
  ASSERT_EQ(read->shardings.size(), 2U);
  EXPECT_EQ(read->shardings[0].step.time.time, read->shardings[1].step.time.time);
}

// examples/dlrm_4gpu: ranks with two, one, two and three tables of 10,000 or 20,000 rows and 64 columns, and one on all.
TEST(ShardSession, TakesTablesAndWhereTheyLieFromTraces) {
  const std::filesystem::path traces = test::source_dir() / "examples" / "dlrm_4gpu";
  ShardRequest request{.tables = traces.string(), .n_gpus = 4};
  request.choices.now = traces;
  const Result<ShardingComparison> all = Session{}.shard(request);
  ASSERT_TRUE(all.ok()) << all.error().message();
  ASSERT_EQ(all->model.tables.size(), 9U);
  EXPECT_EQ(all->global_batch_samples, 8192);
  EXPECT_EQ(all->model.tables.front().pooling, 20);
  const auto now = std::ranges::find(all->shardings, "now", [](const auto& s) { return s.plan.name; });
  ASSERT_NE(now, all->shardings.end());
  EXPECT_EQ(now->tables, (std::vector<std::size_t>{3, 2, 3, 4}));
  // What a batch looks up is spread unevenly.
  EXPECT_LE(all->shardings.front().expected_us, now->expected_us);
  const test::TemporaryFolder empty;
  request.tables = empty.path().string();
  EXPECT_THAT(Session{}.shard(request), FailsWith("execution trace"));
}

TEST(ShardSession, SaysWhatWouldMoveOfThePlanThatRuns) {
  const test::TemporaryFolder folder;
  ShardRequest request{.generate = "2021-heavy", .platform = "hpc-4xa100-40gb", .n_gpus = 4};
  request.choices.sharders = {"naive"};
  request.plan = folder.path() / "now.json";
  const Result<ShardingComparison> naive = Session{}.shard(request);
  ASSERT_TRUE(naive.ok()) << naive.error().message();
  request.choices = {.sharders = {}, .now = request.plan};
  request.plan = folder.path() / "next.json";
  const Result<ShardingComparison> all = Session{}.shard(request);
  ASSERT_TRUE(all.ok()) << all.error().message();
  ASSERT_EQ(all->shardings.size(), 2U);
  const ComparedSharding &next = all->shardings[0], &now = all->shardings[1];
  EXPECT_EQ(next.plan.name, "resharded");
  EXPECT_EQ(now.plan.name, "now");
  EXPECT_EQ(now.step.time.time, naive->shardings[0].step.time.time);
  EXPECT_LT(next.expected_us, 0.98 * now.expected_us);
  EXPECT_EQ(now.moved_tables, 0U);
  EXPECT_GT(next.moved_tables, 0U);
  double bytes = 0;  // stochastic gradient descent keeps nothing beside the weights
  for (std::size_t t = 0; t < all->model.tables.size(); ++t)
    if (!(next.plan.tables[t] == now.plan.tables[t])) bytes += all->model.tables[t].bytes();
  EXPECT_DOUBLE_EQ(next.moved_bytes, bytes);
  // What it wrote runs: nothing is worth a move any more.
  request.choices.now = request.plan;
  request.plan.clear();
  const Result<ShardingComparison> again = Session{}.shard(request);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->shardings.size(), 1U);
}

TEST(ShardSession, SaysWhatIsWrong) {
  EXPECT_THAT(Session{}.shard(request_of({"nonsense"})), FailsWith("found `nonsense`"));
  ShardRequest request = request_of({"size"});
  request.model = "no-such-model";
  EXPECT_THAT(Session{}.shard(request), FailsWith("no-such-model"));
  request = request_of({"size"});
  request.plan = "/nowhere/plan.json";
  EXPECT_THAT(Session{}.shard(request), FailsWith("/nowhere/plan.json"));
}

TEST(ShardSession, EndsWhereSomebodyAsksItTo) {
  const test::TemporaryFolder folder;
  std::stop_source stop;
  stop.request_stop();
  const StopScope scope{stop.get_token()};
  ShardRequest request = request_of({});
  request.plan = folder.path() / "plan.json";
  EXPECT_THAT(Session{}.shard(request), FailsWith("interrupted"));
  EXPECT_FALSE(std::filesystem::exists(request.plan));
}

}  // namespace
}  // namespace stepcast::shard_session_test
