#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/output_file.h"

#include "tests/support/command.h"
#include "tests/support/paths.h"

namespace stepcast::test::inspect_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kTrace = R"J({"schemaVersion": 1, "distributedInfo": {"rank": 3, "world_size": 8},
  "deviceProperties": [{"id": 0, "name": "A100"}], "traceEvents": [
  {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 1, "tid": 1, "ts": 100, "dur": 1500.5},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 101, "dur": 9, "args": {"External id": 5}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 102, "dur": 2, "args": {"correlation": 9}},
  {"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": 110, "dur": 20, "args": {"stream": 7, "correlation": 9, "External id": 5}},
  {"ph": "s", "id": 9, "pid": 1, "tid": 1, "ts": 102, "cat": "ac2g", "name": "ac2g"}]})J";

class Inspect : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("stepcast_inspect_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const char* name, std::string_view content) {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    EXPECT_TRUE(write_file(path, content).ok());
    return path.string();
  }
  static CommandResult inspect(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {stepcast_executable().string(), "inspect", "--details"});
    return run_command(arguments);
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(Inspect, ShowsAProfilerTrace) {
  const std::string path = file("t.json", kTrace);
  const auto result = inspect({path});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, path + R"J(
  format        profiler trace (kineto), schema 1
  rank          3, world size 8
  device        A100
  events        5 over 1.500 ms
  kept          1 operator, 1 step, 1 runtime call, 1 kernel
  skipped       1 flow
  GPU links     1 of 1 GPU events have their launch in the file; "External id" names the operator
  collectives   0 kernels, 0 with sizes; 0 record_param_comms, 0 with sizes
  usable        yes, for replay

  step  start ms  step_time_ms
    #4     0.000         1.500

  pid  tid  operators  annotations  calls  name
    1    1          1            1      1

  device  stream  kernels  communication  copies  busy ms
       0       7        1              0       0    0.020

  kernels     ms
  gemm     0.020
)J");
}

// 2.5 GiB allocated, 3 GiB reserved.
TEST_F(Inspect, ShowsTheLargestTotalsOfTheAllocator) {
  std::string trace = kTrace;
  trace.insert(trace.find(R"({"ph": "s")"), R"J({"ph": "i", "name": "[memory]", "ts": 120, "args":
      {"Device Type": 1, "Device Id": 0, "Total Allocated": 2684354560, "Total Reserved": 3221225472}}, )J");
  const std::string path = file("t.json", trace);
  EXPECT_THAT(
      inspect({path}).out,
      HasSubstr("  memory        at most 2.50 GiB allocated, 3.00 GiB reserved by the caching allocator\n"));
  EXPECT_THAT(inspect({path, "--json"}).out, HasSubstr("\"peak_reserved_bytes\": 3221225472"));
  const auto replayed = run_command({stepcast_executable().string(), "replay", path, "--details"});
  EXPECT_THAT(replayed.out, HasSubstr("Peaks of the caching allocator in the recorded step (GiB)\n  rank  "
                                      "allocated  reserved\n  3          2.50      3.00\n"));
}

TEST_F(Inspect, PrintsJson) {
  const auto result = inspect({file("t.json", kTrace), "--json"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, StartsWith("{\n  \"schema\": \"stepcast.inspect/1\",\n"));
  EXPECT_THAT(result.out, HasSubstr("\"format\": \"kineto\""));
  EXPECT_THAT(result.out, HasSubstr("\"step_time_ms\": 1.5005"));
  EXPECT_THAT(result.out, HasSubstr("\"external_id\": \"op\""));
  EXPECT_THAT(result.out, HasSubstr("\"usable_for_replay\": true"));
}

TEST_F(Inspect, ShowsAnExecutionTrace) {
  const auto result =
      inspect({file("et.json", R"J({"schema": "1.0.1", "nodes": [{"id": 1, "name": "process"}]})J")});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("format        PyTorch execution trace, schema 1.0.1\n"));
}

TEST_F(Inspect, ShowsTheExecutionTraceThatARankFileHolds) {
  const std::filesystem::path example = source_dir() / "examples" / "dlrm_4gpu";
  const std::string trace = example / "kineto_rank2.json.gz", with = file("with.step", ""),
                    without = file("without.step", "");
  ASSERT_EQ(
      run_command({stepcast_executable().string(), "import", trace, example / "et_rank2.json.gz", "-o", with})
          .exit_code,
      0);
  ASSERT_EQ(run_command({stepcast_executable().string(), "import", trace, "-o", without}).exit_code, 0);
  const auto both = inspect({with}), alone = inspect({without});
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("rank file of a profiler trace"));
  EXPECT_THAT(both.out, HasSubstr("nodes, read with it"));
  EXPECT_THAT(both.out, Not(HasSubstr("would tell them")));
  EXPECT_THAT(alone.out, HasSubstr("execution trace  none"));
  EXPECT_THAT(alone.out, HasSubstr("would tell them"));
}

TEST_F(Inspect, ShowsTheOtherFilesWhenOneIsBad) {
  const std::string pointer = file("p.json", "version https://git-lfs.github.com/spec/v1\n");
  const auto result = inspect({pointer, file("t.json", kTrace)});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.out, HasSubstr(pointer + ": found a git-LFS pointer"));
  EXPECT_THAT(result.out, HasSubstr("usable        yes, for replay"));
  EXPECT_EQ(result.err, "stepcast: error: " + pointer +
                            ": found a git-LFS pointer in place of the data, expected a trace in JSON; run "
                            "`git lfs pull` where "
                            "the file comes from\n");
  const auto alone = inspect({pointer, "--json"});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_EQ(alone.out, "");
}

TEST_F(Inspect, ShowsTheRanksAskedForOfAFolder) {
  const std::string first = file("run/rank3.json", kTrace);
  file("run/rank4.json", "not opened");
  file("run/gpu4_a.json", kTrace);  // says 3 of itself
  file("run/notes.json", "{}");
  const std::string folder = std::filesystem::path{first}.parent_path();
  const auto three = inspect({folder, "--ranks", "3"});
  EXPECT_EQ(three.exit_code, 0) << three.err;
  EXPECT_THAT(three.out, HasSubstr("rank3.json\n"));
  EXPECT_THAT(three.out, HasSubstr("notes.json: is not a profiler or execution trace"));
  EXPECT_THAT(three.out, Not(HasSubstr("rank4.json")));
  const auto four = inspect({folder + "/gpu4_a.json", "--ranks", "4", "--ranks-from", "gpu{}_"});
  EXPECT_EQ(four.exit_code, 0) << four.err;
  EXPECT_THAT(four.out, HasSubstr("rank          4, world size 8"));
  EXPECT_EQ(inspect({first, "--ranks", "9"}).err, "stepcast: error: rank 9 is not here\n");
  EXPECT_THAT(inspect({first, "--ranks-from", "gpu{}"}).err,
              HasSubstr("no number at {} of 'gpu{}' in its name"));
  EXPECT_THAT(inspect({first, "--ranks-from", "gpu"}).err,
              HasSubstr("no place for the rank in the pattern 'gpu'"));
}

TEST_F(Inspect, SaysThatOtherJsonIsNoTrace) {
  const std::string path = file("o.json", "{\"a\": 1}");
  EXPECT_EQ(inspect({path}).err,
            "stepcast: error: " + path +
                ": found JSON that is not a trace, expected a profiler trace (\"traceEvents\") or an "
                "execution trace (\"nodes\")\n");
}

}  // namespace
}  // namespace stepcast::test::inspect_test
