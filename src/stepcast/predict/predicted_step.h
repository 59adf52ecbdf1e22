// Everything a forecast of one layout is made of: the step as a Program, its prices, and when every task runs.
//
//   const StepModel steps{platform};
//   STEPCAST_ASSIGN(const PredictedStep step, predict_step(model, layout, steps));
//   step.timeline.end_us()                 // the step, as the engine finds it
//   step.program, step.prices.costs        // for breakdowns, critical paths, timelines
//   step.prices.coverage                   // what it rests on
//   step.summary.step                      // the same step with its band, from the recurrences
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

// Rounds of a pipeline's steady state that a Program leaves out. Instances [begin, end) of a rank class are a round that
// it holds; the same would follow `count` times.
struct LeftOutRounds {
  struct Round {
    std::uint32_t begin = 0, end = 0;
  };
  double count = 0;
  std::vector<Round> of_class;  // [rank class]; empty where nothing is left out
};

struct PredictedStep {
  PricedStep parts;                    // lists, transfers and the placement of the layout
  Program program;                     // one rank class per pipeline stage, with its multiplicity
  std::vector<GroupPlacement> groups;  // [GroupId]
  PricedProgram prices;
  Timeline timeline;  // one rank of every class
  StepPrediction summary;
  LeftOutRounds rounds;
  std::optional<PricedBodies> bodies{};  // what tasks of a short step stand for
};

// Each micro-batch of a Program is a row of tasks: a Timeline of so many on eight stages takes 2 GB. More are an error.
inline constexpr std::uint32_t kMostMicroBatchesWrittenOut = 8192;

// Errors: a layout that does not fit the model or the platform.
[[nodiscard]] Result<PredictedStep> predict_step(const Transformer& model, const Layout& layout,
                                                 const StepModel& steps);
[[nodiscard]] Result<PredictedStep> predict_step(const Transformer& model, const Layout& layout,
                                                 std::span<const StagePool> pools);
// The same with a Program, prices and a Timeline of so many micro-batches; the summary is that of the whole step, which
// `parts` are of. Where no round of them repeats, all are simulated and `rounds` is empty. `as_bodies`: a pass that runs by
// itself is one task.
[[nodiscard]] Result<PredictedStep> predict_short_step(PricedStep parts, const Layout& layout,
                                                       const StepModel& steps, std::uint32_t micro_batches,
                                                       bool as_bodies = true);
// How many to simulate: about short_walk_micro_batches(), `doubled` so often; all where little would be left out.
[[nodiscard]] std::uint32_t short_step_micro_batches(const PipelineShape& shape, int doubled);
// Rounds that a step of `shape` leaves out there.
[[nodiscard]] double rounds_left_out(const PipelineShape& shape, std::uint32_t micro_batches);
// The same with a model of its own.
[[nodiscard]] Result<PredictedStep> predict_step(const Transformer& model, const Layout& layout,
                                                 const Platform& platform,
                                                 const StepAssumptions& assumptions = {});

}  // namespace stepcast
