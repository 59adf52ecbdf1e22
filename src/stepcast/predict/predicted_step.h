// A complete forecast of one layout: the step as a Program, its prices, and when every task runs.
//
//   const StepModel steps{platform};
//   STEPCAST_ASSIGN(const PredictedStep step, predict_step(model, layout, steps));
//   step.timeline.end_us()                 // length of the step, from the simulation
//   step.program, step.prices.costs        // for breakdowns, critical paths, timelines
//   step.prices.coverage                   // share of measured, fitted, analytic and assumed times
//   step.summary.step                      // the same length with its band, from the recurrences
//
// A search over layouts needs only StepModel::predict, which takes microseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "stepcast/base/result.h"
#include "stepcast/platform/group_placement.h"
#include "stepcast/predict/price_program.h"
#include "stepcast/predict/priced_step.h"
#include "stepcast/predict/stage_pools.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/program/program.h"
#include "stepcast/simulate/engine.h"

namespace stepcast {

// Rounds of the steady state of a pipeline that a Program omits. Instances [begin, end) of a rank class are
// one simulated round; `count` equal rounds would follow it.
struct LeftOutRounds {
  struct Round {
    std::uint32_t begin = 0, end = 0;
  };
  double count = 0;
  std::vector<Round> of_class;  // [rank class]; empty if nothing is omitted
};

// The results of predict_step().
struct PredictedStep {
  PricedStep parts;                    // lists, transfers and the placement of the layout
  Program program;                     // one rank class per pipeline stage, with its multiplicity
  std::vector<GroupPlacement> groups;  // [GroupId]
  PricedProgram prices;
  Timeline timeline;  // of one rank of each class
  StepPrediction summary;
  LeftOutRounds rounds;
  std::optional<PricedBodies> bodies{};  // contents of tasks that represent whole passes
};

// Limit of micro-batches in a Program. Each one adds a row of tasks; the Timeline of this number on eight
// stages takes 2 GB.
inline constexpr std::uint32_t kMostMicroBatchesWrittenOut = 8192;

// Simulates every micro-batch. Errors: a layout that does not fit the model or the platform; more than
// kMostMicroBatchesWrittenOut micro-batches.
[[nodiscard]] Result<PredictedStep> predict_step(const Transformer& model, const Layout& layout,
                                                 const StepModel& steps);
[[nodiscard]] Result<PredictedStep> predict_step(const Transformer& model, const Layout& layout,
                                                 std::span<const StagePool> pools);
// Simulates only `micro_batches` of the step: Program, prices and Timeline describe the shorter step, the
// summary describes the whole step of `parts`. If no round of them repeats, all micro-batches are simulated
// and `rounds` is empty. `as_bodies`: a pass that nothing else interacts with becomes one task.
[[nodiscard]] Result<PredictedStep> predict_short_step(PricedStep parts, const Layout& layout,
                                                       const StepModel& steps, std::uint32_t micro_batches,
                                                       bool as_bodies = true);
// Micro-batches to simulate: about short_walk_micro_batches(), doubled `doubled` times; all of them if little
// would be omitted.
[[nodiscard]] std::uint32_t short_step_micro_batches(const PipelineShape& shape, int doubled);
// Number of rounds that a simulation of `micro_batches` omits from a step of `shape`.
[[nodiscard]] double rounds_left_out(const PipelineShape& shape, std::uint32_t micro_batches);
// The same with a StepModel of this platform and these assumptions.
[[nodiscard]] Result<PredictedStep> predict_step(const Transformer& model, const Layout& layout,
                                                 const Platform& platform,
                                                 const StepAssumptions& assumptions = {});

}  // namespace stepcast
