// Forecasts that are anchored on measured steps: reading the measurements, correcting the model with them,
// and the text that explains the correction. A measurement is a log, a folder of traces, or a description of
// a run with its milliseconds.
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stepcast/analyze/measured_check.h"
#include "stepcast/api/detail/session_impl.h"
#include "stepcast/base/archive.h"
#include "stepcast/base/words.h"
#include "stepcast/formats/layout_choice.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/logs/logged_run.h"
#include "stepcast/plan/nearby_layouts.h"
#include "stepcast/predict/anchor.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/sweep/measured_words.h"
#include "stepcast/trace/readers.h"

namespace stepcast {
namespace {

// The error for a measured run of several GPUs without its layout.
Error without_layout(const std::string& what) {
  return Error::at("", "--measured", fmt::format("the layout of `{}` is unknown", what.substr(0, 80)))
      .advice("give --tp, --pp and --zero-stage (0: no sharding) with it");
}

// The median step of a log. The log may describe its job completely; if not, the request is used to complete it.
Result<MeasuredTime> step_of_log(const std::string& file, const Job& asked) {
  STEPCAST_ASSIGN(LoggedRun run, read_logged_run(file));
  if (!run.resolved) {
    STEPCAST_ASSIGN(run, read_logged_run(file, asked));
  }
  if (!run.resolved) return Error{run.why_no_job};
  if (!run.times.why_no_time.empty()) return Error::at(file, "", run.times.why_no_time);
  if (leaves_layout_open(run.job->job) && run.resolved->layout.world_size() > 1) return without_layout(file);
  return MeasuredTime{run.resolved->model, run.resolved->layout, run.times.median_ms};
}

// Whether `place` is a folder, an archive or a file of traces.
bool holds_traces(const std::string& place) {
  std::error_code ignored;
  if (std::filesystem::is_directory(place, ignored) || is_archive(place)) return true;
  if (!std::filesystem::is_regular_file(place, ignored)) return false;
  const Result<TraceFormat> format = detect_trace_format(place);
  return format && *format != TraceFormat::other_json && *format != TraceFormat::unknown;
}
// The median recorded step. Traces do not describe a job, so the step is attributed to the requested job.
Result<MeasuredTime> step_of_traces(const std::string& place, const ResolvedJob& laid_out) {
  STEPCAST_ASSIGN(const Replayed replayed, Session{}.replay({.places = {place}}));
  if (!(replayed.measured.step_time_ms > 0))
    return Error::at(place, "", "these traces have no measured step")
        .advice("give its step time in milliseconds");
  return MeasuredTime{laid_out.model, laid_out.layout, replayed.measured.step_time_ms};
}

// A step described as text, "gpus=64 tp=8=4120": layout and milliseconds, with `asked` for the rest.
Result<MeasuredTime> step_of_words(const std::string& text, const Job& asked, const ResolvedJob& laid_out) {
  STEPCAST_ASSIGN(const SaidStep said, parse_measured_words(text, asked));
  // The text has only a time, so it belongs to the requested job with its final layout.
  if (said.is_asked) return MeasuredTime{laid_out.model, laid_out.layout, said.step_time_ms};
  STEPCAST_ASSIGN(const ResolvedJob job, resolve(said.job));
  if (leaves_layout_open(said.job) && job.layout.world_size() > 1) return without_layout(text);
  return MeasuredTime{job.model, job.layout, said.step_time_ms};
}

// A sentence with the defaults that were chosen for the requested job, because the measured run may have used
// others. Empty if there are none.
std::string not_said(const Job& asked, const Layout& chosen) {
  std::vector<std::string> taken;
  const bool in_a_file = asked.command_line || asked.torchtitan || asked.deepspeed || asked.config;
  if (!asked.settings.global_batch_sequences && !in_a_file)
    taken.push_back(fmt::format("a global batch of {}", chosen.batch.global_batch_sequences));
  if (leaves_layout_open(asked) && chosen.world_size() > 1) taken.emplace_back("the fastest layout");
  if (taken.empty()) return {};
  return fmt::format(" Assumed, because not given: {}.", join(taken, " and "));
}

}  // namespace

Result<detail::OnMeasured> detail::anchor_on_measured(const PredictRequest& request, const ResolvedJob& job,
                                                      const StepModel& machine, StepAssumptions& asked) {
  std::vector<MeasuredTime> steps;
  if (request.measured_steps != nullptr) steps = request.measured_steps->steps;
  for (const std::string& text : request.measured) {
    std::error_code ignored;
    Result<MeasuredTime> step = holds_traces(text) ? step_of_traces(text, job)
                                : std::filesystem::is_regular_file(text, ignored)
                                    ? step_of_log(text, request.job)
                                    : step_of_words(text, request.job, job);
    if (!step) return std::move(step).error();
    steps.push_back(std::move(*step));
  }
  if (steps.empty()) return OnMeasured{};
  const StepModel question = machine.with(asked);
  OnMeasured result;
  // A measurement that cannot be a step (its explanation is another unit, such as a time per micro-batch) is
  // dropped with a note. The first one of the requested job itself gives `result.check`.
  for (auto step = steps.begin(); step != steps.end();) {
    const bool is_asked = step->model == job.model && step->layout == job.layout;
    STEPCAST_ASSIGN(MeasuredCheck one,
                    check_measured(question, step->model, step->layout, step->step_time_ms));
    const bool is_no_step = !one.causes.empty() && one.causes.front().is_other_unit;
    if (is_no_step)
      result.notes.push_back(fmt::format("a measured step of {} ms is not used: {}",
                                         table_number(step->step_time_ms, 1), one.causes.front().what));
    if (is_asked && !result.check) {
      one.sentence += not_said(request.job, job.layout);
      result.check = std::move(one);
    }
    step = is_no_step ? steps.erase(step) : step + 1;
  }
  if (steps.empty()) return result;
  // The anchor is fitted to all measurements; the factors reported are those at the requested job.
  STEPCAST_ASSIGN(const Anchor anchor, Anchor::of(machine, steps));
  STEPCAST_ASSIGN(const StepPrediction before, question.predict(job.model, job.layout));
  const AnchoredStep said = anchor.at(traits_of(job.model, job.layout, before));
  STEPCAST_ASSIGN(asked, anchor.assumptions(question, job.model, job.layout));
  ForecastAnchor anchored{.step_time_ms = before.step.time.value() * 1e-3,
                          .step_time_p10_ms = before.step.p10.value() * 1e-3,
                          .step_time_p90_ms = before.step.p90.value() * 1e-3,
                          .factor = said.factor(),
                          .compute_factor = std::exp(said.compute),
                          .communication_factor = std::exp(said.communication),
                          .host_factor = std::exp(said.host),
                          .alike_factor = std::exp(said.alike),
                          .measured = {}};
  const std::int64_t in_node = machine.platform().node.gpus_per_node;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const MeasuredTime& step = steps[i];
    anchored.measured.push_back({.layout = fmt::format("{} GPUs, {}, {} sequences", step.layout.world_size(),
                                                       to_string(point_of(step.layout, in_node)),
                                                       step.layout.batch.global_batch_sequences),
                                 .measured_ms = step.step_time_ms,
                                 .forecast_ms = step.step_time_ms / std::exp(anchor.errors()[i]),
                                 .own_factor = std::exp(anchor.left(i))});
  }
  result.anchor = std::move(anchored);
  return result;
}

