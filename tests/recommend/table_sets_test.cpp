#include "stepcast/recommend/table_sets.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/cost/access_pattern.h"
#include "stepcast/recommend/dlrm_job.h"

#include "tests/support/data.h"

namespace stepcast::table_sets_test {
namespace {

TEST(TableSets, HaveThePublishedTotals) {
  for (const TableSetTotals& totals : {kPublished2021, kPublished2022}) {
    const std::vector<EmbeddingTable> tables = generate_tables(totals, {.seed = 5});
    ASSERT_EQ(tables.size(), static_cast<std::size_t>(totals.n_tables));
    double lookups = 0, distinct = 0;
    for (const EmbeddingTable& t : tables) {
      const double n = t.pooling * totals.samples;
      lookups += n;
      distinct += AccessPattern::zipf(static_cast<double>(t.rows), t.skew).distinct_rows(n);
      EXPECT_GE(t.rows, 100);
      EXPECT_GE(t.skew, 0.2);
      EXPECT_LE(t.skew, 1.25);
    }
    EXPECT_EQ(std::count_if(tables.begin(), tables.end(),
                            [](const EmbeddingTable& t) { return t.pooling >= kHeavyPooling; }),
              totals.n_heavy);
    EXPECT_NEAR(lookups / totals.samples / static_cast<double>(totals.n_tables), totals.pooling, 1e-6);
    EXPECT_NEAR(lookups / distinct, totals.mean_reuse, 0.01);
  }
}

TEST(TableSets, AreTheSameFromTheSameSeed) {
  const auto text = [](std::uint64_t seed) {
    return tables_csv(generate_tables(kPublished2021, {.seed = seed}));
  };
  EXPECT_EQ(text(3), text(3));
  EXPECT_NE(text(3), text(4));
}

// Shares of all distinct rows by reuse factor against those of a published batch; half the sum of differences.
TEST(TableSets, ReuseRowsAboutAsThePublishedBatches) {
  SKIP_WITHOUT_DATA();
  const std::string file = (*test::measured_data() / "dlrm_tables" / "reuse_histograms.csv").string();
  const Result<std::string> text = read_file(file);
  ASSERT_TRUE(text.ok()) << text.error().message();
  for (const auto& [totals, name] : {std::pair{kPublished2021, "fbgemm_t856_bs65536_0"},
                                     std::pair{kPublished2022, "fbgemm_t788_bs131072_0"}}) {
    ReuseHistogram published{}, generated{};
    Result<CsvRows> rows = CsvRows::open(*text, file);
    ASSERT_TRUE(rows.ok());
    while (true) {
      const Result<bool> more = rows->next();
      ASSERT_TRUE(more.ok());
      if (!*more) break;
      if (rows->cell("file") != name || rows->cell("histogram") != "unique_rows") continue;
      published.at(static_cast<std::size_t>(*rows->number("bin", 0))) = *rows->number("fraction", 0);
    }
    double all = 0;
    for (const EmbeddingTable& t : generate_tables(totals, {.seed = 2})) {
      const AccessPattern pattern = AccessPattern::zipf(static_cast<double>(t.rows), t.skew);
      const double lookups = t.pooling * totals.samples, distinct = pattern.distinct_rows(lookups);
      const ReuseHistogram of_rows = pattern.reuse_of_rows(lookups);
      for (std::size_t k = 0; k < kReuseBins; ++k) generated[k] += distinct * of_rows[k];
      all += distinct;
    }
    double difference = 0;
    for (std::size_t k = 0; k < kReuseBins; ++k)
      difference += std::abs(published[k] - generated[k] / all) / 2;
    EXPECT_LT(difference, 0.12) << name;
  }
}

TEST(TableSets, TasksKeepThePublishedRules) {
  const std::vector<EmbeddingTable> pool = generate_tables(kPublished2022, {.seed = 1});
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<EmbeddingTable> task = draw_task(pool, {.heavy_only = true, .seed = seed});
    EXPECT_GE(task.size(), 36U);
    EXPECT_LE(task.size(), 67U);
    std::vector<std::string> names;
    double bytes = 0;
    for (const EmbeddingTable& t : task) {
      EXPECT_GE(t.pooling, kHeavyPooling);
      names.push_back(t.name);
      bytes += t.bytes();
    }
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
    EXPECT_LE(bytes, 0.8 * 4 * 40e9);
  }
}

TEST(TableSets, AreReadBackAsTables) {
  const Result<std::vector<EmbeddingTable>> task = generate_task("2021-heavy", 4, 40e9, 9);
  ASSERT_TRUE(task.ok()) << task.error().message();
  const Result<std::vector<EmbeddingTable>> back = parse_embedding_tables(tables_csv(*task), "t.csv");
  ASSERT_TRUE(back.ok()) << back.error().message();
  ASSERT_EQ(back->size(), task->size());
  EXPECT_EQ(back->front().rows, task->front().rows);
  EXPECT_EQ(back->front().dim, task->front().dim);
  EXPECT_NEAR(back->front().pooling, task->front().pooling, 1e-4);
}

TEST(TableSets, NameWhatTheyDoNotKnow) {
  for (const char* words : {"", "2020", "2021-light", "2021-heavy-heavy"}) {
    const Result<std::vector<EmbeddingTable>> task = generate_task(words, 4, 40e9, 1);
    ASSERT_FALSE(task.ok()) << words;
    EXPECT_NE(task.error().message().find("2021-heavy"), std::string::npos) << task.error().message();
  }
  EXPECT_FALSE(generate_task("2021", 4, 1e3, 1).ok());
}

}  // namespace
}  // namespace stepcast::table_sets_test
