// Which rows recorded batches look up: reads .npz files with the tensors of table-batched lookups and
// computes the reuse factors of every table.
//
//   STEPCAST_ASSIGN(const std::vector<MeasuredIndices> files, measure_indices({"batch.npz"}, {}));
//   files[0].tables[3].reuse.of_rows, files[0].all.distinct_rows
//   STEPCAST_TRY(use_indices(files[0], model));        // tables are priced as this batch has them
//
// Arrays of a file: `indices` of all tables, table by table and sample by sample; and either `lengths` of
// shape [tables, samples], or `offsets` with tables x samples + 1 numbers (or tables x samples). `tables` may
// give the number of tables.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/cost/access_pattern.h"
#include "stepcast/recommend/dlrm.h"

namespace stepcast {

// The lookups of one table in one batch, or the mean of several batches.
struct MeasuredTable {
  std::string name;
  ReuseFactors reuse;
  double lookups_per_sample = 0;  // mean, including empty bags
  double empty_share = 0;         // share of empty bags
  // Most lookups of one sample; largest index (-1: no lookups).
  std::int64_t longest_bag = 0;
  std::int64_t highest_index = -1;
};

// The result for one file, or for all files together.
struct MeasuredIndices {
  std::string file;
  std::int64_t samples = 0;
  std::vector<MeasuredTable> tables;
  // All tables together. Rows of different tables are different rows. Published totals have this form.
  ReuseFactors all;
  // Mean over batches of `batch_samples` consecutive samples, if requested.
  ReuseFactors mean_batch;
  std::int64_t batches = 0;
};

// Which tables are expected, and how batches are formed.
struct MeasureOptions {
  const std::vector<EmbeddingTable>* tables = nullptr;  // names, and numbers of rows that bound the indices
  std::int64_t batch_samples = 0;                       // 0: the whole file is one batch
};

// Measures the files. One result per file; with several files, one more for all samples together. Tables are
// measured one by one, so a file may be larger than memory. Errors: arrays that cannot be read, lengths that
// do not sum up to the number of indices, falling offsets, indices out of range, files with different numbers
// of tables.
[[nodiscard]] Result<std::vector<MeasuredIndices>> measure_indices(const std::vector<std::string>& files,
                                                                   const MeasureOptions& options);
// The same for files in memory, as pairs of name and content.
[[nodiscard]] Result<std::vector<MeasuredIndices>> measure_indices(
    const std::vector<std::pair<std::string, std::string>>& contents, const MeasureOptions& options);

// Sets the reuse factors, lookups per sample and longest bags of a model's tables to those of a batch. Error:
// the number of tables differs.
[[nodiscard]] Status use_indices(const MeasuredIndices& measured, Dlrm& model);

// The same with the indices of a file.
[[nodiscard]] Status read_indices(const std::string& file, Dlrm& model);

}  // namespace stepcast
