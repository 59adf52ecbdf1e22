// A slow second opinion on training steps of recommendation models: what the choice of shardings is judged by where
// no machine can be asked. It shares no code and no constant with the models (it includes nothing of stepcast) and
// knows what they do not: the indices of the batch in question.
//
//   std::vector<ReferenceTable> tables;                    // rows, columns, lookups per sample, how skewed
//   std::vector<SampledTable> batch;                       // sample_table() of every table
//   const RankLookups rank = look_up(batch, shards, 4096, machine);
//   reference_step_us(ranks, job, machine, variant)
//
// Bags are issued table after table to the resident warps, which go on row by row, all at the same pace. Rows lie in
// an exact LRU cache that has 0.9 of the last-level cache. Forward = the larger of missed rows, indices and outputs
// over the memory and gathered rows over what gathers reach at most; backward = sort, gradients read, distinct rows
// read and written. Ranks meet in two all-to-alls (the larger of what any rank sends and receives), with the dense
// part between them and the all-reduce under the backward.
//
// The variant `estimator` takes lookups by the published formulas of TorchRec's planner (EmbeddingPerfEstimator): what is read
// and written over the memory, times a penalty of narrow rows, without a cache; the update counts distinct rows. A rank is
// then the sum of its tables, so that a local search by the reference itself can say what one that knows the truth gains.
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

// The lookups of a batch in one table, bag after bag, rows numbered in the order in which they come up first. The
// first bags are a batch of their own.
struct SampledTable {
  std::vector<std::uint32_t> rows;
  std::vector<std::uint32_t> bag_ends;
  std::uint32_t distinct_rows = 0;
};
[[nodiscard]] SampledTable sample_table(const ReferenceTable& table, std::size_t bags, std::uint64_t seed);
// Lookups of every distinct row, [row].
[[nodiscard]] std::vector<std::uint32_t> lookups_by_row(const SampledTable& sampled);

// Part `row_part` of `row_parts` of the rows of a table, with so many of its columns.
struct ReferenceShard {
  std::uint32_t table = 0;
  double columns = 0;
  std::uint32_t row_part = 0, row_parts = 1;
};

// Four A100-40GB; every figure is one that is published of it (docs/dlrm.md).
struct ReferenceMachine {
  double stream_bytes_per_us = 1391.1e3;
  double memory_bytes_per_us = 0.685 * 1555e3;  // of rows here and there
  double gather_bytes_per_us = 1.25 * 1555e3;
  double cache_bytes = 40.0 * 1024 * 1024, cached_share = 0.9;
  double resident_warps = 108 * 45.0;
  double sorted_lookups_per_us = 6000;
  double forward_start_us = 10, backward_start_us = 60;
  double flops_per_us = 15026.6e3;
  double kernel_start_us = 5;
  double link_bytes_per_us = 0.8 * 300e3;  // of one GPU, one way
  double all_to_all_start_us = 15, all_reduce_start_us = 25;
};

// What the models do not know of.
struct ReferenceVariant {
  bool narrow_rows_and_long_bags = false;  // narrow rows are dearer, the longest bag holds its kernel up
  bool hot_rows = false;                   // gradients of a hot row are added one after the other
  double links_slower = 1;
  bool estimator = false;  // lookups by TorchRec's estimator
};

// One kernel of one rank, over all its tables.
struct RankLookups {
  double bags = 0, lookups = 0, index_bytes = 0, output_bytes = 0;
  double columns = 0;  // sent per sample
  double longest_bag = 0, hottest_row = 0;
  // By width: all columns of 32 and less, of 64 and less, wider.
  struct OfWidth {
    double gathered_bytes = 0, missed_bytes = 0, distinct_bytes = 0;
  } narrow, middle, wide;
  double missed = 0, distinct_rows = 0;
  // Of two shards that share no cache.
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
