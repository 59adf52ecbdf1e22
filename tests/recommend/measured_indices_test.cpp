#include "stepcast/recommend/measured_indices.h"

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/npz_archive.h"

namespace stepcast::measured_indices_test {
namespace {

using test::npy;
using test::zip_archive;
using Values = std::vector<std::int64_t>;

// Two tables of three samples: bags {4, 4}, {}, {1} and {0}, {0, 2, 0}, {}.
const Values kIndices{4, 4, 1, 0, 0, 2, 0};
const Values kLengths{2, 0, 1, 1, 3, 0};

std::string archive_of(const Values& indices, const Values& lengths, const std::string& shape) {
  return zip_archive({{.name = "indices.npy",
                       .content = npy(indices, fmt::format("({},)", indices.size())),
                       .deflated = true},
                      {.name = "lengths.npy", .content = npy(lengths, shape)}});
}
std::string by_offsets(const Values& offsets, std::int64_t tables) {
  return zip_archive({{.name = "indices.npy", .content = npy(kIndices, "(7,)")},
                      {.name = "offsets.npy", .content = npy(offsets, fmt::format("({},)", offsets.size()))},
                      {.name = "tables.npy", .content = npy({tables}, "()")}});
}
Result<std::vector<MeasuredIndices>> measured(const std::string& archive,
                                              const MeasureOptions& options = {}) {
  return measure_indices(std::vector<std::pair<std::string, std::string>>{{"b.npz", archive}}, options);
}
std::string refusal(const std::string& archive, const MeasureOptions& options = {}) {
  const auto result = measured(archive, options);
  return result.ok() ? "read" : result.error().message();
}

TEST(MeasuredIndices, ByHandFromLengthsAndFromOffsets) {
  for (const std::string& archive :
       {archive_of(kIndices, kLengths, "(2, 3)"), by_offsets({0, 2, 2, 3, 4, 7, 7}, 2),
        by_offsets({0, 2, 2, 3, 4, 7}, 2)}) {
    const auto result = measured(archive);
    ASSERT_TRUE(result.ok()) << result.error().message();
    ASSERT_EQ(result->size(), 1U);
    const MeasuredIndices& m = result->front();
    EXPECT_EQ(m.samples, 3);
    ASSERT_EQ(m.tables.size(), 2U);
    EXPECT_DOUBLE_EQ(m.tables[0].lookups_per_sample, 1);
    EXPECT_EQ(m.tables[0].longest_bag, 2);
    EXPECT_EQ(m.tables[1].longest_bag, 3);
    EXPECT_EQ(m.tables[0].highest_index, 4);
    EXPECT_DOUBLE_EQ(m.tables[0].empty_share, 1.0 / 3);
    // Rows 4 (twice) and 1 of the first table, rows 0 (three times) and 2 of the second.
    EXPECT_EQ(m.all.distinct_rows, 4U);
    EXPECT_EQ(m.all.lookups, 7U);
    EXPECT_EQ(m.all.hottest, 3U);
    EXPECT_DOUBLE_EQ(m.all.of_rows[0], 2.0 / 4);
    EXPECT_DOUBLE_EQ(m.all.of_rows[1], 1.0 / 4);
    EXPECT_DOUBLE_EQ(m.all.of_lookups[2], 3.0 / 7);
  }
}

struct Drawn {
  Values indices, lengths;
};
// Bags of 0 to 8 lookups; the n-th row as likely as n^-0.8.
Drawn draw(int tables, int samples, std::int64_t rows, unsigned seed) {
  std::mt19937_64 random{seed};
  std::uniform_int_distribution<std::int64_t> length{0, 8};
  std::vector<double> weights;
  for (std::int64_t r = 1; r <= rows; ++r) weights.push_back(std::pow(static_cast<double>(r), -0.8));
  std::discrete_distribution<std::int64_t> row{weights.begin(), weights.end()};
  Drawn d;
  for (int bag = 0; bag < tables * samples; ++bag) {
    d.lengths.push_back(length(random));
    for (std::int64_t i = 0; i < d.lengths.back(); ++i) d.indices.push_back(row(random));
  }
  return d;
}

TEST(MeasuredIndices, EqualCountingAndForetellSmallerBatches) {
  constexpr int kTables = 4, kSamples = 6000, kBatch = 1500;
  const Drawn drawn = draw(kTables, kSamples, 30'000, 7);
  const auto result =
      measured(archive_of(drawn.indices, drawn.lengths, "(4, 6000)"), {.batch_samples = kBatch});
  ASSERT_TRUE(result.ok()) << result.error().message();
  const MeasuredIndices& m = result->front();
  // Row by row, with bins found by halving.
  ReuseHistogram rows{}, batch_rows{};
  double distinct = 0, batch_distinct = 0;
  std::size_t bag = 0, next = 0;
  const auto count = [](const std::map<std::int64_t, int>& times, ReuseHistogram& bins, double& all) {
    for (const auto& [row, n] : times) {
      std::size_t bin = 0;
      for (double limit = 1; limit < n && bin < 16; limit *= 2) ++bin;
      ++bins[bin];
      ++all;
    }
  };
  for (int t = 0; t < kTables; ++t) {
    std::map<std::int64_t, int> times, in_batch;
    for (int s = 0; s < kSamples; ++s, ++bag) {
      for (std::int64_t i = 0; i < drawn.lengths[bag]; ++i, ++next) {
        ++times[drawn.indices[next]];
        ++in_batch[drawn.indices[next]];
      }
      if (s % kBatch != kBatch - 1) continue;
      count(in_batch, batch_rows, batch_distinct);
      in_batch.clear();
    }
    count(times, rows, distinct);
  }
  EXPECT_EQ(static_cast<double>(m.all.distinct_rows), distinct);
  EXPECT_EQ(m.batches, 4);
  EXPECT_NEAR(static_cast<double>(m.mean_batch.distinct_rows), batch_distinct / 4, 1);
  for (std::size_t k = 0; k < kReuseBins; ++k) {
    EXPECT_NEAR(m.all.of_rows[k], rows[k] / distinct, 1e-12) << k;
    EXPECT_NEAR(m.mean_batch.of_rows[k], batch_rows[k] / batch_distinct, 1e-12) << k;
  }
  // The reuse factors of the whole say how many rows a batch of a quarter of the samples touches.
  double expected = 0;
  for (const MeasuredTable& t : m.tables) {
    expected += AccessPattern::from_reuse(t.reuse, 30'000).distinct_rows(kBatch * t.lookups_per_sample);
  }
  EXPECT_NEAR(expected / (batch_distinct / 4), 1, 0.01);
}

TEST(MeasuredIndices, SeveralFilesAreADataSet) {
  const std::string one = archive_of(kIndices, kLengths, "(2, 3)");
  const auto result =
      measure_indices(std::vector<std::pair<std::string, std::string>>{{"a.npz", one}, {"b.npz", one}}, {});
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->size(), 3U);
  EXPECT_EQ(result->back().samples, 6);
  EXPECT_EQ(result->back().all.lookups, 14U);
  EXPECT_EQ(result->back().all.distinct_rows, 4U);  // the same rows again
  EXPECT_EQ(result->back().all.hottest, 6U);
}

TEST(MeasuredIndices, GiveTablesTheirPattern) {
  const auto result = measured(archive_of(kIndices, kLengths, "(2, 3)"));
  ASSERT_TRUE(result.ok());
  Dlrm model;
  model.tables = {{.name = "a", .rows = 5, .dim = 4}, {.name = "b", .rows = 5, .dim = 4, .pooling = 9}};
  ASSERT_TRUE(use_indices(result->front(), model).ok());
  EXPECT_DOUBLE_EQ(model.tables[1].pooling, 4.0 / 3);
  EXPECT_DOUBLE_EQ(model.tables[1].longest_bag, 3);
  EXPECT_DOUBLE_EQ(model.tables[1].reuse_distinct_rows, 2);
  model.tables.pop_back();
  EXPECT_FALSE(use_indices(result->front(), model).ok());
}

TEST(MeasuredIndices, RefuseWhatDoesNotAddUp) {
  const auto says = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  says(refusal(archive_of(kIndices, {2, 0, 1, 1, 2, 0}, "(2, 3)")), "found 7 indices, expected the 6");
  says(refusal(archive_of(kIndices, {2, 0, 1, 1, 9, 0}, "(2, 3)")), "more lookups than the 7 indices");
  says(refusal(archive_of(kIndices, {2, 0, 1, -1, 4, 1}, "(2, 3)")), "found -1");
  says(refusal(by_offsets({0, 2, 1, 3, 4, 7, 7}, 2)), "found 1 behind 2");
  says(refusal(by_offsets({1, 2, 2, 3, 4, 7, 7}, 2)), "found 1 first, expected 0");
  says(refusal(by_offsets({0, 2, 2, 3, 4, 7, 7}, 5)), "7 numbers for 5 tables");
  says(refusal(by_offsets({0, 2, 2, 3, 4, 7, 7}, -3)), "0 tables");
  says(refusal(zip_archive({{.name = "rows.npy", .content = npy({1}, "(1,)")}})), "found the arrays rows");
  const std::vector<EmbeddingTable> tables{{.name = "a", .rows = 4, .dim = 4},
                                           {.name = "b", .rows = 9, .dim = 4}};
  says(refusal(archive_of(kIndices, kLengths, "(2, 3)"), {.tables = &tables}),
       "indices of a: index 0: found 4, expected a row of the table, 0 to 3");
}

}  // namespace
}  // namespace stepcast::measured_indices_test
