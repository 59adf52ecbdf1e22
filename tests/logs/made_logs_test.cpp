// Logs with known truth: every format, with restarts, spikes, colours, ranks and broken lines.

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/logs/logged_run.h"

#include "tests/support/log_generator.h"

namespace stepcast::made_logs_test {
namespace {

class MadeLogs : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(MadeLogs, AreReadAsTheyWereMade) {
  const test::MadeLog made = test::made_log(GetParam());
  Result<TrainingLog> log = parse_training_log(made.text, "made.log");
  ASSERT_TRUE(log.ok()) << log.error().message();
  // DeepSpeed's config names no model: what its steps are has to be said.
  Job said;
  if (made.framework == "deepspeed") {
    said.model = "llama-2-7b";
    said.settings.seq_len_tokens = 4096;
  }
  const Result<LoggedRun> run = logged_run(*std::move(log), said);
  ASSERT_TRUE(run.ok()) << made.what << ": " << run.error().message();
  EXPECT_EQ(to_string(run->times.format), made.framework) << made.what;
  EXPECT_NEAR(run->times.median_ms / made.median_ms, 1, 1e-3) << made.what;
  EXPECT_FALSE(run->times.from_clock) << made.what;
  EXPECT_NEAR(run->times.trend_percent.value_or(0), 0, 0.5) << made.what;
  std::vector<std::uint32_t> stalls;
  for (const LoggedStall& stall : run->times.stalls) {
    if (stall.between_steps) continue;
    stalls.push_back(stall.step);
    const LogEvent told = stall.step % 2 == 0 ? LogEvent::checkpoint : LogEvent::evaluation;
    if (!made.stalls_are_told) continue;
    EXPECT_EQ(to_string(stall.cause), to_string(told)) << made.what << ", step " << stall.step;
  }
  std::sort(stalls.begin(), stalls.end());
  EXPECT_EQ(stalls, made.stalls) << made.what;
  std::vector<std::uint32_t> restarts;
  for (const LoggedRestart& restart : run->times.restarts) restarts.push_back(restart.next_step);
  EXPECT_EQ(restarts, made.restarts) << made.what;
}

INSTANTIATE_TEST_SUITE_P(Seeds, MadeLogs, ::testing::Range<std::uint64_t>(0, 60));

}  // namespace
}  // namespace stepcast::made_logs_test
