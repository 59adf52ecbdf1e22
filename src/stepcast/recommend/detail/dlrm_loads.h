// The work of each rank of a recommendation model under a sharding: what it looks up, stores and sends. It is
// the sum over its shards, and the input from which dlrm_step.h prices the step.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "stepcast/cost/access_pattern.h"
#include "stepcast/cost/embedding_lookup.h"
#include "stepcast/cost/learned_lookup.h"
#include "stepcast/cost/plausible_lookups.h"
#include "stepcast/platform/platform.h"
#include "stepcast/recommend/dlrm.h"
#include "stepcast/recommend/dlrm_program.h"

namespace stepcast::detail {

// The load of one rank. Times are in microseconds.
struct RankLoad {
  LookupCost lookups;
  LookupCost replicated;  // tables copied to every rank, if they are looked up by separate kernels
  // Bytes of tables with optimizer state in GPU memory and in host memory.
  double table_bytes = 0, host_bytes = 0;
  double vector_dims = 0;  // columns sent to each other rank, per sample
  double input_bytes = 0;  // bytes of indices received
  double node_dims = 0;    // columns sent within the node to be summed, per sample
};

// The loads of all ranks.
struct PlanLoads {
  std::vector<RankLoad> ranks;
  double reduced_bytes = 0;  // bytes of gradients of tables on every rank
  bool host_memory = false;  // a table is in host memory
};

// Computes loads for one model, training and platform. Not thread-safe: results are cached.
class DlrmLoads {
 public:
  // View 0 uses `constants`; the other views use constants that are equally plausible
  // (cost/plausible_lookups.h). `model` and `training` must outlive this. `learned`: measured lookups for the
  // dtype of the tables; null: none. If both directions were measured, all views use the measurement.
  DlrmLoads(const Dlrm& model, const DlrmTraining& training, const DlrmBehavior& habits, const Device& device,
            const LookupConstants& constants, std::int64_t n_ranks, std::int64_t gpus_per_node,
            const std::shared_ptr<const LearnedLookups>& learned = {});

  static constexpr std::size_t kNominal = 0;
  static constexpr std::size_t kViews = 1 + kPlausibleLookups;

  // The loads under `plan`. The reference is valid until the next call for the same view. Ranks with
  // unchanged tables keep their sums.
  [[nodiscard]] const PlanLoads& of_plan(const ShardingPlan& plan, std::size_t view = kNominal);
  // The loads of another view for the plan of the last call of of_plan().
  [[nodiscard]] const PlanLoads& of_last_plan(std::size_t view);
  // The loads of a hybrid embedding: popular rows on every rank, the others spread by row. Every rank looks
  // up the popular rows for its samples and its share of the other rows, and only the latter are exchanged.
  [[nodiscard]] PlanLoads hybrid(std::size_t view = kNominal);
  // Every rank has the mean load of all tables. This is a lower bound for placements of whole tables.
  [[nodiscard]] PlanLoads even(std::size_t view = kNominal);

  // Lookup cost of one shard.
  [[nodiscard]] const LookupCost& cost_of(const TableShard& shard, std::size_t view = kNominal);
  // Time of forward and backward of a shard in microseconds, averaged over the plausible views.
  [[nodiscard]] double plausible_us(const TableShard& shard);
  // Bytes of weights and optimizer state.
  [[nodiscard]] double bytes_of(const TableShard& shard) const;
  // Time of all lookups of a rank in microseconds: forward, and backward with the update.
  [[nodiscard]] double forward_us(const RankLoad& load, std::size_t view = kNominal) const;
  [[nodiscard]] double backward_us(const RankLoad& load, std::size_t view = kNominal) const;
  // Bytes per element of the vectors that are exchanged.
  [[nodiscard]] double vector_bytes() const { return vector_bytes_; }
  // The lookup model with the nominal constants.
  [[nodiscard]] const LookupModel& lookups() const { return views_[kNominal].lookups; }

  // Replaces the reuse factors by those of another batch: [table].
  void set_reuse(const std::vector<ReuseFactors>& reuse);
  // Assumes that rows of the described model are looked up `times` as often.
  void set_reused(double times);

 private:
  using ShardKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, ShardingKind, TableMemory, double>;
  // Caches for one set of constants.
  struct View {
    LookupModel lookups;
    std::map<ShardKey, LookupCost> shard_costs;
    // [table] entry of shard_costs for the whole table; null: not computed yet
    std::vector<const LookupCost*> whole_costs;
    PlanLoads loads;                    // loads of the current plan
    std::vector<std::uint64_t> summed;  // [rank] value of changed_ at which its load was summed
  };
  // A shard on a rank.
  struct Held {
    TableShard shard;
    double beside = 1;  // number of parts of the table that are summed in the node
  };
  // Clears all caches after a change of reuse.
  void forget_costs();
  // Bring the loads up to date with a plan, and with one table.
  void follow(const ShardingPlan& plan);
  void hold(std::uint32_t table, const TablePlan& plan);
  // The load of a rank with these shards.
  [[nodiscard]] RankLoad load_of(const std::vector<Held>& held, std::size_t view);
  // The global batch in samples.
  [[nodiscard]] double batch() const { return static_cast<double>(training_.global_batch); }

  const Dlrm& model_;
  const DlrmTraining& training_;
  DlrmBehavior habits_;
  std::int64_t n_ranks_ = 1, gpus_per_node_ = 1;
  double vector_bytes_ = 4, gradient_bytes_ = 4;  // bytes per element: exchanged, and in kernels
  std::vector<AccessPattern> patterns_;           // [table]
  std::map<ShardKey, LookupCounts> counts_;       // shared by all views
  std::vector<View> views_;
  std::map<ShardKey, double> plausible_us_;
  std::vector<double> whole_plausible_us_;  // [table] whole table; negative: not computed yet
  std::vector<TablePlan> followed_;         // [table] the plan of the last call
  std::vector<std::vector<Held>> held_;     // [rank] its shards in the order of tables
  std::vector<std::uint64_t> changed_;      // [rank] number of the change that last affected it
  std::uint64_t changes_ = 0;
  double reduced_bytes_ = 0;
  bool host_memory_ = false;
};

}  // namespace stepcast::detail
