#include "stepcast/run/recovery.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/run/run_forecast.h"

namespace stepcast::recovery_test {
namespace {

using ::testing::HasSubstr;

TEST(Recovery, IsReadWithItsUnits) {
  const Result<RunAssumptions> read = read_run_assumptions(
      "default", {"interval=30m", "mode=async", "storage=2TB/s", "restart=90s", "spares=8", "repair=2d"});
  ASSERT_TRUE(read.ok()) << read.error().message();
  const Recovery& r = read->recovery;
  EXPECT_EQ(r.interval_s, 1800);
  EXPECT_EQ(r.mode, CheckpointMode::async);
  EXPECT_EQ(r.storage_GBps, 2000);
  EXPECT_EQ(r.restart_s, 90);
  EXPECT_EQ(r.spare_nodes, 8);
  EXPECT_EQ(r.repair_s, 172800);
  EXPECT_FALSE(r.elastic);
}

TEST(Recovery, OfAnElasticJobCountsSpareNodes) {
  const Result<RunAssumptions> read = read_run_assumptions("default", {"elastic=yes"});
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->recovery.spare_nodes, 0);
}

TEST(Recovery, SaysWhatIsWrongWithAWord) {
  for (const char* word :
       {"interval=0s", "interval=-5m", "interval=5", "interval=5x", "interval=", "restart=nan", "storage=0",
        "storage=3GiB", "spares=-1", "spares=1.5", "mode=fast", "elastic=1", "foo=1", "", "repair=1h"}) {
    const Result<RunAssumptions> read = read_run_assumptions("default", {word});
    ASSERT_FALSE(read.ok()) << word;
    EXPECT_THAT(read.error().message(), HasSubstr("--recovery")) << word;
  }
  EXPECT_FALSE(read_run_assumptions("default", {"restart=5m", "restart=6m"}).ok());
  EXPECT_FALSE(read_run_assumptions("no such file", {}).ok());
}

TEST(Recovery, PoolsHaveRatesOfTheirOwn) {
  const std::vector<RunPool> pools{{{"h100", "dgx-h100", "east"}, 8192, 8}, {{"4xa100", "west"}, 4096, 4}};
  const Result<RunAssumptions> same = read_run_assumptions("default", {}, pools);
  ASSERT_TRUE(same.ok()) << same.error().message();
  EXPECT_EQ(same->failures.causes.size(), 4U);
  const Result<RunAssumptions> own = read_run_assumptions("west=default,dgx-h100=default", {}, pools);
  ASSERT_TRUE(own.ok()) << own.error().message();
  ASSERT_EQ(own->failures.causes.size(), 8U);
  const FailureCause &first = own->failures.causes[0], &last = own->failures.causes[7];
  EXPECT_EQ(first.name, "gpu of h100");
  EXPECT_DOUBLE_EQ(first.of_gpus, 2.0 / 3);
  EXPECT_EQ(last.name, "software of 4xa100");
  EXPECT_DOUBLE_EQ(last.of_gpus, 1.0 / 3);
  EXPECT_EQ(last.gpus_per_node, 4);
}

TEST(Recovery, SaysWhichPoolHasNoRates) {
  const std::vector<RunPool> pools{{{"h100", "east"}, 64, 8}, {{"a100", "west"}, 64, 8}};
  const auto problem = [&](const char* text) {
    const Result<RunAssumptions> read = read_run_assumptions(text, {}, pools);
    return read.ok() ? std::string{} : read.error().message();
  };
  EXPECT_THAT(problem("h100=default"), HasSubstr("--failures: found no entry for the pool a100"));
  EXPECT_THAT(problem("h100=default,b200=default"),
              HasSubstr("`b200=default`, expected NAME=default or NAME=LOG"));
  EXPECT_THAT(problem("h100=default,default"), HasSubstr("found `default`"));
  EXPECT_THAT(problem("h100=default,a100="), HasSubstr("--failures"));
  EXPECT_THAT(problem("h100=default,"), HasSubstr("found ``"));
}

}  // namespace
}  // namespace stepcast::recovery_test
