// What traces of a kind cannot give is refused by the name of the flag, and everything else passes.
#include "stepcast/api/detail/trace_request.h"

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fails_with.h"

namespace stepcast::detail {
namespace {

using test::FailsWith;
using Change = std::function<void(PredictTraceRequest&)>;

PredictTraceRequest with(const Change& change) {
  PredictTraceRequest request;
  change(request);
  return request;
}

TEST(TraceRequest, TimelinesOfPipelinesHaveNoOperators) {
  const std::vector<std::pair<std::string_view, Change>> flags{
      {"--second-trace", [](auto& r) { r.second_places = {"other"}; }},
      {"--kernels", [](auto& r) { r.kernels = "models"; }},
      {"--host overheads", [](auto& r) { r.host = "overheads"; }},
      {"--recorded-on", [](auto& r) { r.recorded_on = "dgx-a100"; }},
      {"--batch", [](auto& r) { r.batch = 64; }},
      {"--dtype", [](auto& r) { r.dtype = "bf16"; }},
      {"--data-parallel-ranks", [](auto& r) { r.data_parallel_ranks = 64; }},
      {"--bucket-size-mb", [](auto& r) { r.bucket_mb = 25; }},
      {"--recompute", [](auto& r) { r.recompute = "full"; }},
      {"--links-of", [](auto& r) { r.links_of = "dgx-a100"; }},
      {"--rank-platform", [](auto& r) { r.rank_platforms = {"0=dgx-a100"}; }},
  };
  for (const auto& [flag, change] : flags) {
    SCOPED_TRACE(flag);
    const Status status = check_pipeline(with(change), "timeline-ST.json.gz");
    EXPECT_THAT(status, FailsWith("timeline-ST.json.gz"));
    EXPECT_THAT(status, FailsWith(flag));
    EXPECT_THAT(status, FailsWith("names no operators and no kernels"));
  }
  EXPECT_THAT(check_pipeline(with([](auto& r) { r.spread.all_steps = true; }), "t.json"),
              FailsWith("--all-steps is for traces of PyTorch"));
  const PredictTraceRequest possible = with([](PredictTraceRequest& r) {
    r.what_if = {"nvlink=2x"};
    r.overlap = "none";
    r.median_ranks = true;
    r.step = 1031;
    r.kernels = "recorded";
  });
  EXPECT_TRUE(check_pipeline(possible, "t.json").ok());
}

TEST(TraceRequest, ChakraTracesHaveOneStep) {
  const std::vector<std::pair<std::string_view, Change>> flags{
      {"--second-trace", [](auto& r) { r.second_places = {"other"}; }},
      {"--step", [](auto& r) { r.step = 3; }},
      {"--all-steps", [](auto& r) { r.spread.all_steps = true; }},
  };
  for (const auto& [flag, change] : flags) EXPECT_THAT(check_chakra(with(change)), FailsWith(flag));
  EXPECT_TRUE(check_chakra(with([](auto& r) { r.platform = "dgx-h100"; })).ok());
}

TEST(TraceRequest, ExecutionTracesAloneHaveNoTimes) {
  const std::vector<std::pair<std::string_view, Change>> flags{
      {"--kernels", [](auto& r) { r.kernels = "ratio"; }},
      {"--recorded-on", [](auto& r) { r.recorded_on = "dgx-a100"; }},
      {"--second-trace", [](auto& r) { r.second_places = {"other"}; }},
      {"--step", [](auto& r) { r.step = 3; }},
      {"--all-steps", [](auto& r) { r.spread.all_steps = true; }},
  };
  for (const auto& [flag, change] : flags) EXPECT_THAT(check_untimed(with(change)), FailsWith(flag));
  EXPECT_TRUE(check_untimed(with([](auto& r) { r.kernels = "models"; })).ok());
}

TEST(TraceRequest, RecomputationIsFullOrSelective) {
  TracePredictionOptions how;
  EXPECT_TRUE(read_changes(with([](auto& r) { r.recompute = "selective"; }), how).ok());
  EXPECT_EQ(how.recompute, RecomputedPart::selective);
  how = {};
  EXPECT_TRUE(read_changes(with([](auto& r) { r.recompute = "full"; }), how).ok());
  EXPECT_EQ(how.recompute, RecomputedPart::full);
  how = {};
  EXPECT_TRUE(read_changes({}, how).ok());
  EXPECT_EQ(how.recompute, RecomputedPart::none);
  EXPECT_THAT(read_changes(with([](auto& r) { r.recompute = "some"; }), how), FailsWith("full or selective"));
}

}  // namespace
}  // namespace stepcast::detail
