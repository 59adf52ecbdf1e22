// Generates sets of embedding tables that resemble production sets, and draws sharding tasks from them.
// Everything follows from a seed.
//
//   const std::vector<EmbeddingTable> pool = generate_tables(kPublished2021, {.seed = 1});
//   const std::vector<EmbeddingTable> task = draw_task(pool, {.heavy_only = true, .seed = 7});
//
// Only totals of production sets are published (facebookresearch/dlrm_datasets; Lin et al., figure 3): number
// of tables, lookups per table and sample, distinct rows of a batch, and number of tables with at least 20
// lookups per sample. Generated sets have exactly these totals. The distributions are not published;
// TableSetOptions contains the assumptions, so that they can be varied.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/recommend/dlrm.h"

namespace stepcast {

// Lookups per sample from which a table is called heavy (Lin et al., 2024).
inline constexpr double kHeavyPooling = 20;

// Published totals of a set of tables.
struct TableSetTotals {
  std::int64_t n_tables = 0, n_heavy = 0;
  double samples = 0;     // of the batch to which the other numbers refer
  double pooling = 0;     // lookups per sample, mean over tables
  double mean_reuse = 0;  // lookups per distinct row, over all tables
};
// Totals of the sets published in 2021 and in 2022.
inline constexpr TableSetTotals kPublished2021{856, 103, 65'536, 8.346, 7.594};
inline constexpr TableSetTotals kPublished2022{788, 166, 131'072, 13.607, 12.747};

// Assumed distributions.
struct TableSetOptions {
  std::uint64_t seed = 1;
  // Exponents of the power laws of row popularity, drawn uniformly between these. Production tables have
  // about this range.
  double lowest_skew = 0.2, highest_skew = 1.25;
  // Lookups per sample of heavy tables: 20 times a Pareto variable with this index, at most 20 times
  // `heaviest`. Light tables share the rest of the total, log-normal with this standard deviation of the
  // logarithm.
  double heavy_index = 2.2, heaviest = 10, light_deviation = 1.2;
  // Number of rows: log-uniform over this number of decades. Their position follows from the published
  // distinct rows. Of 1 to 8 decades, with rows that depend on lookups or not, 2 is closest to the published
  // reuse factors of all tables.
  double decades_of_rows = 2;
};
// A set with exactly these totals. The same options give the same set.
[[nodiscard]] std::vector<EmbeddingTable> generate_tables(const TableSetTotals& totals,
                                                          const TableSetOptions& options = {});

// The rules of the published study: 0.7 to 1.3 times 13 tables per GPU, drawn without replacement from the
// tables with lookups, with at most 0.8 of the memory of all GPUs.
struct TaskOptions {
  bool heavy_only = false;
  std::int64_t n_gpus = 4;
  double memory_bytes = 40e9;  // of one GPU
  std::uint64_t seed = 1;
};
// Draws a task from a set; empty if no draw fits the memory.
[[nodiscard]] std::vector<EmbeddingTable> draw_task(const std::vector<EmbeddingTable>& pool,
                                                    const TaskOptions& options);

// A task from a set with the totals of a year: "2021", "2022", "2021-heavy" or "2022-heavy". Errors: another
// word, no task that fits.
[[nodiscard]] Result<std::vector<EmbeddingTable>> generate_task(const std::string& words, std::int64_t n_gpus,
                                                                double memory_bytes, std::uint64_t seed);

// The tables as CSV in the format of `--tables`.
[[nodiscard]] std::string tables_csv(const std::vector<EmbeddingTable>& tables);

}  // namespace stepcast
