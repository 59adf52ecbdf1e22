// Shardings compared by the library: order, what is written, what is refused.
#include <algorithm>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/base/stop.h"

#include "tests/support/fails_with.h"
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
