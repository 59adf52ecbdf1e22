#include "stepcast/report/sweep_row.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/units.h"
#include "stepcast/base/version.h"
#include "stepcast/plan/layout_flags.h"

namespace stepcast {
namespace {

using Number = std::optional<double>;

// All columns of both modes.
struct Row {
  std::optional<std::string> error, model, gpu, layout, memory_verdict, megatron_flags;
  std::optional<std::uint64_t> n_gpus;
  Number step_time_ms, step_time_p10_ms, step_time_p90_ms, samples_per_s, tokens_per_s, tokens_per_s_per_gpu,
      tflops_per_gpu, mfu, hfu, computation_ms, exposed_communication_ms, idle_ms, peak_memory_GiB,
      memory_margin_GiB, days, gpu_hours, price, energy_MWh;
  std::optional<std::uint64_t> layouts, layouts_priced, layouts_alike;
  std::vector<std::string> notes;
};

std::string written(const SweepPoint& point, const Row& row) {
  JsonWriter json;
  json.begin_object().field("id", point.id).field("mode", to_string(point.mode));
  json.key("point").begin_object();
  for (const auto& [key, value] : point.settings) {
    json.key(key);
    if (value.is_number()) {
      json.value(value.number());
    } else if (value.is_bool()) {
      json.value(value.truth());
    } else {
      json.value(value.text());
    }
  }
  json.end_object();
  json.field("version", version()).field("error", row.error);
  json.field("model", row.model)
      .field("gpu", row.gpu)
      .field("n_gpus", row.n_gpus)
      .field("layout", row.layout);
  const bool is_plan = point.mode == SweepMode::plan;
  if (is_plan) {
    json.field("layouts", row.layouts)
        .field("layouts_priced", row.layouts_priced)
        .field("layouts_alike", row.layouts_alike);
  }
  json.field("step_time_ms", row.step_time_ms)
      .field("step_time_p10_ms", row.step_time_p10_ms)
      .field("step_time_p90_ms", row.step_time_p90_ms);
  if (!is_plan) json.field("samples_per_s", row.samples_per_s);
  json.field("tokens_per_s", row.tokens_per_s).field("tokens_per_s_per_gpu", row.tokens_per_s_per_gpu);
  if (!is_plan) json.field("tflops_per_gpu", row.tflops_per_gpu);
  json.field("mfu", row.mfu);
  if (!is_plan) json.field("hfu", row.hfu);
  json.field("computation_ms", row.computation_ms)
      .field("exposed_communication_ms", row.exposed_communication_ms)
      .field("idle_ms", row.idle_ms)
      .field("memory_verdict", row.memory_verdict)
      .field("peak_memory_GiB", row.peak_memory_GiB)
      .field("memory_margin_GiB", row.memory_margin_GiB)
      .field("days", row.days)
      .field("gpu_hours", row.gpu_hours)
      .field("price", row.price);
  if (!is_plan) json.field("energy_MWh", row.energy_MWh);
  if (is_plan) json.field("megatron_flags", row.megatron_flags);
  json.key("notes").begin_array();
  for (const std::string& note : row.notes) json.value(note);
  json.end_array();
  json.end_object();
  return std::move(json).text();
}

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
  Row row;
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
  return written(point, row);
}

std::string sweep_row(const SweepPoint& point, const LayoutPlan& plan, const TrainingBudget& budget) {
  const RankedLayout& chosen = plan.ranking.layouts[plan.ranking.chosen];
  Row row;
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
  return written(point, row);
}

std::string sweep_row(const SweepPoint& point, const Error& error) {
  Row row;
  row.error = error.message();
  return written(point, row);
}

}  // namespace stepcast
