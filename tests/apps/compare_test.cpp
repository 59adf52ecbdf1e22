#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/base/output_file.h"

#include "tests/support/command.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::test::compare_test {
namespace {

using ::testing::HasSubstr;

CommandResult stepcast_with(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), stepcast_executable().string());
  return run_command(arguments);
}

class Compare : public ::testing::Test {
 protected:
  [[nodiscard]] std::string file(const char* name) const { return (folder_.path() / name).string(); }
  // A forecast as JSON and as a page.
  void predict(const char* json, const char* page, const char* tensor) const {
    const CommandResult result =
        stepcast_with({"predict", "--model", "llama-3-8b", "--platform", "dgx-h100", "--gpus", "16", "--tp",
                       tensor, "--gbs", "32", "--json", "--report", file(page)});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    ASSERT_TRUE(write_file(file(json), result.out).ok());
  }

  TemporaryFolder folder_;
};

TEST_F(Compare, TakesPagesAndJsonAlike) {
  predict("a.json", "a.html", "4");
  predict("b.json", "b.html", "2");
  const CommandResult same = stepcast_with({"compare", file("a.html"), file("a.json"), "--fail-above", "0"});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("B takes as long as A"));
  const CommandResult other =
      stepcast_with({"compare", file("a.html"), file("b.html"), "--fail-above", "3%"});
  EXPECT_EQ(other.exit_code, 4) << other.err;
  EXPECT_THAT(other.out, HasSubstr("tensor_parallel: 4 -> 2"));
  EXPECT_THAT(other.out, HasSubstr("exposed communication: tensor"));
  EXPECT_EQ(stepcast_with({"compare", file("a.html"), file("b.html"), "--fail-above", "95"}).exit_code, 0);
  const CommandResult drawn =
      stepcast_with({"compare", file("a.html"), file("b.html"), "--report", file("c.html")});
  EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_THAT(drawn.out, HasSubstr("c.html"));
}

TEST_F(Compare, TakesReplays) {
  const CommandResult replayed =
      stepcast_with({"replay", (source_dir() / "examples" / "dlrm_4gpu").string(), "--json"});
  ASSERT_EQ(replayed.exit_code, 0) << replayed.err;
  ASSERT_TRUE(write_file(file("r.json"), replayed.out).ok());
  const CommandResult same = stepcast_with({"compare", file("r.json"), file("r.json")});
  EXPECT_EQ(same.exit_code, 0) << same.err;
}

// A log is one measured row; a log without settings says so, and one of another GPU is refused.
TEST_F(Compare, CalibratesByLogs) {
  const std::string logs = (source_dir() / "tests" / "golden" / "logs").string();
  const CommandResult fitted = stepcast_with({"calibrate", "iterations", logs + "/train.log", "--platform",
                                              "dgx-h100", "-o", file("mine.json"), "--json"});
  EXPECT_EQ(fitted.exit_code, 0) << fitted.err;
  EXPECT_THAT(fitted.out, HasSubstr("\"n\": 1,"));
  const CommandResult open = stepcast_with({"calibrate", "iterations", logs + "/no_arguments.log",
                                            "--platform", "dgx-h100", "-o", file("mine2.json")});
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_THAT(open.err, HasSubstr("the log prints no settings of its run"));
  ASSERT_TRUE(
      write_file(file("run.sh"),
                 "torchrun --nproc_per_node 8 --nnodes 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
                 "--ffn-hidden-size 14336 --num-attention-heads 32 --swiglu --seq-length 8192 "
                 "--max-position-embeddings 8192 --micro-batch-size 1 --global-batch-size 128 --bf16 "
                 "--tensor-model-parallel-size 4 --sequence-parallel --vocab-size 128256 "
                 "--use-distributed-optimizer\n")
          .ok());
  const CommandResult beside =
      stepcast_with({"calibrate", "iterations", logs + "/no_arguments.log", "--command-line", file("run.sh"),
                     "--platform", "dgx-h100", "-o", file("mine2.json"), "--json"});
  EXPECT_EQ(beside.exit_code, 0) << beside.err;
  const std::string titan = (source_dir() / "fuzz" / "corpus" / "training_log" / "titan.log").string();
  ASSERT_TRUE(
      write_file(file("a100.log"), "[titan] CUDA capacity: NVIDIA A100-SXM4-80GB with 79.00GiB memory\n" +
                                       *read_file(titan, 100000))
          .ok());
  const CommandResult other = stepcast_with(
      {"calibrate", "iterations", file("a100.log"), "--platform", "dgx-h100", "-o", file("mine3.json")});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("found a run on `NVIDIA A100-SXM4-80GB`"));
}

TEST_F(Compare, RefusesWhatHoldsNoStep) {
  ASSERT_TRUE(write_file(file("x.json"), "{\"schema\": \"stepcast.models/1\"}").ok());
  const CommandResult refused = stepcast_with({"compare", file("x.json"), file("x.json")});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("a document `stepcast.models/1`, which does not have exactly one step"));
  const CommandResult missing = stepcast_with({"compare", file("nowhere.json"), file("x.json")});
  EXPECT_EQ(missing.exit_code, 2);
  const CommandResult percent =
      stepcast_with({"compare", file("x.json"), file("x.json"), "--fail-above", "much"});
  EXPECT_EQ(percent.exit_code, 2);
  EXPECT_THAT(percent.err, HasSubstr("--fail-above: found `much`, expected a share such as 3%"));
}

}  // namespace
}  // namespace stepcast::test::compare_test
