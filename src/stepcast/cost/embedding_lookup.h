// The time of batched embedding lookups (FBGEMM's table-batched kernels, HugeCTR's and the like), forward and
// backward, for any mix of tables: from distinct rows and cache hits of every table's access pattern.
//
//   const LookupModel model{platform.device};
//   const TableLookup table{.rows = 1e7, .dim = 128, .bags = 65536, .pooling = 20, .pattern = &pattern};
//   const LookupCost cost = model.cost(table);
//   model.forward_us({cost.forward_us + ...})      // one kernel over all tables of a rank
//
// A warp adds up one bag, row by row. A row that is cached comes at the gather rate, which is little above that of
// the memory; any other at the rate that memory reaches on scattered rows. The times of rows add up, because a
// warp waits for each. The backward sorts all lookups by row, then one warp or block per distinct row adds up
// gradients and updates the row.
#pragma once

#include <memory>

#include "stepcast/cost/access_pattern.h"
#include "stepcast/cost/device_figures.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/operation/operation.h"

namespace stepcast {

struct LearnedLookups;  // cost/learned_lookup.h

// Where the rows of a table are kept.
enum class TablePlacement : std::uint8_t {
  hbm,         // memory of the GPU
  uvm,         // memory of the host, rows come over the host link at every lookup
  uvm_cached,  // the same behind a cache of rows in the memory of the GPU
};
[[nodiscard]] std::string_view to_string(TablePlacement placement);

// What one rank looks up in one table, or in its share of a table, in one step.
struct TableLookup {
  double rows = 0;
  double dim = 0;             // columns
  double bags = 0;            // output rows
  double pooling = 1;         // lookups per bag, on average, empty bags included
  double weight_bytes = 4;    // of an element of the table
  double gradient_bytes = 4;  // of an element of outputs and gradients
  double state_bytes_per_row = 0, state_bytes_per_element = 0;  // of the optimizer, read and written
  bool weighted = false;    // every lookup has a weight, which has a gradient
  bool one_to_one = false;  // every bag holds exactly one lookup: no offsets
  double longest_bag = 0;   // lookups; 0: not known
  TablePlacement placement = TablePlacement::hbm;
  double cached_share = 0.2;  // uvm_cached: of the rows
  const AccessPattern* pattern = nullptr;
};

struct LookupCost {
  double forward_us = 0, backward_us = 0;  // without the launch, and without what binds one bag or row
  double sort_us = 0;                      // of backward_us: linearise, sort, find segments
  // Of the forward: rows that the cache lacks with indices and outputs, and all rows at the rate of the cache.
  double missed_us = 0, gather_us = 0;
  double longest_bag_us = 0, hottest_row_us = 0;
  double lookups = 0, distinct_rows = 0, hits = 0;  // hits in the last-level cache, forward
  double gathered_bytes = 0;
  LookupCost& operator+=(const LookupCost& other);  // tables of one kernel
};

// What a batch does to a table, whatever its times are.
struct LookupCounts {
  double lookups = 0, distinct_rows = 0, hits = 0, hottest = 0;
  double cached_hits = 0;  // uvm_cached: rows that the cache in the GPU's memory has
  ReuseHistogram reuse{};  // of its rows; only where learned models ask
};

// Constants of the model: shares of the memory bandwidth, whose origin is in docs/constants.md.
struct LookupConstants {
  double memory_share = 0.61;           // that scattered rows reach
  double gather_share = 1.47;           // the same from the last-level cache
  double backward_memory_share = 0.69;  // of the sort, of gradients and of updated rows
  // Some twelve kernels of the backward, most of them passes of the sort, on next to no lookups.
  double backward_start_us = 110;
  // Columns of a gradient that lanes are taken for at least: narrower rows leave lanes idle, wider ones up to 128 take
  // the next power of two.
  double fewest_columns = 32;
  // Gradients of one row that one block adds up; blocks share what is more.
  double most_of_one_block = 1024;
  // Whether what misses the cache is fetched while other warps gather what does not, or one after the other.
  bool misses_beside_hits = false;
  // Whether the last-level cache keeps rows until they are looked up again, or all come from the memory.
  bool keeps_rows = true;
};

class LookupModel {
 public:
  // `learned` corrects what it was learned for: tables in the memory of the GPU, of its type, without weights.
  explicit LookupModel(const Device& device, const LookupConstants& constants = {},
                       std::shared_ptr<const LearnedLookups> learned = {});

  [[nodiscard]] LookupCost cost(const TableLookup& table) const { return cost(table, counts(table)); }
  // The two halves of it: counts depend on the cache of the device alone, and not on the constants.
  [[nodiscard]] LookupCounts counts(const TableLookup& table) const;
  [[nodiscard]] LookupCost cost(const TableLookup& table, const LookupCounts& counts) const;
  // One batched kernel; `tables` is the sum of its tables. 0 without lookups and bags.
  [[nodiscard]] double forward_us(const LookupCost& tables) const;
  [[nodiscard]] double backward_us(const LookupCost& tables) const;
  // With the band of the model and what it rests on. Backwards err more than forwards, short kernels more than long ones, and
  // devices of another architecture than was measured more than those of it.
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
