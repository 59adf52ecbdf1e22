#include "stepcast/report/sweep_row.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/units.h"
#include "stepcast/base/version.h"
#include "stepcast/plan/layout_flags.h"
#include "stepcast/report/fields/schema_fields.h"
#include "stepcast/report/fields/write_fields.h"
#include "stepcast/report/rl_document.h"

namespace stepcast {
namespace detail {

// All columns of both modes.
struct SweepRow {
  std::string id;
  SweepMode mode = SweepMode::predict;
  std::vector<std::pair<std::string, JsonValue>> point;
  std::optional<std::string> error, model, gpu, layout, memory_verdict, megatron_flags;
  std::optional<std::uint64_t> n_gpus, layouts, layouts_priced, layouts_alike;
  std::optional<double> step_time_ms, step_time_p10_ms, step_time_p90_ms, samples_per_s, tokens_per_s,
      tokens_per_s_per_gpu, tflops_per_gpu, mfu, hfu, computation_ms, exposed_communication_ms, idle_ms,
      peak_memory_GiB, memory_margin_GiB, days, gpu_hours, price, energy_MWh;
  std::vector<std::string> notes;
};

constexpr AnswerHead answer_head(const SweepRow*) {
  return {"stepcast.sweep_row/1", "a row of stepcast sweep", AnswerHead::Numbers::exact, true};
}

void fields(auto& a, Is<SweepRow> auto& r) {
  const bool is_plan = r.mode == SweepMode::plan;
  a("id", r.id, "hash of mode, settings and content of named files");
  a("mode", r.mode);
  a("point", r.point, "the settings: keys with underscores; what is off or empty is not there");
  a("version", version(), "of stepcast");
  a("error", r.error, "why the point cannot be run; everything behind it is null then");
  a("model", r.model);
  a("gpu", r.gpu);
  a("n_gpus", r.n_gpus);
  a("layout", r.layout, "degrees above 1; of a plan the layout that is chosen");
  a("layouts", given_if(is_plan, r.layouts), "plan: of the space");
  a("layouts_priced", given_if(is_plan, r.layouts_priced), "plan: that fit");
  a("layouts_alike", given_if(is_plan, r.layouts_alike), "plan: that cannot be told from the fastest");
  a("step_time_ms", r.step_time_ms);
  a("step_time_p10_ms", r.step_time_p10_ms);
  a("step_time_p90_ms", r.step_time_p90_ms);
  a("samples_per_s", given_if(!is_plan, r.samples_per_s), "predict");
  a("tokens_per_s", r.tokens_per_s);
  a("tokens_per_s_per_gpu", r.tokens_per_s_per_gpu);
  a("tflops_per_gpu", given_if(!is_plan, r.tflops_per_gpu), "predict: of the model");
  a("mfu", r.mfu, "fraction");
  a("hfu", given_if(!is_plan, r.hfu), "predict: fraction");
  a("computation_ms", r.computation_ms, "of the critical rank or stage");
  a("exposed_communication_ms", r.exposed_communication_ms);
  a("idle_ms", r.idle_ms);
  a("memory_verdict", r.memory_verdict, "fits, tight, does not fit");
  a("peak_memory_GiB", r.peak_memory_GiB);
  a("memory_margin_GiB", r.memory_margin_GiB);
  a("days", r.days, "of a training, where one is asked for");
  a("gpu_hours", r.gpu_hours);
  a("price", r.price);
  a("energy_MWh", given_if(!is_plan, r.energy_MWh), "predict");
  a("megatron_flags", given_if(is_plan, r.megatron_flags), "plan: null where Megatron-LM has none");
  a("notes", r.notes);
}

}  // namespace detail

namespace {

detail::SweepRow row_of(const SweepPoint& point) {
  detail::SweepRow row;
  row.id = point.id;
  row.mode = point.mode;
  row.point.assign(point.settings.begin(), point.settings.end());
  return row;
}

std::string written(const detail::SweepRow& row) { return answer_json(row, JsonWriter::Layout::compact); }

// "tensor_parallel 8, pipeline_parallel 4": the degrees above 1.
std::string layout_words(const Forecast& forecast) {
  std::string text;
  for (const Setting& setting : forecast.layout) {
    if (!setting.name.ends_with("_parallel")) continue;
    const double* degree = std::get_if<double>(&setting.value);
    if (degree == nullptr || *degree <= 1) continue;
    text += text.empty() ? "" : ", ";
    text += setting.name.substr(0, setting.name.size() - std::string_view{"_parallel"}.size()) + " ";
    append_json(text, *degree);
  }
  return text;
}

}  // namespace

std::string sweep_row(const SweepPoint& point, const Forecast& forecast) {
  detail::SweepRow row = row_of(point);
  row.model = forecast.model;
  row.gpu = forecast.gpu;
  row.n_gpus = forecast.n_gpus;
  row.layout = layout_words(forecast);
  row.step_time_ms = forecast.step_time_ms;
  row.step_time_p10_ms = forecast.step_time_p10_ms;
  row.step_time_p90_ms = forecast.step_time_p90_ms;
  const ForecastThroughput& t = forecast.throughput;
  row.samples_per_s = t.samples_per_s;
  row.tokens_per_s = t.tokens_per_s;
  row.tokens_per_s_per_gpu = t.tokens_per_s_per_gpu;
  row.tflops_per_gpu = t.tflops_per_gpu;
  row.mfu = t.mfu;
  row.hfu = t.hfu;
  if (!forecast.classes.empty()) {
    const ForecastClass& critical = forecast.critical();
    row.computation_ms = critical.computation_ms;
    row.exposed_communication_ms = critical.exposed_comm_ms;
    row.idle_ms = sum_ms(critical.idle_ms);
  }
  if (forecast.memory) {
    row.memory_verdict = forecast.memory->verdict;
    row.peak_memory_GiB = forecast.memory->peak_memory_GiB;
    row.memory_margin_GiB = forecast.memory->margin_GiB;
  }
  if (forecast.training) {
    constexpr double kSecondsPerDay = 86400;
    row.days = forecast.training->time_s / kSecondsPerDay;
    row.gpu_hours = forecast.training->gpu_hours;
    row.price = forecast.training->price;
    row.energy_MWh = forecast.training->energy_MWh;
  }
  row.notes = forecast.notes;
  return written(row);
}

std::string sweep_row(const SweepPoint& point, const RlForecast& f) {
  constexpr double kMsPerSecond = 1e3;
  detail::SweepRow row = row_of(point);
  row.model = f.model;
  row.n_gpus = static_cast<std::uint64_t>(f.n_gpus);
  row.layout = rl_split_text(f.split) + "; training " + f.split.training_layout;
  row.step_time_ms = f.step_s * kMsPerSecond;
  row.step_time_p10_ms = f.p10_s * kMsPerSecond;
  row.step_time_p90_ms = f.p90_s * kMsPerSecond;
  row.samples_per_s = f.trained_sequences / f.step_s;
  row.tokens_per_s_per_gpu = f.tokens_per_s_per_gpu;
  row.tokens_per_s = f.tokens_per_s_per_gpu * static_cast<double>(f.n_gpus);
  row.memory_verdict = f.memory.training_fits ? "fits" : "does not fit";
  row.peak_memory_GiB = f.memory.training_peak_GiB;
  row.memory_margin_GiB = f.memory.available_GiB - f.memory.training_peak_GiB;
  row.notes = f.notes;
  return written(row);
}

std::string sweep_row(const SweepPoint& point, const LayoutPlan& plan, const TrainingBudget& budget) {
  const RankedLayout& chosen = plan.ranking.layouts[plan.ranking.chosen];
  detail::SweepRow row = row_of(point);
  row.model = plan.prototypes.model().name;
  row.n_gpus = static_cast<std::uint64_t>(plan.space.n_gpus);
  row.layout = to_string(chosen.point);
  row.layouts = plan.space.size();
  row.layouts_priced = plan.found.priced.size();
  row.layouts_alike = plan.ranking.n_alike;
  const StepPrediction& step = chosen.step;
  row.step_time_ms = chosen.step_ms();
  row.step_time_p10_ms = step.step.p10.value() * 1e-3;
  row.step_time_p90_ms = step.step.p90.value() * 1e-3;
  row.tokens_per_s = step.tokens_per_second();
  row.tokens_per_s_per_gpu = step.tokens_per_second() / static_cast<double>(step.n_gpus);
  row.mfu = step.model_flops_utilization();
  row.computation_ms = step.shares.computation_us() * 1e-3;
  row.exposed_communication_ms = step.shares.exposed_communication_us() * 1e-3;
  row.idle_ms = (step.shares.bubble_us + step.shares.host_us) * 1e-3;
  row.memory_verdict = std::string{to_string(chosen.memory.verdict)};
  row.peak_memory_GiB = chosen.memory.peak().value() / kGiB;
  row.memory_margin_GiB = chosen.memory.margin().value() / kGiB;
  if (budget.tokens) {
    constexpr double kMsPerDay = 86400e3, kHoursPerDay = 24;
    row.days = *budget.tokens / step.tokens_per_step * chosen.step_ms() / kMsPerDay;
    row.gpu_hours = *row.days * kHoursPerDay * static_cast<double>(step.n_gpus);
    if (budget.price_per_gpu_hour) row.price = *row.gpu_hours * *budget.price_per_gpu_hour;
  }
  row.megatron_flags = megatron_text(chosen.point, chosen.layout, plan.prototypes);
  row.notes = plan.notes;
  return written(row);
}

std::string sweep_row(const SweepPoint& point, const Error& error) {
  detail::SweepRow row = row_of(point);
  row.error = error.message();
  return written(row);
}

constexpr AnswerHead answer_head(const SweepStatus*) {
  return {"stepcast.sweep_status/1", "stepcast sweep --status --json"};
}

void fields(auto& a, Is<SweepStatus> auto& s) {
  a("spec", s.spec, "hash of its points");
  a("n_points", s.n_points);
  a("n_done", s.n_done, "with a row");
  a("n_failed", s.n_failed, "of them: cannot be run");
  a("n_does_not_fit", s.n_does_not_fit, "of them: too large for the memory");
}

std::string sweep_status_json(const SweepStatus& status) { return answer_json(status); }

std::string sweep_status_schema() { return answer_schema<SweepStatus>(); }

std::string sweep_row_schema() { return answer_schema<detail::SweepRow>(); }

}  // namespace stepcast
