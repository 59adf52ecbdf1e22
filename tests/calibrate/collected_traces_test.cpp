#include "calibrate/collected_traces.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/overhead_traces.h"
#include "lab/shipped_data.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::collected_traces_test {
namespace {

namespace fs = std::filesystem;

TEST(CollectedTraces, KnowHowLongTheirStepsTakeWithoutAProfiler) {
  const test::TemporaryFolder folder;
  const fs::path& place = folder.path();
  EXPECT_TRUE(collected_traces(place)->empty());
  fs::create_directory(place / "traces");
  for (const char* name : {"a", "host_bound_b", "launches", "unknown"})
    std::ofstream{place / "traces" / (std::string{name} + ".kineto.json.gz")} << "x";
  std::ofstream{place / "steps.csv"} << "step,loss\n1,2.5\n";
  EXPECT_TRUE(collected_traces(place)->empty());  // of somebody else
  std::ofstream{place / "steps.csv"} << "model,dtype,measured_ms,kineto_trace\n"
                                        "a,bf16,10,traces/a.kineto.json.gz\n"
                                        "a,bf16,12,\n"
                                        "a,bf16,30,\n"
                                        "a,fp32,90,\n";
  std::ofstream{place / "overheads.csv"} << "quantity,time_us,case\n"
                                            "launch_call,6,launches\n"
                                            "step,43000,trace/host_bound_b\n";
  const auto traces = collected_traces(place);
  ASSERT_TRUE(traces.ok()) << traces.error().message();
  ASSERT_EQ(traces->size(), 3U);
  EXPECT_EQ((*traces)[0].unprofiled_us, 12000);  // the median of the batches in this type
  EXPECT_EQ((*traces)[1].unprofiled_us, 43000);
  EXPECT_EQ((*traces)[2].unprofiled_us, 0);
  std::ofstream{place / "steps.csv"} << "model,dtype,measured_ms,kineto_trace\na,bf16,long,\n";
  EXPECT_FALSE(collected_traces(place).ok());
}

TEST(CollectedTraces, ScaleTheHostToStepsWithoutAProfiler) {
  const auto readme = shipped_data_file("measured/README.md");
  if (!readme) GTEST_SKIP() << "data/measured is not here";
  const std::vector<fs::path> places{readme->parent_path() / "h100-sxm5-80gb"};
  const auto overheads = read_overheads(places);
  ASSERT_TRUE(overheads.ok()) << overheads.error().message();
  ASSERT_EQ(overheads->sources.size(), 7U);
  for (const OverheadSource& source : overheads->sources) {
    EXPECT_GT(source.times, 0.2) << source.name;
    EXPECT_LT(source.times, 0.9) << source.name;
    // The last step, which was recorded as an execution trace, is left out.
    EXPECT_EQ(source.steps, source.name.find("host_bound") == std::string::npos ? 2U : 4U) << source.name;
  }
  // 59.6 ms without a profiler; 93.3 and 116.2 ms in the trace.
  EXPECT_NEAR(overheads->sources[0].times, 59.623 / 104.75, 0.01);
}

}  // namespace
}  // namespace stepcast::collected_traces_test
