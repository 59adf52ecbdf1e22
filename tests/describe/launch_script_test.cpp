#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"
#include "stepcast/describe/detail/shell_script.h"
#include "stepcast/describe/job.h"

#include "tests/support/paths.h"

namespace stepcast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> words_of(std::string_view script) {
  auto words = detail::launch_words(script);
  EXPECT_TRUE(words.ok()) << words.error().message();
  return words.ok() ? *std::move(words) : std::vector<std::string>{};
}

TEST(LaunchScript, CutsAsAShellDoes) {
  EXPECT_THAT(words_of(R"(a "b c" 'd $e' f\ g # h)"), ElementsAre("a", "b c", "d $e", "f g"));
  EXPECT_THAT(words_of("a \\\n b\\\r\n c \"\""), ElementsAre("a", "b", "c", ""));
}

TEST(LaunchScript, ExpandsWhatItSetsItself) {
  EXPECT_THAT(words_of("A=2; B=\"x y\"\nrun.py $A ${B} \"$B\" pre${A}post"),
              ElementsAre("run.py", "2", "x", "y", "x y", "pre2post"));
  EXPECT_THAT(words_of("A=(1 '2 3')\nA+=(4)\nrun.py ${A[@]} \"${A[@]}\""),
              ElementsAre("run.py", "1", "2", "3", "4", "1", "2 3", "4"));
  EXPECT_THAT(words_of("N=3\nrun.py $((N * (2 + ${N}) % 7 - $N / 2)) ${M:-9} ${N:-9}"),
              ElementsAre("run.py", "0", "9", "3"));  // 3 * 5 % 7 = 1, less 1
}

TEST(LaunchScript, LeavesWhatItCannotKnowAsItIsWritten) {
  EXPECT_THAT(words_of("run.py $X ${Y}/z $(date +%s) `id` $1 $((Q+1))"),
              ElementsAre("run.py", "$X", "${Y}/z", "$(date +%s)", "`id`", "$1", "$((Q+1))"));
  EXPECT_THAT(words_of("A=1\nif true; then A=2; fi\n[ -d x ] && B=3\nrun.py $A $B"),
              ElementsAre("run.py", "$A", "$B"));
}

TEST(LaunchScript, LeavesOutPipesAndRedirections) {
  EXPECT_THAT(words_of("run.py --a 1 2>&1 | tee log; ls"), ElementsAre("run.py", "--a", "1"));
  EXPECT_THAT(words_of("run.py --a 1 > out 2>> err < in &> all &"), ElementsAre("run.py", "--a", "1"));
}

TEST(LaunchScript, RefusesWhatHasNoEnd) {
  for (const char* script : {"a 'b", "a \"b", "a ${b", "a $((1", "a $(b", "a `b"}) {
    const auto words = detail::launch_words(script);
    ASSERT_FALSE(words.ok()) << script;
    EXPECT_THAT(words.error().message(), HasSubstr("not closed")) << script;
  }
  std::string grows = "A=xxxxxxxx\n";
  for (int i = 0; i < 40; ++i) grows += "A=$A$A\n";
  EXPECT_FALSE(detail::launch_words(grows).ok());
}

struct Script {
  const char* file;
  std::int64_t n_gpus, tensor, pipeline, data, layers, global_batch;
};

class LaunchScriptFile : public ::testing::TestWithParam<Script> {};

TEST_P(LaunchScriptFile, DescribesItsJob) {
  const Script& expected = GetParam();
  const auto text = read_file(test::source_dir() / "tests/describe/scripts" / expected.file);
  ASSERT_TRUE(text.ok()) << text.error().message();
  Job asked;
  asked.command_line = *text;
  if (expected.n_gpus == 512) asked.n_gpus = 512;  // Slurm says it, not the script
  const auto job = resolve(asked);
  ASSERT_TRUE(job.ok()) << job.error().message();
  EXPECT_EQ(job->layout.world_size(), expected.n_gpus);
  EXPECT_EQ(job->layout.degrees.tensor, expected.tensor);
  EXPECT_EQ(job->layout.degrees.pipeline, expected.pipeline);
  EXPECT_EQ(job->layout.degrees.data, expected.data);
  EXPECT_EQ(job->model.n_layers, expected.layers);
  EXPECT_EQ(job->layout.batch.global_batch_sequences, expected.global_batch);
}

INSTANTIATE_TEST_SUITE_P(Written, LaunchScriptFile,
                         ::testing::Values(Script{"gpt3_175b_arrays.sh", 128, 8, 16, 1, 96, 1536},
                                           Script{"strings_and_tee.sh", 16, 2, 2, 4, 24, 64},
                                           Script{"slurm_options.sh", 512, 4, 4, 32, 80, 512},
                                           Script{"conditions.sh", 32, 4, 1, 8, 32, 32},
                                           Script{"bare_flags.sh", 1, 1, 1, 1, 12, 64},
                                           Script{"several_commands.sh", 8, 1, 1, 8, 32, 8}));

}  // namespace
}  // namespace stepcast
