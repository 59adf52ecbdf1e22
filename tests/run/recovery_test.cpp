#include "stepcast/run/recovery.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace stepcast::recovery_test
