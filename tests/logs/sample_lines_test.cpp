// Every line of the shared samples is read, with the figures that it shows.

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stepcast/logs/logged_run.h"

#include "tests/support/data.h"

namespace stepcast::sample_lines_test {
namespace {

TEST(SampleLines, AreAllRead) {
  SKIP_WITHOUT_DATA();
  const auto file = *test::measured_data() / "modern" / "logs" / "sample_lines.txt";
  std::ifstream in{file};
  if (!in) GTEST_SKIP() << file << " is not there";
  int n = 0;
  for (std::string line; std::getline(in, line); ++n) {
    const Result<TrainingLog> log = parse_training_log(line + "\n", "line.log");
    if (line.find("memory (MB)") != std::string::npos) {
      // Tells no step; what it tells counts beside steps.
      const Result<TrainingLog> with_step = parse_training_log(
          line + "\n iteration 1/ 2 | elapsed time per iteration (ms): 5.0 |\n", "line.log");
      ASSERT_TRUE(with_step.ok());
      EXPECT_NEAR(with_step->peak_memory_GiB, 64.48, 0.01);
      continue;
    }
    ASSERT_TRUE(log.ok()) << line;
    EXPECT_EQ(log->broken_lines, 0U) << line;
    const Result<LoggedRun> run = logged_run(*log);
    ASSERT_TRUE(run.ok()) << line << ": " << run.error().message();
    EXPECT_TRUE(run->times.median_ms > 0 || run->times.tokens_per_s_per_gpu > 0 ||
                run->times.samples_per_s > 0)
        << line;
  }
  EXPECT_GE(n, 17);
}

}  // namespace
}  // namespace stepcast::sample_lines_test
