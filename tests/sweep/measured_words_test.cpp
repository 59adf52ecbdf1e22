#include "stepcast/sweep/measured_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace stepcast::measured_words_test {
namespace {

using test::FailsWith;

Job asked() {
  Job job{.model = "llama-3-8b", .n_gpus = 512};
  job.settings.tensor = 4;
  job.settings.pipeline = 2;
  job.settings.global_batch_sequences = 1024;
  return job;
}

TEST(MeasuredWords, SayWhatDiffersFromTheQuestion) {
  const auto said = parse_measured_words("gpus=64 tp=8 gbs=128 use_distributed_optimizer=4120.5", asked());
  ASSERT_TRUE(said.ok()) << said.error().message();
  EXPECT_FALSE(said->is_asked);
  EXPECT_DOUBLE_EQ(said->step_time_ms, 4120.5);
  EXPECT_EQ(said->job.model, "llama-3-8b");
  EXPECT_EQ(said->job.n_gpus, 64);
  EXPECT_EQ(said->job.settings.tensor, 8);
  EXPECT_EQ(said->job.settings.pipeline, 2);
  EXPECT_EQ(said->job.settings.global_batch_sequences, 128);
  EXPECT_EQ(said->job.settings.distributed_optimizer, true);
}

TEST(MeasuredWords, ATimeAloneIsOfTheStepThatIsAskedFor) {
  for (const char* text : {"4120", "=4120", "4120ms"}) {
    const auto said = parse_measured_words(text, asked());
    ASSERT_TRUE(said.ok()) << text << said.error().message();
    EXPECT_TRUE(said->is_asked) << text;
    EXPECT_DOUBLE_EQ(said->step_time_ms, 4120);
  }
}

TEST(MeasuredWords, RefuseInOneLineWhatSaysNothing) {
  for (const char* text : {"", "gpus=64 tp=8 pp=2=", "gpus=64=-3", "tp=8", "gpus=64=nan", "=", "gpus=64=0"})
    EXPECT_THAT(parse_measured_words(text, asked()), FailsWith("gpus=64 tp=8 pp=2=4120")) << text;
  EXPECT_THAT(parse_measured_words("gpsu=64=4120", asked()), FailsWith("`gpsu=64`"));
  EXPECT_THAT(parse_measured_words("platform=dgx-b200=4120", asked()), FailsWith("leave out platform"));
  EXPECT_THAT(parse_measured_words("tp=eight=4120", asked()), FailsWith("found `eight`"));
}

}  // namespace
}  // namespace stepcast::measured_words_test
