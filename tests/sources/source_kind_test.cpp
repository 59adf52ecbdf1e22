// What can be asked of which traces stands in one table, which the documentation repeats.
#include "stepcast/sources/source_kind.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/sources/recorded_source.h"
#include "stepcast/sources/trace_listing.h"

#include "tests/support/paths.h"

namespace stepcast::source_kind_test {
namespace {

bool refuses(const SourceKind& kind, TraceAsk ask) {
  return std::any_of(kind.refusals.begin(), kind.refusals.end(), [&](const Refusal& refusal) {
    return std::find(refusal.asks.begin(), refusal.asks.end(), ask) != refusal.asks.end();
  });
}

std::string row_of(TraceAsk ask) {
  std::string name{flag_of(ask)};
  if (ask == TraceAsk::recorded_kernels) name += " recorded";
  if (ask == TraceAsk::modelled_kernels) name += " models";
  if (ask == TraceAsk::scaled_kernels) name += " ratio";
  std::string row = fmt::format("| `{}` |", name);
  for (const SourceKind& kind : source_kinds()) row += refuses(kind, ask) ? " no |" : " yes |";
  return row;
}

TEST(SourceKinds, DocumentationHasTheTable) {
  std::ifstream file{test::source_dir() / "docs" / "trace-prediction.md"};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  std::string header = "| asked with |";
  for (const SourceKind& kind : source_kinds()) header += fmt::format(" {} |", kind.called);
  EXPECT_THAT(text, ::testing::HasSubstr(header));
  for (std::size_t ask = 0; ask <= static_cast<std::size_t>(TraceAsk::rank_platform); ++ask)
    EXPECT_THAT(text, ::testing::HasSubstr(row_of(static_cast<TraceAsk>(ask)) + "\n"));
}

TEST(SourceKinds, AFolderIsReadAsTheFirstKindThatItHolds) {
  TraceListing listing;
  EXPECT_EQ(listing.kind(), SourceKindId::profiler) << "whose reader says what is here instead";
  listing.of(SourceKindId::pipeline) = {"a"};
  EXPECT_EQ(listing.kind(), SourceKindId::pipeline);
  listing.of(SourceKindId::chakra) = {"b"};
  EXPECT_EQ(listing.kind(), SourceKindId::chakra);
  listing.of(SourceKindId::execution) = {"c"};
  EXPECT_EQ(listing.kind(), SourceKindId::execution);
  EXPECT_THAT(listing.files(), ::testing::ElementsAre("c", "b", "a"));
}

TEST(SourceKinds, RecordedRanksGiveTheirSteps) {
  const std::vector<std::filesystem::path> places{test::source_dir() / "examples" / "dlrm_4gpu"};
  const auto listing = list_traces(places);
  ASSERT_TRUE(listing.ok()) << listing.error().message();
  ASSERT_EQ(listing->kind(), SourceKindId::profiler);
  const auto source = source_kind(listing->kind()).open(*listing, {});
  ASSERT_TRUE(source.ok()) << source.error().message();
  EXPECT_FALSE((*source)->device().empty());
  ASSERT_FALSE((*source)->steps().empty());
  const auto program = (*source)->program({.step = (*source)->steps().back()});
  ASSERT_TRUE(program.ok()) << program.error().message();
  EXPECT_EQ(program->facts.size(), 4U);
  EXPECT_EQ(program->facts.front().step_number, (*source)->steps().back());
}

}  // namespace
}  // namespace stepcast::source_kind_test
