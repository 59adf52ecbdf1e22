// Recommendation models (DLRM and similar models), and plans that distribute their embedding tables over
// ranks.
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

// An embedding table and the statistics of its lookups.
struct EmbeddingTable {
  std::string name;
  // Number of rows and columns.
  std::int64_t rows = 0, dim = 0;
  // Mean number of lookups per sample.
  double pooling = 1;
  DType dtype = DType::fp32;
  // Measured popularity: shares of the distinct rows of a batch by reuse factor (bins as in
  // cost/access_pattern.h), for a batch with `reuse_lookups` lookups of this table. Without it, a power law
  // is used.
  std::optional<std::array<double, 17>> reuse;
  double reuse_lookups = 0;
  // For the same batch, if it was measured: shares of the lookups by bin, number of distinct rows, and
  // lookups of the most popular row.
  std::optional<std::array<double, 17>> reuse_of_lookups;
  double reuse_distinct_rows = 0, reuse_hottest = 0;
  // Exponent of the power law, used without `reuse`.
  double skew = 0.75;
  // Most lookups of one sample; 0: not known.
  double longest_bag = 0;
  // Bytes of a row. int8 rows contain their scale and offset (8 bytes), as those of FBGEMM do.
  [[nodiscard]] double row_bytes() const {
    return static_cast<double>(dim) * element_size(dtype).value() + (dtype == DType::int8 ? 8 : 0);
  }
  // Bytes of the weights.
  [[nodiscard]] double bytes() const { return static_cast<double>(rows) * row_bytes(); }
};

// How embedding vectors and the output of the bottom MLP are combined.
enum class Interaction : std::uint8_t {
  dot,          // dot product of each pair of vectors
  cross,        // cross network of low rank on the concatenated vectors (DCNv2)
  concatenate,  // concatenation only
};
// The name in job files, such as "dot".
[[nodiscard]] std::string_view to_string(Interaction interaction);

// A recommendation model: an MLP over dense features, embedding tables, an interaction, and an MLP on top.
struct Dlrm {
  std::string name;
  std::int64_t dense_features = 13;
  // Widths of the layers, without the input.
  std::vector<std::int64_t> bottom_mlp, top_mlp;
  Interaction interaction = Interaction::dot;
  // Only for Interaction::cross: number of layers and their rank.
  std::int64_t cross_layers = 3, cross_rank = 512;
  std::vector<EmbeddingTable> tables;

  // Width of the input of the top MLP.
  [[nodiscard]] std::int64_t interaction_width() const;
  // Columns of all tables.
  [[nodiscard]] std::int64_t sum_of_dims() const;
  // Weights and biases of the dense part.
  [[nodiscard]] double dense_parameters() const;
  // FLOPs of the dense part for one sample, forward and backward. A multiply-add counts as 2.
  [[nodiscard]] double flops_per_sample() const;
  // Bytes of the weights of all tables.
  [[nodiscard]] double table_bytes() const;
  // Error for an impossible model: no tables, zero rows, negative pooling, dot products of vectors with
  // different widths, widths out of range.
  [[nodiscard]] Status check() const;
};

// How one table is split over ranks. Names and meaning are those of TorchRec.
enum class ShardingKind : std::uint8_t {
  table_wise,      // the whole table on one rank
  row_wise,        // equal shares of the rows on all given ranks
  column_wise,     // equal shares of the columns
  table_row_wise,  // equal shares of the rows on the ranks of one node
  data_parallel,   // a copy on every rank
  grid_shard,      // equal shares of the columns, each split table_row_wise
};
// The name in job files and TorchRec plans: "table_wise".
[[nodiscard]] std::string_view to_string(ShardingKind kind);
// The kind with this name; empty if there is none.
[[nodiscard]] std::optional<ShardingKind> parse_sharding_kind(std::string_view text);

// Where rows are stored: GPU memory, host memory, or host memory with a cache in GPU memory.
enum class TableMemory : std::uint8_t { hbm, uvm, uvm_cached };
// The name in JSON: "uvm_cached".
[[nodiscard]] std::string_view to_string(TableMemory memory);

// Default share of a table's rows in the cache. Source: default of TorchRec.
inline constexpr double kCachedShare = 0.2;

