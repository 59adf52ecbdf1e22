// Forecasts the time of a training step of a recommendation model for any sharding of its tables.
//
//   STEPCAST_ASSIGN(DlrmStepModel steps, DlrmStepModel::create(model, training, platform, 8));
//   STEPCAST_ASSIGN(const DlrmStep step, steps.predict(plan));
//   step.time.time, step.ranks[3].lookup_us, step.ranks[3].memory_bytes
//
// The Program is built and priced once. A sharding changes only the times of lookups and exchanges.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/cost/embedding_lookup.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/platform/platform.h"
#include "stepcast/predict/coverage.h"
#include "stepcast/predict/step_assumptions.h"
#include "stepcast/predict/step_explanation.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/recommend/dlrm.h"
#include "stepcast/recommend/dlrm_program.h"
#include "stepcast/recommend/dlrm_rank.h"
#include "stepcast/simulate/engine.h"

namespace stepcast {

// Deviations of a job from its description, for what-if questions.
struct DlrmWhatIf {
  double reuse = 1;  // factor on how often the looked-up rows are looked up (AccessPattern::reused)
  // Factor on the lookup time of the last rank, as if its samples had more lookups.
  double rank_skew = 1;
  friend bool operator==(const DlrmWhatIf&, const DlrmWhatIf&) = default;
};
// The names of the factors for `--what-if`.
[[nodiscard]] inline std::array<WhatIfFactor, 2> factors_of(DlrmWhatIf& what_if) {
  return {{{"reuse", &what_if.reuse}, {"rank_skew", &what_if.rank_skew}}};
}

// The step of one model on one platform. Not thread-safe: all calls share caches.
class DlrmStepModel {
 public:
  // `links`: platform with the links to use, default `platform`. Errors: those of the model, a batch with
  // fewer samples than GPUs, an unsupported number of GPUs, a table larger than the memory of all GPUs and
  // hosts.
  [[nodiscard]] static Result<DlrmStepModel> create(const Dlrm& model, const DlrmTraining& training,
                                                    const Platform& platform, std::int64_t n_ranks,
                                                    const StepAssumptions& assumptions = {},
                                                    const LookupConstants& lookups = {},
                                                    const Platform* links = nullptr);
  DlrmStepModel(DlrmStepModel&&) noexcept;
  DlrmStepModel& operator=(DlrmStepModel&&) noexcept;
  ~DlrmStepModel();

  // Simulates the step under a plan. Error: a plan that does not fit the model or the number of ranks.
  [[nodiscard]] Result<DlrmStep> predict(const ShardingPlan& plan);
  // The step time in microseconds. Infinite if the memory of a GPU or host does not suffice, unless
  // `over_memory` is set.
  [[nodiscard]] double step_us(const ShardingPlan& plan, bool over_memory = false);
  // The step time by which shardings are chosen: the mean over models of lookups that are equally plausible
  // (cost/plausible_lookups.h). Infinite under the same condition as step_us().
  [[nodiscard]] double expected_us(const ShardingPlan& plan, bool over_memory = false);
  // Lower bound for placements of whole tables on equal ranks: the step time if work and vectors were spread
  // evenly.
  [[nodiscard]] double least_step_us();
  // The same bound for expected_us().
  [[nodiscard]] double least_expected_us();
  // Replaces the reuse factors of all tables by those of another batch: [table]. Shardings are priced again.
  void set_reuse(const std::vector<ReuseFactors>& reuse);

  // Sets deviations from the described model. Each call replaces the previous ones.
  void set_what_if(const DlrmWhatIf& what_if);

  // The arguments of create().
  [[nodiscard]] const Dlrm& model() const;
  [[nodiscard]] const DlrmTraining& training() const;
  // True if an empty plan is allowed: popular rows on every rank, the other rows spread by row.
  [[nodiscard]] bool is_hybrid() const;
  [[nodiscard]] std::int64_t n_ranks() const;
  [[nodiscard]] std::int64_t gpus_per_node() const;
  // The Program of all ranks, the same for all shardings.
  [[nodiscard]] const Program& program() const;
  // Costs and timeline of the last predict().
  [[nodiscard]] const Costs& costs() const;
  [[nodiscard]] const Timeline& timeline() const;
  // The share of each source in the time of the last predict().
  [[nodiscard]] Coverage coverage() const;
  // Kernels and exchanges of the slowest rank in order, of the last predict().
  [[nodiscard]] std::vector<ExplainedList> explain() const;
  // GPU memory of one rank that is available for tables, in bytes.
  [[nodiscard]] double table_memory_bytes() const;
  // Lookup cost of one shard of a table.
  [[nodiscard]] const LookupCost& shard_cost(const TableShard& shard);
  // Lookup time of a shard in microseconds, forward and backward, averaged as in expected_us().
  [[nodiscard]] double expected_lookup_us(const TableShard& shard);
  // Bytes of weights and optimizer state of a shard.
  [[nodiscard]] double shard_bytes(const TableShard& shard) const;

 private:
  struct Impl;
  explicit DlrmStepModel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepcast
