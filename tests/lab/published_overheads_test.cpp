#include "lab/published_overheads.h"

#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/overhead_fit.h"
#include "tests/support/host_trace.h"

namespace stepcast::published_overheads_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<double> times_of(const OverheadSamples& samples, OverheadType type, std::string_view op) {
  std::vector<double> times;
  const auto found = samples.of.find({type, std::string{op}});
  if (found == samples.of.end()) return times;
  for (const OverheadSample& sample : found->second) times.push_back(sample.duration_us);
  return times;
}

TEST(PublishedOverheads, OfAStepWhereTheyCanBeReadOff) {
  const OverheadSamples samples = published_overheads(test::host_trace());
  using enum OverheadType;
  // Gaps of 7, 0 and 10 us under one label; above 2 us only the first and the last, less 2.
  EXPECT_THAT(times_of(samples, t1, ""), ElementsAre(5, 8));
  // addmm: 10 us with expand inside: - 2; 9 us with fill_ inside: - 2; 12 us with nothing.
  EXPECT_THAT(times_of(samples, t2, "aten::addmm"), ElementsAre(8));
  EXPECT_THAT(times_of(samples, t5, "aten::addmm"), ElementsAre(7));
  EXPECT_THAT(times_of(samples, t3, "aten::addmm"), ElementsAre(12));
  EXPECT_THAT(times_of(samples, t5, "aten::view"), ElementsAre(3));
  EXPECT_THAT(times_of(samples, t2, "aten::copy_"), ElementsAre(0));
  EXPECT_THAT(times_of(samples, t5, "aten::copy_"), ElementsAre(5));
  EXPECT_THAT(times_of(samples, t3, "aten::copy_"), ElementsAre(10));
  EXPECT_THAT(times_of(samples, t5, "aten::item"), ElementsAre(0));  // one launch
  EXPECT_THAT(times_of(samples, t4, "cudaLaunchKernel"), ElementsAre(4, 4));
  EXPECT_THAT(times_of(samples, t4, "cudaMemcpyAsync"), ElementsAre(4));
  EXPECT_THAT(times_of(samples, t4, "cudaStreamSynchronize"), IsEmpty());
}

TEST(PublishedOverheads, LeaveOutLongGapsOutliersAndChildlessTo) {
  // Gaps of 250 (too long), 12 four times and 100 us, which is far from 12: 10 remains four times.
  test::TraceBuilder t;
  const int main = t.thread(1);
  double at = 0;
  t.op(main, "aten::to", at, 3);
  for (const double gap : {250.0, 12.0, 12.0, 12.0, 12.0, 100.0}) {
    at += 3 + gap;
    t.op(main, "aten::relu", at, 3);
  }
  const OverheadSamples samples = published_overheads(t.build());
  EXPECT_THAT(times_of(samples, OverheadType::t1, ""), ElementsAre(10, 10, 10, 10));
  EXPECT_THAT(times_of(samples, OverheadType::t5, "aten::to"), IsEmpty());
  EXPECT_EQ(times_of(samples, OverheadType::t5, "aten::relu").size(), 6U);
}

TEST(PublishedOverheads, GapsLieBetweenOperatorsOfOneLabel) {
  // 10 us apart, but the second operator is under another label; the third follows it by 5 us there.
  test::TraceBuilder t;
  const int main = t.thread(1);
  t.annotation(main, "## bottom ##", 0, 15).op(main, "aten::relu", 5, 5);
  t.annotation(main, "## top ##", 18, 40).op(main, "aten::relu", 20, 5).op(main, "aten::relu", 30, 5);
  EXPECT_THAT(times_of(published_overheads(t.build()), OverheadType::t1, ""), ElementsAre(3));
}

TEST(PublishedOverheads, DataLoadingIsCutOut) {
  test::TraceBuilder t;
  const int main = t.thread(1);
  t.op(main, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 50);
  t.op(main, "aten::stack", 10, 20).op(main, "aten::to", 60, 10).op(main, "aten::copy_", 62, 5);
  t.annotation(main, "## Forward ##", 80, 40).op(main, "aten::relu", 85, 5);
  const OverheadSamples samples = published_overheads(t.build());
  EXPECT_THAT(times_of(samples, OverheadType::t5, "aten::stack"), IsEmpty());
  EXPECT_THAT(times_of(samples, OverheadType::t5, "aten::to"), IsEmpty());
  EXPECT_THAT(times_of(samples, OverheadType::t5, "aten::relu"), ElementsAre(5));
}

TEST(PublishedOverheads, KnowNothingOfWhatTheyNeverSaw) {
  const OverheadFit fit = fit_overheads(published_overheads(test::host_trace()), {.published_rules = true});
  Platform platform;
  fit.write_to(platform, {});
  const auto host = HostOverheads::of(platform);
  ASSERT_TRUE(host.ok()) << host.error().message();
  EXPECT_EQ(host->time(OverheadType::t2, "aten::mm").ground, OverheadTimeSource::none);
  // One gap for all operators: (5 + 8) / 2.
  EXPECT_EQ(host->time(OverheadType::t1, "aten::mm").mean_us, 6.5);
}

}  // namespace
}  // namespace stepcast::published_overheads_test
