#include <gtest/gtest.h>

#include "stepcast/sources/trace_listing.h"

#include "lab/replay_scores.h"
#include "tests/support/data.h"
#include "tests/support/paths.h"

namespace stepcast::clock_offsets_test {
namespace {

void expect_the_same(const std::filesystem::path& folder) {
  const std::vector<std::filesystem::path> place{folder};
  const Result<TraceListing> listing = list_traces(place);
  ASSERT_TRUE(listing.ok()) << listing.error().message();
  std::vector<TraceListing::Other> not_read;
  const std::vector<TraceSet> sets = read_trace_sets(*listing, {.ranks = {}, .threads = 0}, not_read);
  ASSERT_EQ(sets.size(), 1U);
  constexpr std::size_t kDraws = 4;
  const Result<std::vector<ClockDraws>> all = draw_clock_offsets(sets.front(), kDraws, 0);
  ASSERT_TRUE(all.ok()) << all.error().message();
  ASSERT_EQ(all->size(), 4U);
  for (const ClockDraws& drawn : *all) {
    EXPECT_GT(drawn.collectives, 0U) << drawn.most_us;
    EXPECT_EQ(drawn.most_other, drawn.collectives) << drawn.most_us;
    EXPECT_EQ(drawn.named_right + drawn.said_not_known, drawn.draws) << drawn.most_us;
  }
}

TEST(ClockOffsets, ChangeNeitherCollectivesNorWhoIsNamed) {
  expect_the_same(test::source_dir() / "examples" / "dlrm_4gpu");
  SKIP_WITHOUT_DATA();
  expect_the_same(*test::measured_data() / "traces" / "dlrm8");
}

}  // namespace
}  // namespace stepcast::clock_offsets_test
