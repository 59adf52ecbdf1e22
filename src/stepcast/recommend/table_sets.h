// Sets of embedding tables like those of production, made from a seed, and the sharding tasks drawn from them.
//
//   const std::vector<EmbeddingTable> pool = generate_tables(kPublished2021, {.seed = 1});
//   const std::vector<EmbeddingTable> task = draw_task(pool, {.heavy_only = true, .seed = 7});
//
// What is published of such sets are totals (facebookresearch/dlrm_datasets; Lin et al., figure 3): the number of
// tables, lookups per table and sample, distinct rows of a batch, and how many tables look up 20 rows and more per
// sample. Generated sets have exactly these. How the rest is distributed nobody published; TableSetOptions states
// what is assumed, to be varied.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stepcast/recommend/dlrm.h"

namespace stepcast {

// From so many lookups per sample on a table is called heavy (Lin et al., 2024).
inline constexpr double kHeavyPooling = 20;

struct TableSetTotals {
  std::int64_t n_tables = 0, n_heavy = 0;
  double samples = 0;     // of the batch that the other figures are of
  double pooling = 0;     // mean over tables
  double mean_reuse = 0;  // lookups per distinct row, all tables together
};
inline constexpr TableSetTotals kPublished2021{856, 103, 65'536, 8.346, 7.594};
inline constexpr TableSetTotals kPublished2022{788, 166, 131'072, 13.607, 12.747};

struct TableSetOptions {
  std::uint64_t seed = 1;
  // Exponents of the power laws by which rows are popular, uniform between these; production tables span about this.
  double lowest_skew = 0.2, highest_skew = 1.25;
  // Lookups per sample of heavy tables: 20 times a Pareto variable of this index, at most 20 times `heaviest`. The
  // others share what the total leaves, log-normal with this deviation of the logarithm.
  double heavy_index = 2.2, heaviest = 10, light_deviation = 1.2;
  // Rows: log-uniform over so many decades, whose place follows from the distinct rows. Among 1 to 8, with rows as
  // lookups or without, two come closest to the published reuse factors of all tables together.
  double decades_of_rows = 2;
};
[[nodiscard]] std::vector<EmbeddingTable> generate_tables(const TableSetTotals& totals,
                                                          const TableSetOptions& options = {});

// The rules of the published study: 0.7 to 1.3 times 13 tables per GPU, without replacement, none that is never
// looked up; not more than 0.8 of all memory.
struct TaskOptions {
  bool heavy_only = false;
  std::int64_t n_gpus = 4;
  double memory_bytes = 40e9;  // of one GPU
  std::uint64_t seed = 1;
};
[[nodiscard]] std::vector<EmbeddingTable> draw_task(const std::vector<EmbeddingTable>& pool,
                                                    const TaskOptions& options);

// "2021", "2022", "2021-heavy" or "2022-heavy": a task drawn from a set with the totals of that year.
[[nodiscard]] Result<std::vector<EmbeddingTable>> generate_task(const std::string& words, std::int64_t n_gpus,
                                                                double memory_bytes, std::uint64_t seed);

// As `--tables` takes it.
[[nodiscard]] std::string tables_csv(const std::vector<EmbeddingTable>& tables);

}  // namespace stepcast
