// The time of a training step of a recommendation model for any sharding of its tables, without running anything.
//
//   STEPCAST_ASSIGN(DlrmStepModel steps, DlrmStepModel::create(model, training, platform, 8));
//   STEPCAST_ASSIGN(const DlrmStep step, steps.predict(plan));
//   step.time.time, step.ranks[3].lookup_us, step.ranks[3].memory_bytes
//
// The Program is built and priced once; a sharding changes the times of lookups and exchanges alone.
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

// What is not as the description says.
struct DlrmWhatIf {
  double reuse = 1;  // rows that are looked up are looked up so many times as often (AccessPattern::reused)
  double rank_skew = 1;  // lookups of the last rank take so many times as long: its samples have more
  friend bool operator==(const DlrmWhatIf&, const DlrmWhatIf&) = default;
};
// As `--what-if` calls them.
[[nodiscard]] inline std::array<WhatIfFactor, 2> factors_of(DlrmWhatIf& what_if) {
  return {{{"reuse", &what_if.reuse}, {"rank_skew", &what_if.rank_skew}}};
}

class DlrmStepModel {
 public:
  // Transfers go over the links of `links` where it is given, and of `platform` else. Errors: those of the model, a
  // batch smaller than the GPUs, GPUs that the platform cannot hold, a table that is larger than the memory of all GPUs
  // and hosts.
  [[nodiscard]] static Result<DlrmStepModel> create(const Dlrm& model, const DlrmTraining& training,
                                                    const Platform& platform, std::int64_t n_ranks,
                                                    const StepAssumptions& assumptions = {},
                                                    const LookupConstants& lookups = {},
                                                    const Platform* links = nullptr);
  DlrmStepModel(DlrmStepModel&&) noexcept;
  DlrmStepModel& operator=(DlrmStepModel&&) noexcept;
  ~DlrmStepModel();

  // Errors: a plan that does not fit the model or the ranks.
  [[nodiscard]] Result<DlrmStep> predict(const ShardingPlan& plan);
  // The step time alone, infinite where the memory of a GPU or host does not suffice (unless `over_memory` is allowed).
  [[nodiscard]] double step_us(const ShardingPlan& plan, bool over_memory = false);
  // What shardings are chosen by: the mean step over models of lookups that are as plausible as the one that predicts
  // (cost/plausible_lookups.h). Infinite as step_us.
  [[nodiscard]] double expected_us(const ShardingPlan& plan, bool over_memory = false);
  // No placement of whole tables on equal ranks is faster: the step if work and vectors could be spread evenly.
  [[nodiscard]] double least_step_us();
  [[nodiscard]] double least_expected_us();
  // Reuse factors of another batch, [table]; shardings are priced anew with them. As many as tables.
  void set_reuse(const std::vector<ReuseFactors>& reuse);

  // Of the described model, each time.
  void set_what_if(const DlrmWhatIf& what_if);

  [[nodiscard]] const Dlrm& model() const;
  [[nodiscard]] const DlrmTraining& training() const;
  // Without a plan: popular rows on every rank, the others spread by row.
  [[nodiscard]] bool is_hybrid() const;
  [[nodiscard]] std::int64_t n_ranks() const;
  [[nodiscard]] std::int64_t gpus_per_node() const;
  [[nodiscard]] const Program& program() const;
  // Of the last sharding that was predicted.
  [[nodiscard]] const Costs& costs() const;
  [[nodiscard]] const Timeline& timeline() const;
  // Of the last sharding.
  [[nodiscard]] Coverage coverage() const;
  // Kernels and exchanges of the slowest rank in order, of the last sharding.
  [[nodiscard]] std::vector<ExplainedList> explain() const;
  // Memory of one rank that is left for tables.
  [[nodiscard]] double table_memory_bytes() const;
  // Of one shard of a table of the model.
  [[nodiscard]] const LookupCost& shard_cost(const TableShard& shard);
  // The same, forward and backward, as expected_us has it.
  [[nodiscard]] double expected_lookup_us(const TableShard& shard);
  // Of weights and optimizer state.
  [[nodiscard]] double shard_bytes(const TableShard& shard) const;

 private:
  struct Impl;
  explicit DlrmStepModel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepcast
