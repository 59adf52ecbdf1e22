// What traces of a kind cannot give is refused by the name of the flag, and everything else passes.
#include "stepcast/api/detail/trace_request.h"

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/sources/trace_listing.h"

#include "tests/support/fails_with.h"

namespace stepcast::detail::trace_request_test {
namespace {

using test::FailsWith;
using Change = std::function<void(PredictTraceRequest&)>;

PredictTraceRequest with(const Change& change) {
  PredictTraceRequest request;
  change(request);
  return request;
}

// A listing of one file of the kind.
Status check_on(SourceKindId kind, const PredictTraceRequest& request) {
  TraceListing listing;
  listing.of(kind) = {"timeline-ST.json.gz"};
  return check_asks(source_kind(listing.kind()), listing, asks_of(request));
}

TEST(TraceRequest, ProfilerTracesAnswerEverything) {
  for (std::size_t ask = 0; ask <= static_cast<std::size_t>(TraceAsk::rank_platform); ++ask) {
    const TraceAsk one = static_cast<TraceAsk>(ask);
    EXPECT_TRUE(check_asks(source_kind(SourceKindId::profiler), {}, {&one, 1}).ok()) << flag_of(one);
  }
}

TEST(TraceRequest, TimelinesOfPipelinesHaveNoOperators) {
  const std::vector<std::pair<std::string_view, Change>> flags{
      {"--second-trace", [](auto& r) { r.second_places = {"other"}; }},
      {"--shapes-of-step", [](auto& r) { r.shapes_of_step = 3; }},
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
    const Status status = check_on(SourceKindId::pipeline, with(change));
    EXPECT_THAT(status, FailsWith("timeline-ST.json.gz"));
    EXPECT_THAT(status, FailsWith(flag));
    EXPECT_THAT(status, FailsWith("has no operators and no kernels"));
  }
  EXPECT_THAT(check_on(SourceKindId::pipeline, with([](auto& r) { r.spread.all_steps = true; })),
              FailsWith("--all-steps is for traces of PyTorch"));
  EXPECT_THAT(check_on(SourceKindId::pipeline, with([](auto& r) { r.platform = "dgx-h100"; })),
              FailsWith("leave --platform out"));
  EXPECT_THAT(check_on(SourceKindId::pipeline, with([](auto& r) { r.ranks = {0}; })),
              FailsWith("leave --ranks out"));
  const PredictTraceRequest possible = with([](PredictTraceRequest& r) {
    r.what_if = {"nvlink=2x"};
    r.overlap = "none";
    r.median_ranks = true;
    r.step = 1031;
    r.kernels = "recorded";
  });
  EXPECT_TRUE(check_on(SourceKindId::pipeline, possible).ok());
}

TEST(TraceRequest, ChakraTracesHaveOneStep) {
  const std::vector<std::pair<std::string_view, Change>> flags{
      {"--second-trace", [](auto& r) { r.second_places = {"other"}; }},
      {"--shapes-of-step", [](auto& r) { r.shapes_of_step = 3; }},
      {"--step", [](auto& r) { r.step = 3; }},
      {"--all-steps", [](auto& r) { r.spread.all_steps = true; }},
  };
  for (const auto& [flag, change] : flags)
    EXPECT_THAT(check_on(SourceKindId::chakra, with(change)), FailsWith(flag));
  EXPECT_TRUE(check_on(SourceKindId::chakra, with([](auto& r) { r.platform = "dgx-h100"; })).ok());
}

TEST(TraceRequest, ExecutionTracesAloneHaveNoTimes) {
  const std::vector<std::pair<std::string_view, Change>> flags{
      {"--kernels", [](auto& r) { r.kernels = "ratio"; }},
      {"--recorded-on", [](auto& r) { r.recorded_on = "dgx-a100"; }},
      {"--second-trace", [](auto& r) { r.second_places = {"other"}; }},
      {"--shapes-of-step", [](auto& r) { r.shapes_of_step = 3; }},
      {"--step", [](auto& r) { r.step = 3; }},
      {"--all-steps", [](auto& r) { r.spread.all_steps = true; }},
  };
  const std::vector<Change> changes{[](auto& r) { r.batch = 64; }, [](auto& r) { r.overlap = "none"; },
                                    [](auto& r) { r.rank_platforms = {"0=dgx-a100"}; }};
  for (const Change& change : changes)
    EXPECT_THAT(check_on(SourceKindId::execution, with(change)), FailsWith("have no times to scale"));
  for (const auto& [flag, change] : flags)
    EXPECT_THAT(check_on(SourceKindId::execution, with(change)), FailsWith(flag));
  EXPECT_TRUE(check_on(SourceKindId::execution, with([](auto& r) { r.kernels = "models"; })).ok());
}

TEST(TraceRequest, ShapesOfAnotherStepAreTheOnlyChangeOfTheWork) {
  EXPECT_TRUE(prediction_options(with([](auto& r) { r.shapes_of_step = 3; })).ok());
  const std::vector<Change> changes{[](auto& r) { r.batch = 64; }, [](auto& r) { r.dtype = "bf16"; },
                                    [](auto& r) { r.data_parallel_ranks = 8; },
                                    [](auto& r) { r.spread.all_steps = true; }};
  for (const Change& change : changes) {
    PredictTraceRequest request = with(change);
    request.shapes_of_step = 3;
    EXPECT_THAT(prediction_options(request),
                FailsWith("--shapes-of-step cannot be combined with another change"));
  }
}

TEST(TraceRequest, RecomputationIsFullOrSelective) {
  for (const RecomputedPart part : {RecomputedPart::selective, RecomputedPart::full}) {
    const auto how = prediction_options(with([&](auto& r) { r.recompute = to_string(part); }));
    ASSERT_TRUE(how.ok()) << how.error().message();
    EXPECT_EQ(how->recompute, part);
  }
  const auto as_recorded = prediction_options({});
  ASSERT_TRUE(as_recorded.ok()) << as_recorded.error().message();
  EXPECT_EQ(as_recorded->recompute, RecomputedPart::none);
  EXPECT_THAT(prediction_options(with([](auto& r) { r.recompute = "some"; })),
              FailsWith("full or selective"));
}

}  // namespace
}  // namespace stepcast::detail::trace_request_test
