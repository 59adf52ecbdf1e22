// What each rank of a recommendation model looks up, holds and sends under a sharding: the sums over its shards, from
// which predict/dlrm_step prices the step.
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

struct RankLoad {
  LookupCost lookups;
  LookupCost replicated;  // of tables that every rank has, where they are kernels of their own
  double table_bytes = 0, host_bytes = 0;
  double vector_dims = 0;  // columns that it sends to every other rank, per sample
  double input_bytes = 0;  // of indices that it receives
  double node_dims = 0;    // columns that it sends inside its node to be summed there, per sample
};

struct PlanLoads {
  std::vector<RankLoad> ranks;
  double reduced_bytes = 0;  // of gradients of what every rank has
  bool host_memory = false;
};

class DlrmLoads {
 public:
  // Of these constants of lookups, and of what they may be wrong about (cost/plausible_lookups.h), as views 1 and on. The
  // model and training outlive this.
  // `learned`: of the type of the tables; null: none. Where both directions were measured all views are of them.
  DlrmLoads(const Dlrm& model, const DlrmTraining& training, const DlrmBehavior& habits, const Device& device,
            const LookupConstants& constants, std::int64_t n_ranks, std::int64_t gpus_per_node,
            const std::shared_ptr<const LearnedLookups>& learned = {});

  static constexpr std::size_t kNominal = 0;
  static constexpr std::size_t kViews = 1 + kPlausibleLookups;

  // Valid until the next one of that view. Ranks whose tables are as in the plan before keep their sums.
  [[nodiscard]] const PlanLoads& of_plan(const ShardingPlan& plan, std::size_t view = kNominal);
  // Of the same plan.
  [[nodiscard]] const PlanLoads& of_last_plan(std::size_t view);
  // Popular rows on every rank, the others spread by row: every rank looks up its own samples' popular rows and
  // its share of all others, and exchanges the latter alone.
  [[nodiscard]] PlanLoads hybrid(std::size_t view = kNominal);
  // Every rank has the mean of all.
  [[nodiscard]] PlanLoads even(std::size_t view = kNominal);

  [[nodiscard]] const LookupCost& cost_of(const TableShard& shard, std::size_t view = kNominal);
  // Forward and backward, the mean of the plausible views.
  [[nodiscard]] double plausible_us(const TableShard& shard);
  // Of weights and optimizer state.
  [[nodiscard]] double bytes_of(const TableShard& shard) const;
  [[nodiscard]] double forward_us(const RankLoad& load, std::size_t view = kNominal) const;
  [[nodiscard]] double backward_us(const RankLoad& load, std::size_t view = kNominal) const;
  // Of an element of vectors that are exchanged.
  [[nodiscard]] double vector_bytes() const { return vector_bytes_; }
  [[nodiscard]] const LookupModel& lookups() const { return views_[kNominal].lookups; }

  // Reuse factors [table] of another batch.
  void set_reuse(const std::vector<ReuseFactors>& reuse);
  // Rows of the described model looked up so many times as often.
  void set_reused(double times);

 private:
  using ShardKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, ShardingKind, TableMemory, double>;
  struct View {
    LookupModel lookups;
    std::map<ShardKey, LookupCost> shard_costs;
    std::vector<const LookupCost*> whole_costs;  // [table] of these, on one rank; null: not asked yet
    PlanLoads loads;                             // of the plan that is followed
    std::vector<std::uint64_t> summed;           // [rank] which of its changes they are of
  };
  struct Held {
    TableShard shard;
    double beside = 1;  // parts of the table in its node, where these are summed there
  };
  void forget_costs();
  void follow(const ShardingPlan& plan);
  void hold(std::uint32_t table, const TablePlan& plan);
  [[nodiscard]] RankLoad load_of(const std::vector<Held>& held, std::size_t view);
  [[nodiscard]] double batch() const { return static_cast<double>(training_.global_batch); }

  const Dlrm& model_;
  const DlrmTraining& training_;
  DlrmBehavior habits_;
  std::int64_t n_ranks_ = 1, gpus_per_node_ = 1;
  double vector_bytes_ = 4, gradient_bytes_ = 4;  // of what travels, and of what kernels have of it
  std::vector<AccessPattern> patterns_;           // [table]
  std::map<ShardKey, LookupCounts> counts_;       // of all views
  std::vector<View> views_;
  std::map<ShardKey, double> plausible_us_;
  std::vector<double> whole_plausible_us_;  // [table] on one rank; negative: not asked yet
  std::vector<TablePlan> followed_;         // [table] the plan that was asked for last
  std::vector<std::vector<Held>> held_;     // [rank] its shards, by table
  std::vector<std::uint64_t> changed_;      // [rank] the last change
  std::uint64_t changes_ = 0;
  double reduced_bytes_ = 0;
  bool host_memory_ = false;
};

}  // namespace stepcast::detail
