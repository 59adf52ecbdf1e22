// Recommendation models (DLRM and its like) and how their embedding tables are spread over ranks.
//
//   Dlrm model;                         // dense part and tables
//   ShardingPlan plan{.tables = {{.kind = ShardingKind::table_wise, .ranks = {3}}, ...}};
//   STEPCAST_TRY(check(model, plan, 8));
//   for (const TableShard& shard : shards_of(model, plan, 8)) ...
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/operation/dtype.h"
#include "stepcast/operation/operation.h"

namespace stepcast {

struct EmbeddingTable {
  std::string name;
  std::int64_t rows = 0, dim = 0;
  double pooling = 1;  // lookups per sample, on average
  DType dtype = DType::fp32;
  // Shares of the distinct rows of a batch by reuse factor, of a batch of `reuse_lookups` lookups of this table
  // (cost/access_pattern.h has the bins); else a power law.
  std::optional<std::array<double, 17>> reuse;
  double reuse_lookups = 0;
  // Of the same batch where it was measured: shares of the lookups, distinct rows, lookups of the most popular row.
  std::optional<std::array<double, 17>> reuse_of_lookups;
  double reuse_distinct_rows = 0, reuse_hottest = 0;
  double skew = 0.75;      // exponent of the power law
  double longest_bag = 0;  // lookups; 0: not known
  // int8 rows carry their scale and their offset, as FBGEMM's do.
  [[nodiscard]] double row_bytes() const {
    return static_cast<double>(dim) * element_size(dtype).value() + (dtype == DType::int8 ? 8 : 0);
  }
  [[nodiscard]] double bytes() const { return static_cast<double>(rows) * row_bytes(); }
};

enum class Interaction : std::uint8_t {
  dot,          // pairwise dot products of the vectors of all tables and of the bottom MLP
  cross,        // cross network of low rank on the concatenated vectors (DCNv2)
  concatenate,  // none
};
[[nodiscard]] std::string_view to_string(Interaction interaction);

struct Dlrm {
  std::string name;
  std::int64_t dense_features = 13;
  std::vector<std::int64_t> bottom_mlp, top_mlp;  // widths of the layers, without the input
  Interaction interaction = Interaction::dot;
  std::int64_t cross_layers = 3, cross_rank = 512;
  std::vector<EmbeddingTable> tables;

  // Width of what the top MLP takes.
  [[nodiscard]] std::int64_t interaction_width() const;
  [[nodiscard]] std::int64_t sum_of_dims() const;
  // Of the dense part.
  [[nodiscard]] double dense_parameters() const;
  // Multiply and add of the dense part, forward and backward, of one sample.
  [[nodiscard]] double flops_per_sample() const;
  [[nodiscard]] double table_bytes() const;
  // Names what cannot be: no tables, zero rows, negative pooling, a dot product of vectors of several widths.
  [[nodiscard]] Status check() const;
};

enum class ShardingKind : std::uint8_t {
  table_wise,      // the table on one rank
  row_wise,        // equal shares of the rows on all ranks given
  column_wise,     // equal shares of the columns
  table_row_wise,  // equal shares of the rows over the ranks of one node
  data_parallel,   // a copy on every rank
  grid_shard,      // equal shares of the columns, each table_row_wise
};
[[nodiscard]] std::string_view to_string(ShardingKind kind);
[[nodiscard]] std::optional<ShardingKind> parse_sharding_kind(std::string_view text);

enum class TableMemory : std::uint8_t { hbm, uvm, uvm_cached };  // of the GPU, of the host, cached
[[nodiscard]] std::string_view to_string(TableMemory memory);

inline constexpr double kCachedShare = 0.2;  // of a table's rows, where nobody said: TorchRec's default

struct TablePlan {
  ShardingKind kind = ShardingKind::table_wise;
  std::vector<std::int32_t> ranks;  // data_parallel: empty
  TableMemory memory = TableMemory::hbm;
  double cached_share = kCachedShare;  // uvm_cached: of the rows
  // grid_shard: shares of the columns; ranks are those of the first share, then of the second, ...
  std::uint32_t column_parts = 1;
  friend bool operator==(const TablePlan&, const TablePlan&) = default;
};

struct ShardingPlan {
  std::string name;               // of the sharder
  std::vector<TablePlan> tables;  // [table of the model]
  friend bool operator==(const ShardingPlan&, const ShardingPlan&) = default;
};

// Names the table that misses a rank or has one twice or out of range, or whose columns cannot be split.
[[nodiscard]] Status check(const Dlrm& model, const ShardingPlan& plan, std::int64_t n_ranks);

// What one rank holds of one table.
struct TableShard {
  std::uint32_t table = 0;
  std::int32_t rank = 0;
  std::uint32_t parts = 1;  // the table is in so many
  ShardingKind kind = ShardingKind::table_wise;
  TableMemory memory = TableMemory::hbm;
  double cached_share = kCachedShare;
  std::uint32_t column_parts = 1;  // grid_shard

  // Into how many parts its columns and its rows went.
  [[nodiscard]] double columns_split() const {
    return kind == ShardingKind::column_wise ? parts : kind == ShardingKind::grid_shard ? column_parts : 1;
  }
  [[nodiscard]] double rows_split() const {
    return kind == ShardingKind::data_parallel ? 1 : parts / columns_split();
  }
};
[[nodiscard]] std::vector<TableShard> shards_of(const Dlrm& model, const ShardingPlan& plan,
                                                std::int64_t n_ranks);
// Those of one table, in the order of its ranks.
[[nodiscard]] std::vector<TableShard> shards_of(std::uint32_t table, const TablePlan& plan,
                                                std::int64_t n_ranks);

// Which software runs the step: what is fused, launched and overlapped.
enum class DlrmStack : std::uint8_t {
  pytorch,    // eager: a host term per kernel
  nvidia,     // NVIDIA's example models: fused interaction, CUDA graphs
  torchrec,   // eager with its train pipeline: input distribution of the next batch beside this one
  hugectr,    // CUDA graphs, fused MLPs, hybrid embedding, overlapped all-reduce: version 3, from 2021 on
  hugectr_2,  // version 2, of 2020: tables as wholes, kernel by kernel, nothing beside anything
};
[[nodiscard]] std::string_view to_string(DlrmStack stack);
[[nodiscard]] std::optional<DlrmStack> parse_dlrm_stack(std::string_view text);

// When the software of a job was released, year and month as NVIDIA's containers are called: 2109 for 21.09. Also of a round
// of MLPerf Training ("v1.1"), whose submissions ran the container of their month. Nothing where it is neither.
[[nodiscard]] std::optional<std::int32_t> parse_dlrm_release(std::string_view text);

struct DlrmTraining {
  DlrmStack stack = DlrmStack::torchrec;
  std::int32_t release = 0;  // as parse_dlrm_release() has it; 0: the newest
  // The step of pytorch and torchrec is captured, and the host launches nothing kernel by kernel; the others' always is.
  bool cuda_graphs = false;
  std::int64_t global_batch = 65536;  // samples
  DType dtype = DType::tf32;          // of the dense part: fp16 and bf16 with 16-bit activations
  // In which vectors and their gradients travel between ranks; unknown: as the stack has it.
  DType exchange_dtype = DType::unknown;
  OptimizerKind dense_optimizer = OptimizerKind::sgd, table_optimizer = OptimizerKind::sgd;
  // Of the dense part, eager: PyTorch 2 goes over all tensors at once, PyTorch 1 over one after the other.
  OptimizerImplementation dense_optimizer_implementation = OptimizerImplementation::foreach;
};

}  // namespace stepcast
