#include "stepcast/predict/predicted_step.h"

#include <utility>

#include <fmt/format.h>

#include "stepcast/predict/pipeline_walk.h"
#include "stepcast/predict/step_program.h"

namespace stepcast {
namespace {

// What a step of `shape` leaves out of one of `all` micro-batches. Passes of a stage are the first instances of its class.
LeftOutRounds left_out(PipelineShape shape, std::uint32_t micro_batches) {
  LeftOutRounds rounds{.count = rounds_left_out(shape, micro_batches), .of_class = {}};
  shape.micro_batches = micro_batches;
  const PipelineWalk walk = pipeline_walk(shape);
  if (!walk.round) return rounds;
  rounds.of_class.resize(shape.stages);
  for (std::size_t i = 0; i < walk.round->end; ++i) {
    LeftOutRounds::Round& round = rounds.of_class[walk.steps[i].stage];
    ++round.end;
    if (i < walk.round->begin) ++round.begin;
  }
  return rounds;
}

Result<PredictedStep> predicted(PricedStep parts, const Layout& layout, StepModel& steps,
                                std::uint32_t micro_batches, LeftOutRounds rounds) {
  // Each of them is a row of tasks; a Timeline of so many on eight stages takes 2 GB.
  constexpr std::uint32_t kMostMicroBatches = 8192;
  if (micro_batches > kMostMicroBatches) {
    return Error{fmt::format("{} micro-batches per step to lay out one by one", micro_batches)}
        .expected(fmt::format("at most {}", kMostMicroBatches))
        .advice("raise the micro-batch size (--mbs) or the GPUs; timelines and GPipe need every one of them");
  }
  STEPCAST_ASSIGN(Program program, step_program(parts, layout, steps.pricer(), micro_batches));
  std::vector<GroupPlacement> groups = group_placements(program, parts.placement);
  STEPCAST_ASSIGN(PricedProgram prices, price_program(program, steps.pricer(), groups));
  STEPCAST_ASSIGN(const Plan plan, Plan::compile(program));
  STEPCAST_ASSIGN(Timeline timeline, plan.simulate(prices.costs));
  StepPrediction summary = steps.predict(parts, layout);
  return PredictedStep{std::move(parts),    std::move(program), std::move(groups), std::move(prices),
                       std::move(timeline), std::move(summary), std::move(rounds)};
}

}  // namespace

Result<PredictedStep> predict_step(const Transformer& model, const Layout& layout, StepModel& steps) {
  STEPCAST_ASSIGN(PricedStep parts, steps.price(model, layout));
  const std::uint32_t all = parts.schedule.shape.micro_batches;
  return predicted(std::move(parts), layout, steps, all, {});
}

Result<PredictedStep> predict_short_step(PricedStep parts, const Layout& layout, StepModel& steps,
                                         std::uint32_t micro_batches) {
  const std::uint32_t all = parts.schedule.shape.micro_batches;
  LeftOutRounds rounds;
  if (micro_batches < all) rounds = left_out(parts.schedule.shape, micro_batches);
  if (rounds.of_class.empty()) micro_batches = all;
  return predicted(std::move(parts), layout, steps, micro_batches, std::move(rounds));
}

std::uint32_t short_step_micro_batches(const PipelineShape& shape, int doubled) {
  const std::uint32_t all = shape.micro_batches, of_round = round_micro_batches(shape);
  // The shortest walk has one round that repeats; another one before it shows that it does.
  std::uint32_t few = short_walk_micro_batches(shape) + (shape.virtual_stages > 1 ? of_round : 0);
  for (; doubled > 0; --doubled) few += few / of_round * of_round;
  return few <= all / 4 * 3 ? few : all;
}

double rounds_left_out(const PipelineShape& shape, std::uint32_t micro_batches) {
  return static_cast<double>((shape.micro_batches - micro_batches) / round_micro_batches(shape));
}

Result<PredictedStep> predict_step(const Transformer& model, const Layout& layout, const Platform& platform,
                                   const StepAssumptions& assumptions) {
  StepModel steps{platform, assumptions};
  return predict_step(model, layout, steps);
}

}  // namespace stepcast
