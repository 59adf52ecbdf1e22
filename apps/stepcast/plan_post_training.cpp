// stepcast plan --rl: both policies of a step of post-training.
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/api/stepcast.h"
#include "stepcast/describe/setting_groups.h"
#include "stepcast/report/rl_document.h"
#include "stepcast/rollout/rl_config.h"

#include "plan_options.h"
#include "progress.h"

namespace stepcast::cli {
namespace {

// The degree in a list with a single value.
Status take_degree(const char* flag, const std::vector<std::int64_t>& list, std::optional<std::int64_t>& to) {
  if (list.size() > 1)
    return Error::at("", flag).found("several values").expected("one with --rl, or none to search layouts");
  if (!list.empty()) to = list.front();
  return Ok{};
}

// The job with the settings of its config, except for the layouts, which are searched.
Result<PredictRlRequest> post_training_request(const PlanOptions& options, Words& notes) {
  RlQuestion question;
  STEPCAST_ASSIGN(question.job, job_of(options));
  question.settings = options.rl;
  if (!options.from.empty()) {
    STEPCAST_ASSIGN(ConfigText text, read_config_text(options.from));
    if (options.from.ends_with(".yaml") || options.from.ends_with(".yml"))
      question.job.config = std::move(text);
    else
      question.job.command_line = std::move(text.text);
    STEPCAST_ASSIGN(question, with_rl_config(question, notes));
    JobSettings& s = question.job.settings;
    const std::optional<bool> fp8 = s.fp8;
    (setting_groups::kSearched + setting_groups::kOfSearched + setting_groups::kOfDegrees)
        .each([&](auto member) { (s.*member).reset(); });
    s.fp8 = fp8;
    question.settings.generation_gpus = options.rl.generation_gpus;
    question.settings.generation_tensor = options.rl.generation_tensor;
    question.settings.generation_pipeline = options.rl.generation_pipeline;
  }
  JobSettings& s = question.job.settings;
  const RestrictionWords& space = options.space;
  STEPCAST_TRY(take_degree("--tp", space.tensor, s.tensor));
  STEPCAST_TRY(take_degree("--pp", space.pipeline, s.pipeline));
  STEPCAST_TRY(take_degree("--cp", space.context, s.context));
  STEPCAST_TRY(take_degree("--ep", space.expert, s.expert));
  STEPCAST_TRY(take_degree("--etp", space.expert_tensor, s.expert_tensor));
  STEPCAST_TRY(take_degree("--mbs", space.micro_batch, s.micro_batch_sequences));
  if (!options.n_gpus.empty()) question.job.n_gpus = options.n_gpus.front();
  question.job.gpus_per_node = options.gpus_per_node;
  question.settings.options = options.top;
  return PredictRlRequest{std::move(question.job), std::move(question.settings), options.platforms.front(),
                          options.what_if};
}

}  // namespace

// Searches the layouts of training and generation, over all splits and engines.
Result<int> run_post_training(const PlanOptions& options) {
  if (options.n_gpus.size() > 1 || options.platforms.size() > 1)
    return Error{"--rl plans one number of GPUs on one platform"}.advice("name one of each");
  STEPCAST_ASSIGN(const ReportOutput report, ReportOutput::at(options.report, inputs_of(options)));
  Words notes;
  STEPCAST_ASSIGN(const PredictRlRequest request, post_training_request(options, notes));
  std::optional<ProgressLine> progress{std::in_place, "plan a step of post-training"};
  STEPCAST_ASSIGN(RlForecast forecast, Session{}.predict(request));
  progress.reset();
  forecast.notes.insert(forecast.notes.begin(), notes.begin(), notes.end());
  return report.finish(rl_document(forecast), options.json ? rl_json(forecast) : std::string{});
}

}  // namespace stepcast::cli
