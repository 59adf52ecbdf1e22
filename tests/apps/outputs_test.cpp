// Where the verbs write to.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/platform/platform_file.h"

#include "tests/support/command.h"
#include "tests/support/made_kernels.h"
#include "tests/support/output_places.h"
#include "tests/support/paths.h"

namespace stepcast::test::outputs_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

CommandResult stepcast_with(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), stepcast_executable().string());
  return run_command(arguments);
}

// A line of the shell, with the tool as $0.
CommandResult shell(const std::string& line) {
  return run_command({"sh", "-c", line, stepcast_executable().string()});
}

void expect_one_line(const CommandResult& result, int exit_code, const std::string& part) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_THAT(result.err, StartsWith("stepcast: error: "));
  EXPECT_THAT(result.err, HasSubstr(part));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

std::vector<std::string> predict_with_timeline(const fs::path& timeline) {
  return {"predict", "--model", "gpt2", "--platform", "dgx-h100", "--timeline", timeline.string()};
}

void write(const fs::path& file, const std::string& text) { std::ofstream{file} << text; }

// Sizes from 8 B to 8 MB on 8 ranks: 10 us and 100 GB/s.
std::string made_curve(const std::string& collective) {
  std::string text = "collective,n_nodes,gpus_per_node,n_ranks,dtype,message_bytes,time_us\n";
  for (double bytes = 8; bytes < 1e7; bytes *= 2) {
    text += collective + ",1,8,8,fp16," + std::to_string(static_cast<long>(bytes)) + "," +
            std::to_string(10 + bytes / 1e5) + "\n";
  }
  return text;
}

TEST(Outputs, TimelinesGoThroughLinks) {
  const OwnFolder folder;
  write(folder.file("run7.json"), "old");
  fs::create_symlink("run7.json", folder.file("latest.json"));
  const auto result = stepcast_with(predict_with_timeline(folder.file("latest.json")));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::is_symlink(folder.file("latest.json")));
  EXPECT_THAT(text_of(folder.file("run7.json")), StartsWith("{\"displayTimeUnit\""));
}

TEST(Outputs, TimelinesGoIntoDevicesAndLeaveThemThere) {
  const OwnFolder folder;
  if (!make_device(folder.file("null"), 3)) GTEST_SKIP() << "no device nodes can be made here";
  EXPECT_EQ(stepcast_with(predict_with_timeline(folder.file("null"))).exit_code, 0);
  EXPECT_TRUE(fs::is_character_file(folder.file("null")));
}

TEST(Outputs, TimelinesGoIntoPipes) {
  const auto result = shell(
      "\"$0\" predict --model gpt2 --platform dgx-h100 --json --timeline /dev/fd/3 3>&1 >&2 | head -c 18");
  EXPECT_EQ(result.out, "{\"displayTimeUnit\"");
}

TEST(Outputs, DoNotReplaceModelOrPlatform) {
  const OwnFolder folder;
  write(folder.file("base.json"), kMadePlatform);
  write(folder.file("mine.json"), R"({"stepcast_platform": 1, "extends": "base.json"})");
  const std::string before = text_of(folder.file("base.json"));
  for (const char* name : {"mine.json", "base.json"}) {
    expect_one_line(
        stepcast_with({"predict", "--model", "gpt2", "--platform", folder.file("mine.json").string(),
                       "--timeline", folder.file(name).string()}),
        2, "is read to make the result");
  }
  write(folder.file("config.json"), R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
    "n_positions": 1024, "vocab_size": 50257})");
  const std::string model = folder.file("config.json").string();
  expect_one_line(stepcast_with({"predict", "--model", model, "--timeline", model}), 2,
                  "is read to make the result");
  EXPECT_EQ(text_of(folder.file("base.json")), before);
}

TEST(Outputs, DoNotReplaceMeasurements) {
  const OwnFolder folder;
  write(folder.file("made.json"), kMadePlatform);
  write(folder.file("curve.csv"), made_curve("all_reduce"));
  const std::string data = folder.file("curve.csv").string();
  expect_one_line(stepcast_with({"calibrate", "collectives", data, "--platform",
                                 folder.file("made.json").string(), "-o", data}),
                  2, "is read to make the result");
  EXPECT_EQ(text_of(data), made_curve("all_reduce"));
  for (const char* suite : {"kernels", "all"}) {
    expect_one_line(stepcast_with({"validate", suite, "--data", folder.path().string(), "--rows", data}), 2,
                    "is read to make the result");
  }
}

