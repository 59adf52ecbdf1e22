#include "stepcast/predict/predicted_step.h"

#include <utility>

#include <fmt/format.h>

#include "stepcast/predict/pipeline_walk.h"
#include "stepcast/predict/step_program.h"

namespace stepcast {
namespace {

// What a step of `shape` leaves out of one of `all` micro-batches. Passes of a stage are the first instances of its class.
LeftOutRounds left_out(const PipelineShape& shape, std::uint32_t all) {
  LeftOutRounds rounds;
  const PipelineWalk walk = pipeline_walk(shape);
  if (!walk.round || (all - shape.micro_batches) % walk.round->micro_batches != 0) return rounds;
  rounds.count = static_cast<double>((all - shape.micro_batches) / walk.round->micro_batches);
  rounds.of_class.resize(shape.stages);
  for (std::size_t i = 0; i < walk.round->end; ++i) {
    LeftOutRounds::Round& round = rounds.of_class[walk.steps[i].stage];
    ++round.end;
    if (i < walk.round->begin) ++round.begin;
  }
  return rounds;
}

std::vector<double> runs_left_out(const Program& program, const LeftOutRounds& rounds) {
  std::vector<double> runs(program.blocks().size(), 0.0);
  for (std::size_t c = 0; c < rounds.of_class.size(); ++c) {
    const RankClass& ranks = program.rank_classes()[c];
    for (std::uint32_t i = rounds.of_class[c].begin; i < rounds.of_class[c].end; ++i) {
      runs[ranks.instances[i].block.index()] += rounds.count * ranks.multiplicity;
    }
  }
  return runs;
}

Result<PredictedStep> predicted(PricedStep parts, const Layout& layout, StepModel& steps,
                                const PipelineShape& shape, LeftOutRounds rounds) {
  // Each of them is a row of tasks; a Timeline of so many on eight stages takes 2 GB.
  constexpr std::uint32_t kMostMicroBatches = 8192;
  if (shape.micro_batches > kMostMicroBatches) {
    return Error{fmt::format("{} micro-batches per step to lay out one by one", shape.micro_batches)}
        .expected(fmt::format("at most {}", kMostMicroBatches))
        .advice("raise the micro-batch size (--mbs) or the GPUs; timelines and GPipe need every one of them");
  }
  STEPCAST_ASSIGN(Program program, step_program(parts, layout, steps.pricer(), shape.micro_batches));
  std::vector<GroupPlacement> groups = group_placements(program, parts.placement);
  STEPCAST_ASSIGN(PricedProgram prices,
                  price_program(program, steps.pricer(), groups, runs_left_out(program, rounds)));
  STEPCAST_ASSIGN(const Plan plan, Plan::compile(program));
  STEPCAST_ASSIGN(Timeline timeline, plan.simulate(prices.costs));
  StepPrediction summary = steps.predict(parts, layout);
  return PredictedStep{std::move(parts),    std::move(program), std::move(groups), std::move(prices),
                       std::move(timeline), std::move(summary), std::move(rounds)};
}

}  // namespace

Result<PredictedStep> predict_step(const Transformer& model, const Layout& layout, StepModel& steps) {
  STEPCAST_ASSIGN(PricedStep parts, steps.price(model, layout));
  const PipelineShape shape = parts.schedule.shape;
  return predicted(std::move(parts), layout, steps, shape, {});
}

Result<PredictedStep> predict_short_step(const Transformer& model, const Layout& layout, StepModel& steps,
                                         int doubled) {
  STEPCAST_ASSIGN(PricedStep parts, steps.price(model, layout));
  PipelineShape shape = parts.schedule.shape;
  const std::uint32_t all = shape.micro_batches, of_round = round_micro_batches(shape);
  // The shortest walk has one round that repeats; another one before it shows that it does.
  shape.micro_batches = short_walk_micro_batches(shape) + (shape.virtual_stages > 1 ? of_round : 0);
  for (; doubled > 0; --doubled) shape.micro_batches += shape.micro_batches / of_round * of_round;
  LeftOutRounds rounds;
  if (shape.micro_batches <= all / 4 * 3) rounds = left_out(shape, all);
  if (rounds.of_class.empty()) shape.micro_batches = all;
  return predicted(std::move(parts), layout, steps, shape, std::move(rounds));
}

Result<PredictedStep> predict_step(const Transformer& model, const Layout& layout, const Platform& platform,
                                   const StepAssumptions& assumptions) {
  StepModel steps{platform, assumptions};
  return predict_step(model, layout, steps);
}

}  // namespace stepcast
