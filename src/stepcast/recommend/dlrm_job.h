// A recommendation model and its training from a file (TOML or JSON) or a preset, and tables from a CSV file.
//
//   STEPCAST_ASSIGN(DlrmJob job, read_dlrm_job("dlrm.toml"));     // or "dlrm-mlperf-v1"
//
//   model = "dlrm-multi-gpu"          # a preset to begin with; or all of the following
//   dense_features = 13
//   bottom_mlp = [512, 256, 128]
//   top_mlp = [1024, 1024, 512, 256, 1]
//   interaction = "dot"               # dot, cross, concatenate
//   tables = "tables.csv"             # beside this file
//   indices = "batch.npz"             # beside this file: what a batch looks up (measured_indices.h)
//   global_batch = 65536              # or batch_per_rank
//   stack = "torchrec"                # pytorch, nvidia, torchrec, hugectr, hugectr-2
//   release = "21.09"                 # of the software: year and month, or a round of MLPerf Training; the newest
//   cuda_graphs = true                # of pytorch and torchrec: the step is captured; false if not said
//   dtype = "tf32"                    # of the dense part: fp32, tf32, fp16, bf16
//   exchange_dtype = "fp16"           # of vectors between ranks: fp32, fp16, bf16, fp8, int8; as the stack has it
//   dense_optimizer = "sgd"           # sgd, adagrad, adam
//   table_optimizer = "adagrad"
//
// Columns of a table file: rows, dim, pooling_factor; and where known name, dtype, skew, longest_bag, reuse (17 shares
// of distinct rows by reuse factor, joined by '-') with reuse_lookups.
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

struct DlrmJob {
  Dlrm model;
  DlrmTraining training;
  std::optional<std::int64_t> global_batch, batch_per_rank;  // at most one
  // What nobody said is 8,192 samples a rank.
  [[nodiscard]] DlrmTraining training_on(std::int64_t n_ranks) const;
};

// Whether `--model` means a recommendation model: a preset of one, or a file with keys of one.
[[nodiscard]] bool is_dlrm_job(const std::string& model);
[[nodiscard]] Result<DlrmJob> read_dlrm_job(const std::string& preset_or_file);

// `settings` are keys of the file that say how the job trains, with their values: instead of what the model says. Empty
// values say nothing. Errors: as of a file.
[[nodiscard]] Status set_training(const std::vector<std::pair<std::string, std::string>>& settings,
                                  DlrmTraining& training);
// `folder` is where `tables` is looked for.
[[nodiscard]] Result<DlrmJob> parse_dlrm_job(std::string_view text, const std::string& name,
                                             const std::string& folder);

// Whether the header of a CSV text names what every table of this file has.
[[nodiscard]] bool looks_like_embedding_tables(std::string_view text);
[[nodiscard]] Result<std::vector<EmbeddingTable>> read_embedding_tables(const std::string& file);
[[nodiscard]] Result<std::vector<EmbeddingTable>> parse_embedding_tables(std::string_view text,
                                                                         const std::string& name);
// The cell `reuse` of the current row, "0.5-0.25-...": 17 shares that sum to 1, or an Error.
[[nodiscard]] Result<std::array<double, 17>> read_reuse_shares(const CsvRows& rows);

}  // namespace stepcast
