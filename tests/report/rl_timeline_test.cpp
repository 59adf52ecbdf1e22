#include "stepcast/report/rl_timeline.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/base/file.h"

#include "tests/report/json_check.h"
#include "tests/support/temporary_folder.h"

namespace stepcast::rl_timeline_test {
namespace {

using fixtures::Json;
using fixtures::parse_json;
using ::testing::ElementsAre;

// Generation takes 1 + 5 + 2 = 8 s, training 3 + 4 = 7 s, the weights 2 s. There is no reward model.
RlForecast forecast(bool on_policy) {
  RlForecast f{.n_gpus = 32, .generated_sequences = 192, .trained_sequences = 64, .mean_tokens = 1000};
  f.p10_s = 15.5;
  f.p90_s = 19;
  f.parts = {.prefill_s = 1,
             .decode_s = 5,
             .tail_s = 2,
             .log_probabilities_s = 3,
             .train_s = 4,
             .transfer_s = 2,
             .idle_s = on_policy ? 0.0 : 1.0};
  f.split = {.on_policy = on_policy, .generation_gpus = 24, .training_gpus = 8};
  return f;
}

struct SliceAt {
  std::string name;
  double start_s = 0, length_s = 0;
  bool operator==(const SliceAt&) const = default;
};

// The slices of each process, in order.
std::map<std::string, std::vector<SliceAt>> slices_of(const Json& document) {
  std::map<double, std::string> names;
  std::map<std::string, std::vector<SliceAt>> found;
  for (const Json& event : document["traceEvents"].items) {
    if (event["name"].text == "process_name") names[event["pid"].number] = event["args"]["name"].text;
    if (event["ph"].text == "X")
      found[names[event["pid"].number]].push_back(
          {event["name"].text, event["ts"].number / 1e6, event["dur"].number / 1e6});
  }
  return found;
}

const Json* slice(const Json& document, const std::string& name) {
  for (const Json& event : document["traceEvents"].items)
    if (event["name"].text == name) return &event;
  return nullptr;
}

TEST(RlTimeline, HasOnePoolOnPolicy) {
  const auto document = parse_json(to_perfetto(forecast(true)));
  ASSERT_TRUE(document);
  auto pools = slices_of(*document);
  ASSERT_EQ(pools.size(), 1U);
  EXPECT_THAT(pools["32 GPUs"],
              ElementsAre(SliceAt{"step", 0, 17}, SliceAt{"generation", 0, 8}, SliceAt{"prefill", 0, 1},
                          SliceAt{"decode", 1, 5}, SliceAt{"tail of the longest answers", 6, 2},
                          SliceAt{"log-probabilities", 8, 3}, SliceAt{"train", 11, 4},
                          SliceAt{"weights and engine changes", 15, 2}));
}

TEST(RlTimeline, HasTwoPoolsOffPolicy) {
  const auto document = parse_json(to_perfetto(forecast(false)));
  ASSERT_TRUE(document);
  auto pools = slices_of(*document);
  ASSERT_EQ(pools.size(), 2U);
  EXPECT_THAT(pools["generation: 24 GPUs"],
              ElementsAre(SliceAt{"step", 0, 10}, SliceAt{"generation", 0, 8}, SliceAt{"prefill", 0, 1},
                          SliceAt{"decode", 1, 5}, SliceAt{"tail of the longest answers", 6, 2},
                          SliceAt{"weights and engine changes", 8, 2}));
  EXPECT_THAT(pools["training: 8 GPUs"],
              ElementsAre(SliceAt{"step", 0, 10}, SliceAt{"log-probabilities", 0, 3}, SliceAt{"train", 3, 4},
                          SliceAt{"idle", 7, 1}, SliceAt{"weights and engine changes", 8, 2}));
}

TEST(RlTimeline, SaysHowMuchIsDoneAndWhatTheStepRestsOn) {
  const auto document = parse_json(to_perfetto(forecast(true)));
  ASSERT_TRUE(document);
  const Json& generation = (*slice(*document, "generation"))["args"];
  EXPECT_EQ(generation["sequences"].number, 192);
  EXPECT_EQ(generation["tokens"].number, 192'000);
  EXPECT_EQ((*slice(*document, "train"))["args"]["tokens"].number, 64'000);
  const Json& step = (*slice(*document, "step"))["args"];
  EXPECT_EQ(step["source"].text, "fitted");
  EXPECT_EQ(step["p10_s"].number, 15.5);
  EXPECT_EQ(step["p90_s"].number, 19);
}

TEST(RlTimeline, IsCompressedByName) {
  const test::TemporaryFolder folder;
  const auto packed = folder.path() / "step.json.gz";
  ASSERT_TRUE(write_perfetto(OutputFile::at(packed).value(), forecast(false)).ok());
  EXPECT_EQ(read_file(packed).value(), to_perfetto(forecast(false)));
}

}  // namespace
}  // namespace stepcast::rl_timeline_test
