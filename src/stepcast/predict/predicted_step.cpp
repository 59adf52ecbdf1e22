#include "stepcast/predict/predicted_step.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/predict/detail/step_tasks.h"
#include "stepcast/predict/pipeline_walk.h"
#include "stepcast/predict/step_program.h"

namespace stepcast {
namespace {

// The rounds that a simulation of `micro_batches` omits from a step of `shape`. The passes of a stage are the
// first instances of its rank class, so indices of passes are indices of instances.
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

// Whether a task is a transfer between stages or of a tied embedding. These take equally long on all stages
// that take part.
bool is_of_several_stages(const Program& program, const Block& block, std::size_t task) {
  const std::size_t lane = block.lane_codes()[task];
  if (lane >= detail::kSendForward && lane != detail::kHost) return true;
  const WorkId id = block.tasks()[task].work;
  const CollectiveWork* work = id.valid() ? std::get_if<CollectiveWork>(&program.works.of(id)) : nullptr;
  return work != nullptr && work->group.valid() &&
         program.groups()[work->group.index()].label == to_string(GroupKind::embedding);
}

// Prices every block with the pool of its stage. Transfers between pools take the time of the slower one.
Result<PricedProgram> price_pools(const Program& program, std::span<const PricedStep> parts,
                                  std::span<const StagePool> pools, std::span<StepWorker> workers) {
  std::vector<std::size_t> pool_of_block(program.blocks().size(), 0);
  for (std::size_t s = 0; s < program.rank_classes().size(); ++s) {
    for (const BlockInstance& instance : program.rank_classes()[s].instances)
      pool_of_block[instance.block.index()] = pool_of_stage(pools, static_cast<std::uint32_t>(s));
  }
  std::optional<PricedProgram> all;
  for (std::size_t p = 0; p < pools.size(); ++p) {
    const std::vector<GroupPlacement> groups = group_placements(program, parts[p].placement);
    STEPCAST_ASSIGN(PricedProgram priced, price_program(program, workers[p].pricer(), groups));
    if (!all) {
      all = std::move(priced);
      continue;
    }
    for (std::size_t b = 0; b < pool_of_block.size(); ++b) {
      const std::span<double> to = all->costs.duration_us(BlockId{b});
      const std::span<const double> from = priced.costs.duration_us(BlockId{b});
      for (std::size_t t = 0; t < to.size(); ++t) {
        if (is_of_several_stages(program, program.blocks()[b], t))
          to[t] = std::max(to[t], from[t]);
        else if (pool_of_block[b] == p)
          to[t] = from[t];
      }
    }
  }
  return std::move(*all);
}

// Builds, prices and simulates the Program of a step. `parts` are the prices of each pool; an empty `rounds`
// means that no micro-batch is omitted.
Result<PredictedStep> predicted(std::vector<PricedStep> parts, const Layout& layout,
                                std::span<const StagePool> pools, std::uint32_t micro_batches,
                                LeftOutRounds rounds, bool as_bodies) {
  if (micro_batches > kMostMicroBatchesWrittenOut) {
    return Error{fmt::format("{} micro-batches per step to simulate one by one", micro_batches)}
        .expected(fmt::format("at most {}", kMostMicroBatchesWrittenOut))
        .advice("raise the micro-batch size (--mbs) or the GPUs; timelines and GPipe need every micro-batch");
  }
  std::vector<StepWorker> workers;
  for (std::size_t p = 0; p < pools.size(); ++p) workers.push_back(pools[p].steps.worker(parts[p]));
  std::vector<StagesOfStep> stages;
  for (std::size_t p = 0; p < pools.size(); ++p)
    stages.push_back({&parts[p], &workers[p].pricer(), pools[p].end_stage});
  TaskBodies bodies;
  STEPCAST_ASSIGN(Program program,
                  step_program(stages, layout, micro_batches, as_bodies ? &bodies : nullptr));
  std::vector<GroupPlacement> groups = group_placements(program, parts.front().placement);
  STEPCAST_ASSIGN(PricedProgram prices, price_pools(program, parts, pools, workers));
  std::optional<PricedBodies> priced_bodies;
  if (bodies.size() > 0) {
    STEPCAST_ASSIGN(priced_bodies,
                    price_bodies(std::move(bodies), program, workers.front().pricer(), prices));
  }
  // Returns the workers to their models before the prediction borrows them again.
  workers.clear();
  STEPCAST_ASSIGN(const Plan plan, Plan::compile(program));
  STEPCAST_ASSIGN(Timeline timeline, plan.simulate(prices.costs));
  StepPrediction summary = predict_on_pools(parts, layout, pools);
  return PredictedStep{std::move(parts.front()), std::move(program),      std::move(groups),
                       std::move(prices),        std::move(timeline),     std::move(summary),
                       std::move(rounds),        std::move(priced_bodies)};
}

}  // namespace

Result<PredictedStep> predict_step(const Transformer& model, const Layout& layout, const StepModel& steps) {
  const std::array whole{StagePool{static_cast<std::uint32_t>(layout.degrees.pipeline), steps}};
  return predict_step(model, layout, whole);
}

Result<PredictedStep> predict_step(const Transformer& model, const Layout& layout,
                                   std::span<const StagePool> pools) {
  STEPCAST_ASSIGN(std::vector<PricedStep> parts, price_on_pools(model, layout, pools));
  const std::uint32_t all = parts.front().schedule.shape.micro_batches;
  return predicted(std::move(parts), layout, pools, all, {}, false);
}

Result<PredictedStep> predict_short_step(PricedStep parts, const Layout& layout, const StepModel& steps,
                                         std::uint32_t micro_batches, bool as_bodies) {
  const std::uint32_t all = parts.schedule.shape.micro_batches;
  LeftOutRounds rounds;
  if (micro_batches < all) rounds = left_out(parts.schedule.shape, micro_batches);
  if (rounds.of_class.empty()) micro_batches = all;
  const std::array whole{StagePool{static_cast<std::uint32_t>(layout.degrees.pipeline), steps}};
  std::vector<PricedStep> of_whole;
  of_whole.push_back(std::move(parts));
  return predicted(std::move(of_whole), layout, whole, micro_batches, std::move(rounds), as_bodies);
}

std::uint32_t short_step_micro_batches(const PipelineShape& shape, int doubled) {
  const std::uint32_t all = shape.micro_batches, of_round = round_micro_batches(shape);
  // The shortest walk contains one round that repeats. An additional round before it shows that it does.
  std::uint32_t few = short_walk_micro_batches(shape) + (shape.virtual_stages > 1 ? of_round : 0);
  for (; doubled > 0; --doubled) few += few / of_round * of_round;
  return few <= all / 4 * 3 ? few : all;
}

double rounds_left_out(const PipelineShape& shape, std::uint32_t micro_batches) {
  const std::uint32_t whole_rounds = (shape.micro_batches - micro_batches) / round_micro_batches(shape);
  return whole_rounds;
}

Result<PredictedStep> predict_step(const Transformer& model, const Layout& layout, const Platform& platform,
                                   const StepAssumptions& assumptions) {
  const StepModel steps{platform, assumptions};
  return predict_step(model, layout, steps);
}

}  // namespace stepcast
