// A recommendation model and its training, read from a file (TOML or JSON) or a preset, and embedding tables
// from CSV.
//
//   STEPCAST_ASSIGN(DlrmJob job, read_dlrm_job("dlrm.toml"));     // or "dlrm-mlperf-v1"
//
//   model = "dlrm-multi-gpu"          # a preset to start from; or all of the following keys
//   dense_features = 13
//   bottom_mlp = [512, 256, 128]
//   top_mlp = [1024, 1024, 512, 256, 1]
//   interaction = "dot"               # dot, cross, concatenate
//   tables = "tables.csv"             # next to this file
//   indices = "batch.npz"             # next to this file: the lookups of a batch (measured_indices.h)
//   global_batch = 65536              # or batch_per_rank
//   stack = "torchrec"                # pytorch, nvidia, torchrec, hugectr, hugectr-2
//   release = "21.09"                 # of the software: year.month or a round of MLPerf Training; default: newest
//   cuda_graphs = true                # for pytorch and torchrec: the step is captured; default: false
//   dtype = "tf32"                    # of the dense part: fp32, tf32, fp16, bf16
//   exchange_dtype = "fp16"           # of vectors on the links: fp32, fp16, bf16, fp8, int8; default: by stack
//   dense_optimizer = "sgd"           # sgd, adagrad, adam
//   table_optimizer = "adagrad"
//
// Columns of a table file: rows, dim, pooling_factor. Optional: name, dtype, skew, longest_bag, and reuse (17
// shares of distinct rows by reuse factor, joined by '-') together with reuse_lookups.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/result.h"
#include "stepcast/recommend/dlrm.h"

namespace stepcast {

// A job: the model, and how it is trained.
struct DlrmJob {
  Dlrm model;
  DlrmTraining training;
  std::optional<std::int64_t> global_batch, batch_per_rank;  // at most one of the two
  // The training with its global batch for this number of ranks. Default batch: 8,192 samples per rank.
  [[nodiscard]] DlrmTraining training_on(std::int64_t n_ranks) const;
};

// Whether `--model` names a recommendation model: a preset, or a file with keys of such a model.
[[nodiscard]] bool is_dlrm_job(const std::string& model);
// Reads a preset by name, or a file. Errors: a file that cannot be read, an unknown key, a value out of
// range.
[[nodiscard]] Result<DlrmJob> read_dlrm_job(const std::string& preset_or_file);

// Overrides settings of the training. `settings` are (key, value) pairs with the keys of a job file; empty
// values are ignored. Errors: as for a file.
[[nodiscard]] Status set_training(const std::vector<std::pair<std::string, std::string>>& settings,
                                  DlrmTraining& training);
// Reads a job from a text. `name` is used in errors; `folder` is where `tables` and `indices` are looked up.
[[nodiscard]] Result<DlrmJob> parse_dlrm_job(std::string_view text, const std::string& name,
                                             const std::string& folder);

// True if the header of a CSV text has the columns that every table file has.
[[nodiscard]] bool looks_like_embedding_tables(std::string_view text);
// Reads a table file. Errors: a missing or unknown column, a value out of range, a name that occurs twice, no
// tables.
[[nodiscard]] Result<std::vector<EmbeddingTable>> read_embedding_tables(const std::string& file);
[[nodiscard]] Result<std::vector<EmbeddingTable>> parse_embedding_tables(std::string_view text,
                                                                         const std::string& name);
// Reads the cell `reuse` of the current row, "0.5-0.25-...". Error: not 17 shares that sum to 1 (within
// 0.05).
[[nodiscard]] Result<std::array<double, 17>> read_reuse_shares(const CsvRows& rows);

}  // namespace stepcast
