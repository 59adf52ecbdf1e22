// Forecasts for a step of post-training by reinforcement learning.
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stepcast/analyze/sensitivity.h"
#include "stepcast/api/detail/open_layout.h"
#include "stepcast/api/detail/session_impl.h"
#include "stepcast/api/detail/session_inputs.h"
#include "stepcast/api/detail/subject_answers.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/report/rl_timeline.h"
#include "stepcast/rollout/rl_config.h"
#include "stepcast/rollout/rl_step.h"
#include "stepcast/workload/framework_rule.h"

namespace stepcast {
namespace {

// The fields of a question that a step of post-training uses.
PredictRlRequest rl_request(const StepQuestion& question) {
  const PredictRequest& step = question.step;
  return {step.job, question.rl, step.platform, step.what_if, step.timeline};
}

}  // namespace

Result<RlForecast> Session::Impl::predict(const PredictRlRequest& request, const std::string& faster) {
  StepAssumptions assumptions;
  STEPCAST_TRY(apply_what_if(request.what_if, assumptions));
  StepAssumptions priced_with = assumptions;
  if (!faster.empty()) STEPCAST_TRY(apply_what_if({&faster, 1}, priced_with));
  STEPCAST_ASSIGN(const Lease priced, lease(request.platform, request.actor.gpus_per_node));
  const TrainingLayout open_layout = [&](const Job& asked, const ResolvedJob& usual) {
    return rule_of(usual.layout).search.plans_post_training
               ? detail::planned_layout(asked, usual, *priced->platform, assumptions)
               : std::nullopt;
  };
  STEPCAST_ASSIGN(RlAnswer answer,
                  rl_step({request.actor, request.rl}, priced->steps.with(priced_with), {}, open_layout));
  answer.forecast.platform = request.platform;
  return std::move(answer.forecast);
}

Result<RlForecast> Session::predict(const PredictRlRequest& request) const {
  STEPCAST_ASSIGN(const std::optional<OutputFile> timeline,
                  detail::output_at(request.timeline, {request.actor.model, request.platform}));
  STEPCAST_ASSIGN(RlForecast forecast, impl_->predict(request, {}));
  if (timeline) STEPCAST_TRY(write_perfetto(*timeline, forecast));
  return forecast;
}

Result<RlReport> Session::sensitivity(const PredictRlRequest& request) const {
  constexpr std::string_view kParts[] = {"gemm", "attention", "memory_bound", "nvlink", "network"};
  RlReport out;
  STEPCAST_ASSIGN(out.forecast, predict(request));
  // The split of GPUs is fixed at the forecast's, so that the sensitivities are those of one split.
  PredictRlRequest spread_so = request;
  const RlSplit& split = out.forecast.split;
  spread_so.rl.generation_gpus = split.generation_gpus;
  spread_so.rl.generation_tensor = split.generation_tensor;
  spread_so.rl.generation_pipeline = split.generation_pipeline;
  const auto step_ms = [&](std::string_view part, double speed) -> Result<double> {
    STEPCAST_ASSIGN(const RlForecast changed,
                    impl_->predict(spread_so, part.empty() ? "" : fmt::format("{}={}", part, speed)));
    return changed.step_s * 1e3;
  };
  STEPCAST_ASSIGN(out.sensitivity, what_if_sensitivity(kParts, step_ms));
  return out;
}

Subject post_training_subject() {
  return {.called = "a step of post-training",
          .plural = "steps of post-training",
          .own_flag = "--rl",
          .question = Question::post_training,
          .is_of = [](const Job& job,
                      const RlSettings& rl) { return !rl.algorithm.empty() || is_rl_config(job); },
          .predict = [](const Session& session, const StepQuestion& question) -> Result<StepAnswer> {
            STEPCAST_ASSIGN(RlForecast forecast, session.predict(rl_request(question)));
            return StepAnswer{RlReport{std::move(forecast), {}}};
          },
          .sensitivity = detail::sensitive<rl_request>};
}

}  // namespace stepcast