// The text of a forecast's note: "anchored on a measured step (64 GPUs, ...: 4,120.0 ms, forecast 3,870.0): ...".
std::string detail::anchor_text(const ForecastAnchor& anchor) {
  const ForecastMeasured& first = anchor.measured.front();
  std::string text = anchor.measured.size() == 1
                         ? std::string{"anchored on a measured step ("}
                         : fmt::format("anchored on {} measured steps, the first (", anchor.measured.size());
  text += fmt::format("{}: {} ms, forecast {}): ", first.layout, table_number(first.measured_ms, 1),
                      table_number(first.forecast_ms, 1));
  std::vector<std::string> parts;
  // Factors closer to 1 are not listed.
  constexpr double kShown = 0.0005;
  for (const auto& [what, factor] : {std::pair{"computation", anchor.compute_factor},
                                     {"communication", anchor.communication_factor},
                                     {"host", anchor.host_factor},
                                     {"steps like this", anchor.alike_factor}})
    if (std::abs(factor - 1) >= kShown) parts.push_back(fmt::format("{} x{:.3f}", what, factor));
  text += parts.empty() ? "only the band changes" : join(parts, ", ");
  if (anchor.measured.size() == 1)
    text += fmt::format("; {:.1f} % of it applies to that run only", 100 * std::abs(first.own_factor - 1));
  return text + fmt::format("; without it {} ms (p10 {}, p90 {})", table_number(anchor.step_time_ms, 1),
                            table_number(anchor.step_time_p10_ms, 1),
                            table_number(anchor.step_time_p90_ms, 1));
}

}  // namespace stepcast
