// stepcast calibrate overheads: what it writes can be read back, and what it refuses.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/cost/host_overheads.h"
#include "stepcast/platform/platform_file.h"

#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::test::calibrate_overheads_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string example() { return (source_dir() / "examples" / "dlrm_4gpu").string(); }

CommandResult calibrate(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {stepcast_executable().string(), "calibrate", "overheads"});
  return run_command(arguments);
}

TEST(CalibrateOverheads, WritesAPlatformThatKnowsTheHost) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "mine.json").string();
  const CommandResult result = calibrate({example(), "--platform", "v100-sxm2-32gb", "-o", file});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("4 ranks, 1 ordinary step"), HasSubstr("cudaLaunchKernel"),
                                HasSubstr("Written to " + file)));
  const auto platform = load_platform(file);
  ASSERT_TRUE(platform.ok()) << platform.error().message();
  const auto host = HostOverheads::of(*platform);
  ASSERT_TRUE(host.ok()) << host.error().message();
  EXPECT_EQ(host->time(OverheadType::t4, "cudaLaunchKernel").ground, OverheadTimeSource::own);
  EXPECT_NE(host->launches("autograd::engine::evaluate_function: AddmmBackward0"), nullptr);
}

TEST(CalibrateOverheads, APartIsTakenAsTheHostOfAPlatform) {
  const TemporaryFolder folder;
  const std::string part = (folder.path() / "host.json").string();
  ASSERT_EQ(calibrate({example(), "--platform", "v100-sxm2-32gb", "--overheads-only", "-o", part}).exit_code,
            0);
  std::ofstream{folder.path() / "mine.json"}
      << R"({"stepcast_platform": 1, "name": "mine", "extends": "a100-sxm4-80gb", "host": {"extends": "host.json"}})";
  const auto platform = load_platform((folder.path() / "mine.json").string());
  ASSERT_TRUE(platform.ok()) << platform.error().message();
  EXPECT_EQ(platform->device.name, "A100-SXM4-80GB");
  EXPECT_TRUE(std::ranges::any_of(*platform->overheads, [](const OverheadRecord& o) {
    return o.type == OverheadType::t4 && o.op == "cudaLaunchKernel";
  }));
  EXPECT_NE(platform->find_model(kHostLaunchesKind), nullptr);
}

TEST(CalibrateOverheads, RefusesWhatItCannotUse) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "mine.json").string();
  const auto refused = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--platform", "v100-sxm2-32gb", "-o", file});
    const CommandResult result = calibrate(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_FALSE(std::filesystem::exists(file));
    return result.err;
  };
  EXPECT_THAT(refused({(folder.path() / "nothing").string()}), HasSubstr("nothing"));
  EXPECT_THAT(refused({example(), "--profiler-cost-us", "-1"}), HasSubstr("from 0 to 1000"));
  // A trace without any host time.
  std::ofstream{folder.path() / "kernels.json"}
      << R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {"stream": 7}}]})";
  EXPECT_THAT(refused({(folder.path() / "kernels.json").string()}), HasSubstr("host time"));
}

}  // namespace
}  // namespace stepcast::test::calibrate_overheads_test