// The placement of one table.
struct TablePlan {
  ShardingKind kind = ShardingKind::table_wise;
  std::vector<std::int32_t> ranks;  // empty for data_parallel
  TableMemory memory = TableMemory::hbm;
  double cached_share = kCachedShare;  // uvm_cached: share of the rows in the cache
  // grid_shard: number of column shares. `ranks` lists the ranks of the first share, then those of the
  // second, and so on.
  std::uint32_t column_parts = 1;
  friend bool operator==(const TablePlan&, const TablePlan&) = default;
};

// The placement of all tables.
struct ShardingPlan {
  std::string name;               // the sharder that made it
  std::vector<TablePlan> tables;  // [table of the model]
  friend bool operator==(const ShardingPlan&, const ShardingPlan&) = default;
};

// Error if a plan does not fit the model: a table without a rank, with a rank twice or out of range, or with
// fewer columns than shares.
[[nodiscard]] Status check(const Dlrm& model, const ShardingPlan& plan, std::int64_t n_ranks);

// The part of one table on one rank.
struct TableShard {
  std::uint32_t table = 0;
  std::int32_t rank = 0;
  // Number of parts of the table.
  std::uint32_t parts = 1;
  ShardingKind kind = ShardingKind::table_wise;
  TableMemory memory = TableMemory::hbm;
  double cached_share = kCachedShare;
  std::uint32_t column_parts = 1;  // grid_shard

  // Number of parts by columns and by rows. Their values multiply to `parts`.
  [[nodiscard]] double columns_split() const {
    return kind == ShardingKind::column_wise ? parts : kind == ShardingKind::grid_shard ? column_parts : 1;
  }
  [[nodiscard]] double rows_split() const {
    return kind == ShardingKind::data_parallel ? 1 : parts / columns_split();
  }
};
// All shards of a plan, ordered by table, then by the order of its ranks.
[[nodiscard]] std::vector<TableShard> shards_of(const Dlrm& model, const ShardingPlan& plan,
                                                std::int64_t n_ranks);
// The shards of one table in the order of its ranks.
[[nodiscard]] std::vector<TableShard> shards_of(std::uint32_t table, const TablePlan& plan,
                                                std::int64_t n_ranks);

// The software that runs the step. It determines fusion, kernel launches and overlap.
enum class DlrmStack : std::uint8_t {
  pytorch,  // eager: every kernel costs host time
  nvidia,   // NVIDIA's example models: fused interaction, CUDA graphs
  // Eager with TorchRec's train pipeline: the inputs of the next batch are distributed during this one.
  torchrec,
  // Version 3, from 2021 on: CUDA graphs, fused MLPs, hybrid embedding, overlapped all-reduce.
  hugectr,
  // Version 2, of 2020: whole tables, kernel by kernel, no overlap.
  hugectr_2,
};
// The name in job files: "hugectr-2".
[[nodiscard]] std::string_view to_string(DlrmStack stack);
// The stack with this name ("hugectr-2"); empty if there is none.
[[nodiscard]] std::optional<DlrmStack> parse_dlrm_stack(std::string_view text);

// The release of a job's software as year and month, 2109 for 21.09, as in the names of NVIDIA's containers.
// Also accepts a round of MLPerf Training ("v1.1"), with the container that its submissions used. Empty for
// any other text.
[[nodiscard]] std::optional<std::int32_t> parse_dlrm_release(std::string_view text);

// How a model is trained.
struct DlrmTraining {
  DlrmStack stack = DlrmStack::torchrec;
  // Release as parse_dlrm_release() returns it; 0: the newest.
  std::int32_t release = 0;
  // For pytorch and torchrec: the step is captured as a CUDA graph, so the host does not launch kernels one
  // by one. Other stacks have a fixed behaviour.
  bool cuda_graphs = false;
  std::int64_t global_batch = 65536;  // samples per step over all ranks
  DType dtype = DType::tf32;          // of the dense part; fp16 and bf16 have 16-bit activations
  // Dtype of vectors and their gradients on the links; unknown: the default of the stack.
  DType exchange_dtype = DType::unknown;
  OptimizerKind dense_optimizer = OptimizerKind::sgd, table_optimizer = OptimizerKind::sgd;
  // Dense optimizer of eager stacks: PyTorch 2 updates all tensors at once (foreach), PyTorch 1 loops over
  // the tensors.
  OptimizerImplementation dense_optimizer_implementation = OptimizerImplementation::foreach;
};

}  // namespace stepcast
