// Which rows recorded batches look up in embedding tables: .npz files with the tensors that table-batched lookups
// take, and the reuse factors of every table in them.
//
//   STEPCAST_ASSIGN(const std::vector<MeasuredIndices> files, measure_indices({"batch.npz"}, {}));
//   files[0].tables[3].reuse.of_rows, files[0].all.distinct_rows
//   STEPCAST_TRY(use_indices(files[0], model));        // tables are priced as this batch has them
//
// Arrays of a file: `indices`, of all tables one after the other and sample by sample; and `lengths` of shape [tables,
// samples], or `offsets` of tables x samples + 1 numbers (or tables x samples), where `tables` may give their number.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/cost/access_pattern.h"
#include "stepcast/recommend/dlrm.h"

namespace stepcast {

// One table in one batch, or in the mean of several.
struct MeasuredTable {
  std::string name;
  ReuseFactors reuse;
  double lookups_per_sample = 0;  // empty bags included
  double empty_share = 0;         // of the bags
  std::int64_t longest_bag = 0;
  std::int64_t highest_index = -1;
};

struct MeasuredIndices {
  std::string file;
  std::int64_t samples = 0;
  std::vector<MeasuredTable> tables;
  // Rows of different tables are different rows: the totals that are published for a file.
  ReuseFactors all;
  // Mean over its batches of `batch_samples` consecutive samples, where they were asked for.
  ReuseFactors mean_batch;
  std::int64_t batches = 0;
};

struct MeasureOptions {
  const std::vector<EmbeddingTable>* tables = nullptr;  // names and rows that indices have to be below
  std::int64_t batch_samples = 0;                       // 0: the whole file is one batch
};

// One for each file and, where there are several, one more for all samples of all files together, the data set.
// Tables are measured one by one, so that a file may be larger than memory. Errors: those of the arrays; lengths that do
// not add up, offsets that fall, indices out of range; files with different tables.
[[nodiscard]] Result<std::vector<MeasuredIndices>> measure_indices(const std::vector<std::string>& files,
                                                                   const MeasureOptions& options);
// Of files in memory, {name, content}.
[[nodiscard]] Result<std::vector<MeasuredIndices>> measure_indices(
    const std::vector<std::pair<std::string, std::string>>& contents, const MeasureOptions& options);

// Gives the tables of a model the reuse factors, lookups per sample and longest bags of a batch. Error: another number
// of tables.
[[nodiscard]] Status use_indices(const MeasuredIndices& measured, Dlrm& model);

// The same with the indices of a file.
[[nodiscard]] Status read_indices(const std::string& file, Dlrm& model);

}  // namespace stepcast
