// Predictions of a step of post-training.
#include <utility>

#include "stepcast/api/detail/open_layout.h"
#include "stepcast/api/detail/session_impl.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/rollout/rl_step.h"

namespace stepcast {

Result<RlForecast> Session::predict(const PredictRlRequest& request) const {
  StepAssumptions assumptions;
  STEPCAST_TRY(apply_what_if(request.what_if, assumptions));
  STEPCAST_ASSIGN(std::unique_ptr<PricedPlatform> priced,
                  impl_->take(request.platform, request.actor.gpus_per_node));
  priced->steps.set_assumptions(assumptions);
  const TrainingLayout open_layout = [&](const Job& asked, const ResolvedJob& usual) {
    return usual.layout.software.framework == Framework::megatron
               ? detail::planned_layout(asked, usual, *priced->platform, assumptions)
               : std::nullopt;
  };
  STEPCAST_ASSIGN(RlAnswer answer, rl_step({request.actor, request.rl}, priced->steps, {}, open_layout));
  answer.forecast.platform = request.platform;
  impl_->give_back(request.platform, request.actor.gpus_per_node, std::move(priced));
  return std::move(answer.forecast);
}

}  // namespace stepcast
