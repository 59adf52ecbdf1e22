// The time of batched embedding lookups (FBGEMM's table-batched kernels, HugeCTR and similar), forward and
// backward, for any mix of tables, from distinct rows and cache hits of the access pattern of each table.
//
//   const LookupModel model{platform.device};
//   const TableLookup table{.rows = 1e7, .dim = 128, .bags = 65536, .pooling = 20, .pattern = &pattern};
//   const LookupCost cost = model.cost(table);
//   model.forward_us({cost.forward_us + ...})      // one kernel over all tables of a rank
//
// A warp sums up one bag, row by row. A cached row arrives at the gather rate, which is little above the
// memory rate; any other row at the rate that memory reaches on scattered rows. The times of rows add up,
// because a warp waits for each row. The backward sorts all lookups by row; then one warp or block per
// distinct row sums up gradients and updates the row.
#pragma once

#include <memory>

#include "stepcast/cost/access_pattern.h"
#include "stepcast/cost/device_figures.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/operation/operation.h"

namespace stepcast {

struct LearnedLookups;  // cost/learned_lookup.h

// Where the rows of a table are stored.
enum class TablePlacement : std::uint8_t {
  hbm,         // memory of the GPU
  uvm,         // memory of the host; rows cross the host link at every lookup
  uvm_cached,  // memory of the host, with a cache of rows in the memory of the GPU
};
[[nodiscard]] std::string_view to_string(TablePlacement placement);

// The lookups of one rank in one table, or in its shard of a table, in one step.
struct TableLookup {
  double rows = 0;            // rows of the table or shard
  double dim = 0;             // columns
  double bags = 0;            // output rows
  double pooling = 1;         // mean lookups per bag, including empty bags
  double weight_bytes = 4;    // bytes of a table element
  double gradient_bytes = 4;  // bytes of an element of outputs and gradients
  double state_bytes_per_row = 0, state_bytes_per_element = 0;  // optimizer state, read and written
  bool weighted = false;    // every lookup has a weight, and weights have gradients
  bool one_to_one = false;  // every bag has exactly one lookup: no offsets are read
  double longest_bag = 0;   // lookups of the longest bag; 0: unknown
  TablePlacement placement = TablePlacement::hbm;
  double cached_share = 0.2;               // uvm_cached: share of the rows that are cached
  const AccessPattern* pattern = nullptr;  // null: uniform
};

// Contribution of one table, or the sum over tables. Times in us exclude the launch and the limits of a
// single bag or row.
struct LookupCost {
  double forward_us = 0, backward_us = 0;  // of all lookups
  double sort_us = 0;                      // part of backward_us: linearise, sort, find segments
  // Parts of the forward: cache misses with indices and outputs, and all rows at the cache rate.
  double missed_us = 0, gather_us = 0;
  // Lower bounds from one bag and one row; maximum over tables.
  double longest_bag_us = 0, hottest_row_us = 0;
  double lookups = 0, distinct_rows = 0, hits = 0;  // hits in the last-level cache, forward
  double gathered_bytes = 0;                        // bytes of all looked-up rows
  LookupCost& operator+=(const LookupCost& other);  // adds a table of the same kernel
};

// Statistics of one batch on one table, independent of the constants.
struct LookupCounts {  // of the batch; hottest: lookups of the most popular row
  double lookups = 0, distinct_rows = 0, hits = 0, hottest = 0;
  double cached_hits = 0;  // uvm_cached: hits in the row cache in GPU memory
  ReuseHistogram reuse{};  // of the rows; filled only for learned models
};

// Constants of the model: shares of the memory bandwidth and others. Sources are in docs/constants.md.
struct LookupConstants {
  double memory_share = 0.61;           // memory bandwidth on scattered rows
  double gather_share = 1.47;           // the same for hits in the last-level cache
  double backward_memory_share = 0.69;  // for the sort, gradients and updated rows
  // Time of about twelve kernels of the backward, most of them passes of the sort, with nearly no lookups.
  double backward_start_us = 110;
  // Smallest number of gradient columns per warp: narrower rows leave lanes idle. Rows of up to 128 columns
  // take the next power of two.
  double fewest_columns = 32;
  // Gradients of one row that one block sums up; longer runs are shared among blocks.
  double most_of_one_block = 1024;
  // Whether cache misses are fetched in parallel with the gathering of hits, or one after the other.
  bool misses_beside_hits = false;
  // Whether the last-level cache keeps rows until their next lookup, or all rows come from memory.
  bool keeps_rows = true;
};

// Times of lookups on one device. Immutable and thread-safe.
class LookupModel {
 public:
  // `learned` corrects the closed form for what it was trained on: unweighted tables in GPU memory with the
  // same element type.
  explicit LookupModel(const Device& device, const LookupConstants& constants = {},
                       std::shared_ptr<const LearnedLookups> learned = {});

  [[nodiscard]] LookupCost cost(const TableLookup& table) const { return cost(table, counts(table)); }
  // The two steps of cost(): counts depend on the cache of the device and the table, not on the constants.
  [[nodiscard]] LookupCounts counts(const TableLookup& table) const;
  [[nodiscard]] LookupCost cost(const TableLookup& table, const LookupCounts& counts) const;
  // Time in us of one batched kernel over the sum of its tables. 0 without lookups and bags.
  [[nodiscard]] double forward_us(const LookupCost& tables) const;
  [[nodiscard]] double backward_us(const LookupCost& tables) const;
  // The time with the band of the model and its source. Backward passes have wider bands than forward passes,
  // short kernels than long ones, and devices of unmeasured architectures than measured ones.
  [[nodiscard]] Estimate estimate(double time_us, bool in_host_memory, Direction direction) const;

 private:
  LookupConstants constants_;
  std::shared_ptr<const LearnedLookups> learned_;                     // null: none
  double stream_per_us_ = 1, memory_per_us_ = 1, gather_per_us_ = 1;  // bytes
  double backward_per_us_ = 1, host_per_us_ = 1;
  double cache_bytes_ = 0, resident_warps_ = 1;
  double floor_us_ = 1;
  bool assumed_ = false, measured_architecture_ = false;
};

}  // namespace stepcast
