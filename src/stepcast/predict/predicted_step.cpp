#include "stepcast/predict/predicted_step.h"

#include <utility>

#include "stepcast/predict/step_program.h"

namespace stepcast {

Result<PredictedStep> predict_step(const Transformer& model, const Layout& layout, StepModel& steps) {
  STEPCAST_ASSIGN(PricedStep parts, steps.price(model, layout));
  STEPCAST_ASSIGN(Program program, step_program(parts, layout, steps.pricer()));
  std::vector<GroupPlacement> groups = group_placements(program, parts.placement);
  STEPCAST_ASSIGN(PricedProgram prices, price_program(program, steps.pricer(), groups));
  STEPCAST_ASSIGN(const Plan plan, Plan::compile(program));
  STEPCAST_ASSIGN(Timeline timeline, plan.simulate(prices.costs));
  StepPrediction summary = steps.predict(parts, layout);
  return PredictedStep{std::move(parts),  std::move(program),  std::move(groups),
                       std::move(prices), std::move(timeline), std::move(summary)};
}

Result<PredictedStep> predict_step(const Transformer& model, const Layout& layout, const Platform& platform,
                                   const StepAssumptions& assumptions) {
  StepModel steps{platform, assumptions};
  return predict_step(model, layout, steps);
}

}  // namespace stepcast
