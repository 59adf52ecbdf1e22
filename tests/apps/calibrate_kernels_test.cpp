#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/cost/kernel_model.h"
#include "stepcast/platform/platform_file.h"

#include "tests/support/command.h"
#include "tests/support/made_kernels.h"
#include "tests/support/paths.h"

namespace stepcast::test::calibrate_kernels_test {
namespace {

using ::testing::HasSubstr;

class CalibrateKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path{::testing::TempDir()} / ("calibrate_kernels_" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::ofstream{folder_ / "made-1.json"} << kMadePlatform;
    std::ofstream{folder_ / "made.csv"} << made_kernels_csv();
  }

  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  [[nodiscard]] std::string file(const std::string& name) const { return (folder_ / name).string(); }

  CommandResult calibrate(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {stepcast_executable().string(), "calibrate", "kernels"});
    return run_command(arguments);
  }

  // Mean error of a platform on sizes that lie between the measured ones, in percent.
  [[nodiscard]] double error_of(const std::string& name) const {
    const auto platform = load_platform(file(name));
    if (!platform.ok()) {
      ADD_FAILURE() << platform.error().message();
      return std::nan("");
    }
    const KernelModel model{*platform};
    EXPECT_TRUE(model.skipped().empty());
    double sum = 0;
    int n = 0;
    for (const std::int64_t d : {768, 1280, 2304, 3328}) {
      for (const std::int64_t m : {700, 1800, 3500, 7000}) {
        const double product = model.estimate(gemm({.m = m, .n = d, .k = d}, DType::fp16)).time.value();
        const double rows =
            model.estimate(norm({.kind = NormKind::rms_norm, .rows = m, .cols = d}, DType::fp16))
                .time.value();
        sum += std::abs(product / made_gemm_us(m, d, d) - 1) + std::abs(rows / made_norm_us(m, d) - 1);
        n += 2;
      }
    }
    return 100 * sum / n;
  }

  std::filesystem::path folder_;
};

TEST_F(CalibrateKernels, MakesAPlatformThatKnowsWhatWasMeasured) {
  const auto result = calibrate({file("made.csv"), "--platform", file("made-1.json"), "-o", file("new.json"),
                                 "--document", "made for a test", "--date", "2026-11-01"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("gemm/fp16/forward"));
  EXPECT_THAT(result.out, HasSubstr("rms_norm/fp16/forward"));
  EXPECT_THAT(result.out, HasSubstr("Written to"));
  const double before = error_of("made-1.json"), after = error_of("new.json");
  EXPECT_LT(after, 8) << before;
  EXPECT_LT(after, before / 2);
  const auto platform = load_platform(file("new.json"));
  ASSERT_TRUE(platform.ok());
  EXPECT_EQ(platform->name, "new");
  EXPECT_EQ(platform->device.name, "Made-1");
  const ModelRecord* record = platform->find_model("gemm/fp16/forward");
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->device, "Made-1");
  EXPECT_EQ(record->provenance.document, "made for a test");
  EXPECT_EQ(record->provenance.n_rows, 162U);
  EXPECT_EQ(record->provenance.row_hashes.all().size(), 162U);
  const auto text = read_file(folder_ / "new.json");
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("\"extends\": \"made-1.json\""));

  // What was fitted on is not scored, and a score of nothing is none.
  const auto scored =
      run_command({stepcast_executable().string(), "validate", "kernels", "--data", file("made.csv"),
                   "--protocol", "shipped", "--platform", "Made-1=" + file("new.json")});
  EXPECT_EQ(scored.exit_code, 2) << scored.out;
  EXPECT_THAT(scored.err, HasSubstr("Made-1/gemm/forward"));
  EXPECT_THAT(scored.err, HasSubstr("rows that the shipped platform was fitted on"));
}

TEST_F(CalibrateKernels, ModelsAloneAreAPartThatTheDevicesOwnFileExtends) {
  const auto result = calibrate(
      {file("made.csv"), "--platform", file("made-1.json"), "-o", file("part.json"), "--models-only"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto part = read_file(folder_ / "part.json");
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->find("\"extends\""), std::string::npos);
  std::string own = kMadePlatform;
  own.insert(own.find("\"device\""), "\"extends\": \"part.json\", ");
  std::ofstream{folder_ / "whole.json"} << own;
  EXPECT_LT(error_of("whole.json"), 8);
  // Fitting again on the platform that has the models already gives the same bytes.
  const auto again = calibrate({file("made.csv"), "--platform", file("whole.json"), "-o", file("again.json"),
                                "--name", "part", "--models-only", "--threads", "1"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const auto second = read_file(folder_ / "again.json");
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(*part, *second);
}

TEST_F(CalibrateKernels, BadInputWritesNothing) {
  std::ofstream{folder_ / "bad.csv"} << made_kernels_csv()
                                     << "Made-1,gemm,forward,fp16,64,64,64,,,,,-1,,,,made\n";
  const auto result = calibrate({file("bad.csv"), "--platform", file("made-1.json"), "-o", file("new.json")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("bad.csv: line 326, column time_us: found `-1`"));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new.json"));
}

TEST_F(CalibrateKernels, RowsOfOtherDevicesAreNamed) {
  std::ofstream{folder_ / "two.csv"} << made_kernels_csv()
                                     << "Made-2,gemm,forward,fp16,64,64,64,,,,,15,,,,made\n";
  const auto result = calibrate({file("two.csv"), "--platform", file("made-1.json"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\"what\": \"Made-2\""));
  const auto none = calibrate({file("two.csv"), "--platform", file("made-1.json"), "--device", "Made-3"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("no row was measured on `Made-3`, found Made-1, Made-2"));
}

}  // namespace
}  // namespace stepcast::test::calibrate_kernels_test