TEST(Outputs, APlatformIsBroughtUpToDateInPlace) {
  const OwnFolder folder;
  write(folder.file("base.json"), R"({"stepcast_platform": 1, "inherit_curves": false, "extends": ")" +
                                      (source_dir() / "platforms/dgx-h100.json").string() + R"("})");
  write(folder.file("mine.json"), R"({"stepcast_platform": 1, "name": "ours", "aliases": ["our own"],
    "extends": "base.json", "device": {"memory_GiB": 79}})");
  const std::string mine = folder.file("mine.json").string();
  for (const char* collective : {"all_reduce", "all_gather"}) {
    write(folder.file("curve.csv"), made_curve(collective));
    const auto result = stepcast_with({"calibrate", "collectives", folder.file("curve.csv").string(),
                                       "--platform", mine, "-o", mine, "--no-plot"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("Written to " + mine + ", with all that it extended"));
  }
  const auto platform = load_platform(mine);
  ASSERT_TRUE(platform.ok()) << platform.error().message();
  EXPECT_EQ(platform->name, "ours");
  EXPECT_EQ(platform->aliases, std::vector<std::string>{"our own"});
  EXPECT_EQ(platform->files.size(), 1U) << "it extends nothing any more";
  ASSERT_EQ(platform->curves.size(), 2U) << "one per calibration";
  EXPECT_FALSE(platform->models.empty()) << "those of the GPU";

  // A file that it extends is another matter.
  write(folder.file("mine.json"), R"({"stepcast_platform": 1, "extends": "base.json"})");
  expect_one_line(stepcast_with({"calibrate", "collectives", folder.file("curve.csv").string(), "--platform",
                                 mine, "-o", folder.file("base.json").string()}),
                  2, "is read to make the result");
}

// A curve that no forecast uses is said to be one; of others the forecast that changes most, last.
TEST(Outputs, CalibrationSaysWhichForecastChanges) {
  const OwnFolder folder;
  const auto calibrated = [&](const std::string& platform, int n_nodes, int gpus_per_node) {
    std::string rows = "collective,n_ranks,n_nodes,gpus_per_node,message_bytes,time_us,platform\n";
    for (double bytes = 1024; bytes < 5e9; bytes *= 2) {
      rows += "all_reduce," + std::to_string(n_nodes * gpus_per_node) + "," + std::to_string(n_nodes) + "," +
              std::to_string(gpus_per_node) + "," + std::to_string(bytes) + "," +
              std::to_string(25 + bytes / 200e3) + ",ours\n";
    }
    write(folder.file("curve.csv"), rows);
    return stepcast_with({"calibrate", "collectives", folder.file("curve.csv").string(), "--platform",
                          platform, "--no-plot"})
        .out;
  };
  const std::string rack = calibrated("gb200-nvl72", 18, 4);
  EXPECT_THAT(rack, HasSubstr("all_reduce of 18 x 4 GPUs: a node of the platform has 72 GPUs"));
  EXPECT_EQ(rack.find("Changes stepcast predict"), std::string::npos) << rack;
  const std::string node = calibrated("dgx-h100", 1, 8);
  EXPECT_THAT(node, HasSubstr(" ms with all_reduce\n"));
  EXPECT_EQ(node.find("Warning"), std::string::npos) << node;
}

TEST(Outputs, AnEmptyNameIsAnError) {
  const auto result = stepcast_with({"predict", "--model", "gpt2", "--timeline", ""});
  expect_one_line(result, 2, "--timeline: found an empty value; is a shell variable not set?");
}

TEST(Outputs, AFullDiskIsOneLineAndExitCodeOne) {
  if (!has_full_device()) GTEST_SKIP() << "no /dev/full here";
  for (const char* arguments :
       {"--help", "--version", "predict --help", "version", "platforms dgx-h100 --json", "platforms",
        "predict --model gpt2 --json", "predict --model gpt2"}) {
    SCOPED_TRACE(arguments);
    expect_one_line(shell(std::string{"\"$0\" "} + arguments + " > /dev/full"), 1,
                    "could not write the whole result to standard output");
  }
  const OwnFolder folder;
  if (!make_device(folder.file("full"), 7)) GTEST_SKIP() << "no device nodes can be made here";
  expect_one_line(stepcast_with(predict_with_timeline(folder.file("full"))), 1,
                  "cannot write: No space left on device");
}

TEST(Outputs, AFileThatCannotGrowKeepsItsOldContent) {
  const OwnFolder folder;
  write(folder.file("step.json"), "old");
  const auto result = shell("trap '' XFSZ; ulimit -f 1; \"$0\" predict --model gpt2 --timeline " +
                            folder.file("step.json").string() + " > /dev/null");
  expect_one_line(result, 1, "cannot write: ");
  EXPECT_EQ(text_of(folder.file("step.json")), "old");
  EXPECT_EQ(folder.count(), 1);
}

}  // namespace
}  // namespace stepcast::test::outputs_test
