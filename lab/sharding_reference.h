// A slow, independent reference for training steps of recommendation models, to score sharding choices without a machine. It
// shares no code and no constants with the models (it includes no header of stepcast). Unlike the models, it knows the
// indices of the batch.
//
//   std::vector<ReferenceTable> tables;                    // rows, columns, lookups per sample, skew
//   std::vector<SampledTable> batch;                       // sample_table() of every table
//   const RankLookups rank = look_up(batch, shards, 4096, machine);
//   reference_step_us(ranks, job, machine, variant)
//
// Bags are issued table by table to the resident warps, which process them row by row at the same pace. Rows are cached in
// an exact LRU cache with 0.9 of the last-level cache. Forward: the larger of missed rows, indices and outputs over the
// memory bandwidth, and gathered rows over the largest gather rate. Backward: sort, gradients read, distinct rows read and
// written. Ranks synchronise in two all-to-alls (the larger of bytes sent and received by any rank), with the dense part
// between them and the all-reduce overlapped with the backward.
//
// The variant `estimator` times lookups by the published formulas of TorchRec's planner (EmbeddingPerfEstimator): bytes read
// and written over the memory bandwidth, with a penalty for narrow rows and without a cache; the update counts distinct
// rows. The time of a rank is then the sum over its tables. So a local search with the reference shows the gain of a planner
// that knows the truth.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepcast {

struct ReferenceTable {
  double rows = 0;
  double dim = 0;
  double pooling = 0;  // lookups per sample, on average
  double skew = 0;     // exponent of Zipf's law
};

// The lookups of a batch in one table, bag after bag. Rows are numbered in order of first occurrence. The first bags form a
// valid smaller batch.
struct SampledTable {
  std::vector<std::uint32_t> rows;
  std::vector<std::uint32_t> bag_ends;
  std::uint32_t distinct_rows = 0;
};
[[nodiscard]] SampledTable sample_table(const ReferenceTable& table, std::size_t bags, std::uint64_t seed);
// Lookups of every distinct row, [row].
[[nodiscard]] std::vector<std::uint32_t> lookups_by_row(const SampledTable& sampled);

// Part `row_part` of `row_parts` of the rows of a table, with `columns` of its columns.
struct ReferenceShard {
  std::uint32_t table = 0;
  double columns = 0;
  std::uint32_t row_part = 0, row_parts = 1;
};

// Four A100-40GB; every figure is from publications (docs/dlrm.md).
struct ReferenceMachine {
  double stream_bytes_per_us = 1391.1e3;
  double memory_bytes_per_us = 0.685 * 1555e3;  // of randomly accessed rows
  double gather_bytes_per_us = 1.25 * 1555e3;
  double cache_bytes = 40.0 * 1024 * 1024, cached_share = 0.9;
  double resident_warps = 108 * 45.0;
  double sorted_lookups_per_us = 6000;
  double forward_start_us = 10, backward_start_us = 60;
  double flops_per_us = 15026.6e3;
  double kernel_start_us = 5;
  double link_bytes_per_us = 0.8 * 300e3;  // of one GPU, one direction
  double all_to_all_start_us = 15, all_reduce_start_us = 25;
};

// Effects that the models do not know.
struct ReferenceVariant {
  bool narrow_rows_and_long_bags = false;  // narrow rows cost more; the longest bag delays its kernel
  bool hot_rows = false;                   // gradients of a hot row are added sequentially
  double links_slower = 1;
  bool estimator = false;  // lookups by TorchRec's estimator
};

// One kernel of one rank, over all its tables.
struct RankLookups {
  double bags = 0, lookups = 0, index_bytes = 0, output_bytes = 0;
  double columns = 0;  // sent per sample
  double longest_bag = 0, hottest_row = 0;
  // By width: columns of tables up to 32 wide, up to 64, wider.
  struct OfWidth {
    double gathered_bytes = 0, missed_bytes = 0, distinct_bytes = 0;
  } narrow, middle, wide;
  double missed = 0, distinct_rows = 0;
  // Adds a shard that shares no cache with this one.
  RankLookups& operator+=(const RankLookups& other);
};
[[nodiscard]] RankLookups look_up(std::span<const SampledTable> batch, std::span<const ReferenceShard> shards,
                                  std::size_t bags, const ReferenceMachine& machine);
[[nodiscard]] double reference_forward_us(const RankLookups& rank, const ReferenceMachine& machine,
                                          const ReferenceVariant& variant);
[[nodiscard]] double reference_backward_us(const RankLookups& rank, const ReferenceMachine& machine,
                                           const ReferenceVariant& variant);

// Vectors of all tables and of the bottom MLP are concatenated. fp32, SGD.
struct ReferenceJob {
  double dense_features = 512;
  std::vector<double> bottom_mlp{1024, 256, 128}, top_mlp{1024, 512, 256, 1};
  double batch = 4096;  // of all ranks
  double sum_of_dims = 0;
};
[[nodiscard]] double reference_step_us(std::span<const RankLookups> ranks, const ReferenceJob& job,
                                       const ReferenceMachine& machine, const ReferenceVariant& variant);

}  // namespace stepcast
