#include "stepcast/platform/provenance.h"

#include <string>

#include <gtest/gtest.h>

namespace stepcast::provenance_test {
namespace {

TEST(RowHash, IsTheSameOnEveryMachine) {
  // These numbers stand in platform files.
  EXPECT_EQ(row_hash(std::initializer_list<std::string_view>{}), 0x4f43b6U);
  EXPECT_EQ(row_hash({"a", "b"}), 0x6e0597U);
}

TEST(RowHash, CellsDoNotRunIntoEachOther) {
  EXPECT_NE(row_hash({"ab", "c"}), row_hash({"a", "bc"}));
  EXPECT_NE(row_hash({"a"}), row_hash({"a", ""}));
}

TEST(RowHash, NeighboursSpread) {
  std::vector<std::uint32_t> hashes;
  for (int i = 0; i < 20000; ++i) hashes.push_back(row_hash({"all_reduce", std::to_string(i)}));
  EXPECT_GE(RowHashes{hashes}.all().size(), 19975U);  // 20,000^2 / 2^25 = 12 repeats are expected
}

TEST(RowHash, OfEarlierVersionsIsItsFirstBits) {
  const RowHashes hashes{{0x6e0597b2U, 0x4f43b61eU, 0x4f43b61fU}};
  EXPECT_EQ(hashes.all(), (std::vector<std::uint32_t>{0x4f43b6U, 0x6e0597U}));
}

TEST(Provenance, KnowsTheRowsItWasFittedOn) {
  Provenance p;
  p.row_hashes = RowHashes{{row_hash({"b"}), row_hash({"a"}), row_hash({"a"})}};
  EXPECT_EQ(p.row_hashes.all().size(), 2U);
  EXPECT_TRUE(p.used_row(row_hash({"a"})));
  EXPECT_FALSE(p.used_row(row_hash({"c"})));
}

TEST(Sources, SayAssumedAboutWhatNobodySaid) {
  Sources sources;
  EXPECT_EQ(sources.of("memory_GiB").source, FigureSource::assumed);
  Provenance sheet;
  sheet.source = FigureSource::data_sheet;
  sources.set("memory_GiB", sheet);
  EXPECT_EQ(sources.of("memory_GiB").source, FigureSource::data_sheet);
  sources.erase("memory_GiB");
  EXPECT_EQ(sources.find("memory_GiB"), nullptr);
}

TEST(FigureSource, ReadsWhatItWrites) {
  for (const auto source :
       {FigureSource::assumed, FigureSource::data_sheet, FigureSource::measured, FigureSource::fitted}) {
    EXPECT_EQ(parse_figure_source(to_string(source)), source);
  }
  EXPECT_EQ(parse_figure_source("guessed"), std::nullopt);
}

}  // namespace
}  // namespace stepcast::provenance_test
