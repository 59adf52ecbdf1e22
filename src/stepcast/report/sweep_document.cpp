// The row of a point is written by sweep_row(), once per kind of question, through the list of members of
// SweepRow. The summary and the page read such rows again as JSON: rows come from files of all shards.
#include "stepcast/report/sweep_document.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/json_value.h"
#include "stepcast/base/json_writer.h"
#include "stepcast/base/one_line.h"
#include "stepcast/base/units.h"
#include "stepcast/base/version.h"
#include "stepcast/plan/layout_flags.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/fields/answer_fields.h"
#include "stepcast/report/fields/field_table.h"
#include "stepcast/report/rl_document.h"
#include "stepcast/workload/memory.h"

namespace stepcast {
namespace detail {

// The values of a row, for both modes. Values without a meaning in a mode have no key there (given_if()).
struct SweepRow {
  std::string id;
  SweepMode mode = SweepMode::predict;
  std::vector<std::pair<std::string, JsonValue>> point;
  std::optional<std::string> error, model, gpu, layout, memory_verdict, megatron_flags;
  std::optional<std::uint64_t> n_gpus, layouts, layouts_priced, layouts_alike;
  std::optional<double> step_time_ms, step_time_p10_ms, step_time_p90_ms, promised_step_time_ms,
      samples_per_s, tokens_per_s, tokens_per_s_per_gpu, tflops_per_gpu, mfu, hfu, computation_ms,
      exposed_communication_ms, idle_ms, peak_memory_GiB, memory_margin_GiB, days, gpu_hours, price,
      energy_MWh;
  std::vector<std::string> notes;
};

constexpr AnswerHead answer_head(const SweepRow*) {
  return {"stepcast.sweep_row/1", "a row of stepcast sweep", AnswerHead::Numbers::exact, true};
}

// The order of calls is the order of the keys. Headings are those of the table on the page.
void fields(auto& a, Is<SweepRow> auto& r) {
  const bool is_plan = r.mode == SweepMode::plan;
  a("id", r.id, "hash of mode, settings and contents of the files they name");
  a("mode", r.mode);
  a("point", r.point,
    "settings of the point, keys with underscores; options that are off or empty are omitted");
  a("version", version(), "version of stepcast");
  a("error", r.error, "why the point cannot run; the fields below are then null");
  a("model", r.model);
  a("gpu", r.gpu);
  a("n_gpus", r.n_gpus);
  a("layout", r.layout, "parallel degrees above 1; with plan, those of the chosen layout");
  a("layouts", given_if(is_plan, r.layouts), "plan: number of layouts in the search space");
  a("layouts_priced", given_if(is_plan, r.layouts_priced),
    "plan: number of layouts that fit and have a forecast");
  a("layouts_alike", given_if(is_plan, r.layouts_alike),
    "plan: number of layouts tied with the fastest within forecast error");
  a("step_time_ms", r.step_time_ms, "", {"step ms", 1});
  a("step_time_p10_ms", r.step_time_p10_ms, "", {"p10 ms", 1});
  a("step_time_p90_ms", r.step_time_p90_ms, "", {"p90 ms", 1});
  a("promised_step_time_ms", r.promised_step_time_ms,
    "expected step time in ms: the forecast, with experts in a searched layout times a factor. Days and "
    "price use it.");
  a("samples_per_s", given_if(!is_plan, r.samples_per_s), "predict: samples per second on all GPUs");
  a("tokens_per_s", r.tokens_per_s);
  a("tokens_per_s_per_gpu", r.tokens_per_s_per_gpu, "", {"tokens/s per GPU"});
  a("tflops_per_gpu", given_if(!is_plan, r.tflops_per_gpu),
    "predict: model FLOPs per second and GPU, in TFLOP/s");
  a("mfu", r.mfu, "fraction", {"MFU %", 1, 100});
  a("hfu", given_if(!is_plan, r.hfu), "predict: fraction");
  a("computation_ms", r.computation_ms, "computation time of the critical rank or stage, in ms");
  a("exposed_communication_ms", r.exposed_communication_ms, "", {"exposed communication ms", 1});
  a("idle_ms", r.idle_ms);
  a("memory_verdict", r.memory_verdict, "fits, tight, does not fit");
  a("peak_memory_GiB", r.peak_memory_GiB, "", {"peak GiB", 1});
  a("memory_margin_GiB", r.memory_margin_GiB);
  a("days", r.days, "days of the whole training, if you asked for one", TableColumn::amount("days", 1));
  a("gpu_hours", r.gpu_hours);
  a("price", r.price, "", TableColumn::amount("price", 0));
  a("energy_MWh", r.energy_MWh);
  a("megatron_flags", given_if(is_plan, r.megatron_flags),
    "plan: Megatron-LM flags of the layout; null: it has none");
  a("notes", r.notes);
}

}  // namespace detail

namespace {

// A setting as text, without quotes.
std::string value_text(const JsonValue& value) {
  return value.is_text() ? value.text() : compact_json(value);
}

// The settings of a point in words: "tp 8, model llama-3-70b".
std::string point_words(const SweepPoint& point) {
  std::string text;
  for (const auto& [key, value] : point.settings) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", key);
    if (!value.is_bool()) text += " " + value_text(value);
  }
  return text;
}

// A text or a number in a row; empty if it is missing or null.
std::string row_text(const JsonValue& row, std::string_view key) {
  const JsonValue* value = row.find(key);
  return value != nullptr && value->is_text() ? value->text() : std::string{};
}

std::optional<double> row_number(const JsonValue& row, std::string_view key) {
  const JsonValue* value = row.find(key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->number();
}

// A point with its row, parsed.
struct DonePoint {
  const SweepPoint* point = nullptr;
  JsonValue row;

  [[nodiscard]] bool fits() const {
    return row_text(row, "memory_verdict") != to_string(MemoryVerdict::does_not_fit);
  }
  // The order in the table: points that fit by step time, then those that do not fit, then those that cannot
  // be run.
  [[nodiscard]] std::pair<int, double> order() const {
    const std::optional<double> step = row_number(row, "step_time_ms");
    if (!step) return {2, 0};
    return {fits() ? 0 : 1, *step};
  }
};

// The points that have a row and are counted. Error: a row that is not JSON.
Result<std::vector<DonePoint>> done_points(const SweepSpec& spec, const SweepRows& rows,
                                           const std::function<bool(const SweepPoint&)>& counts) {
  std::vector<DonePoint> done;
  for (const SweepPoint& point : spec.points) {
    const auto found = rows.find(point.id);
    if (found == rows.end() || (counts && !counts(point))) continue;
    STEPCAST_ASSIGN(JsonValue row, parse_json(found->second, point.id));
    done.push_back({&point, std::move(row)});
  }
  return done;
}

// Counts the points by what became of them, and finds the fastest one that fits.
SweepOutcome outcome_of(const std::vector<DonePoint>& done) {
  SweepOutcome outcome;
  outcome.fastest_ms = std::numeric_limits<double>::infinity();
  for (const DonePoint& one : done) {
    ++outcome.n;
    if (const std::string error = row_text(one.row, "error"); !error.empty()) {
      ++outcome.n_failed;
      ++outcome.errors[error];
    } else if (!one.fits()) {
      ++outcome.n_too_large;
    } else if (const std::optional<double> step = row_number(one.row, "step_time_ms");
               step && *step < outcome.fastest_ms) {
      outcome.fastest_ms = *step;
      outcome.fastest = point_words(*one.point);
    }
  }
  return outcome;
}

// The names of the settings that differ between points, sorted.
std::vector<std::string> varied_settings(const SweepSpec& spec) {
  std::set<std::string, std::less<>> keys;
  for (const SweepPoint& point : spec.points)
    for (const auto& [key, value] : point.settings) keys.insert(key);
  std::vector<std::string> varied;
  for (const std::string& key : keys) {
    const auto text = [&](const SweepPoint& point) {
      const JsonValue* value = point.find(key);
      return value == nullptr ? std::string{} : value_text(*value);
    };
    // A setting that some points do not have counts as an empty text.
    const std::string first = text(spec.points.front());
    if (std::ranges::any_of(spec.points, [&](const SweepPoint& point) { return text(point) != first; }))
      varied.push_back(key);
  }
  return varied;
}

// The table of all points. Columns without any value are left out.
ReportTable points_table(const SweepSpec& spec, std::vector<DonePoint> done) {
  std::ranges::stable_sort(done, {}, &DonePoint::order);
  ReportTable table;
  const std::vector<std::string> varied = varied_settings(spec);
  for (const std::string& key : varied)
    table.columns.push_back({key, std::ranges::all_of(spec.points, [&](const SweepPoint& point) {
                               const JsonValue* value = point.find(key);
                               return value != nullptr && value->is_number();
                             })});
  // The columns of results come from the list of members; an empty row is enough to collect their headings.
  const detail::SweepRow no_row;
  detail::FieldRow shown;
  fields(shown, no_row);
  std::vector<detail::FieldRow::Field> numbers = std::move(shown).take();
  std::erase_if(numbers, [&](const detail::FieldRow::Field& number) {
    return std::ranges::none_of(
        done, [&](const DonePoint& one) { return row_number(one.row, number.key).has_value(); });
  });
  for (const auto& number : numbers) table.columns.push_back({std::string{number.column.heading}});
  for (const char* heading : {"memory", "layout", "why not"}) table.columns.push_back({heading, false});
  for (const DonePoint& one : done) {
    // Rows are sorted, so the limit cuts off the slowest points and those that cannot be run.
    if (table.rows.size() == kMostSweepRowsOfPage) {
      table.caption = "--merge has all.";
      table.of = done.size();
      break;
    }
    ReportRow row;
    for (const std::string& key : varied) {
      const JsonValue* value = one.point->find(key);
      row.cell(value == nullptr     ? ReportCell{}
               : value->is_number() ? ReportCell{value_text(*value), value->number()}
                                    : ReportCell{value_text(*value)});
    }
    for (const auto& [key, column, none, zero] : numbers) {
      const std::optional<double> number = row_number(one.row, key);
      row.cell(number ? ReportCell{detail::number_cell(*number, column).text, *number} : ReportCell{});
    }
    row.cell(row_text(one.row, "memory_verdict"));
    row.cell(row_text(one.row, "layout"));
    row.cell(shorten(row_text(one.row, "error"), 160));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::string SweepOutcome::text() const {
  std::string text;
  if (n_failed > 0) {
    text += fmt::format("{} cannot run, for the reason in their rows:\n", table_count(n_failed));
    constexpr std::size_t kMost = 5;
    std::size_t shown = 0;
    for (const auto& [error, count] : errors)
      if (++shown <= kMost) text += fmt::format("  {:>6}  {}\n", table_count(count), shorten(error, 160));
    if (shown > kMost) text += fmt::format("  and {} more reasons\n", shown - kMost);
  }
  if (n_too_large > 0)
    text += fmt::format("{} do not fit in memory (memory_verdict)\n", table_count(n_too_large));
  if (!fastest.empty())
    text += fmt::format("fastest point that fits: {}: {}\n", duration_text(fastest_ms), fastest);
  return text;
}

Result<SweepOutcome> sweep_outcome(const SweepSpec& spec, const SweepRows& rows,
                                   const std::function<bool(const SweepPoint&)>& counts) {
  STEPCAST_ASSIGN(const std::vector<DonePoint> done, done_points(spec, rows, counts));
  return outcome_of(done);
}

Result<ReportDocument> sweep_document(const SweepSpec& spec, const SweepRows& rows) {
  STEPCAST_ASSIGN(std::vector<DonePoint> done, done_points(spec, rows, {}));
  const SweepOutcome outcome = outcome_of(done);
  ReportDocument document;
  document.title = fmt::format("Sweep {}", in_one_line(spec.name));
  document.subject.push_back(
      fmt::format("{} of {} points are done", table_count(outcome.n), table_count(spec.points.size())));
  document.verdict = outcome.fastest.empty()
                         ? std::string{"No point fits."}
                         : fmt::format("Fastest point that fits: {}: {}.", duration_text(outcome.fastest_ms),
                                       outcome.fastest);
  document.figures = {
      {.label = "points done", .value = table_count(outcome.n), .key = "n_done"},
      {.label = "cannot run", .value = table_count(outcome.n_failed), .key = "n_failed"},
      {.label = "do not fit", .value = table_count(outcome.n_too_large), .key = "n_does_not_fit"}};
  document.add("Points", {points_table(spec, std::move(done))});
  document.json =
      sweep_status_json({spec.hash, spec.points.size(), outcome.n, outcome.n_failed, outcome.n_too_large});
  return document;
}

namespace {

// A row with the members that all points have.
detail::SweepRow row_of(const SweepPoint& point) {
  detail::SweepRow row;
  row.id = point.id;
  row.mode = point.mode;
  row.point.assign(point.settings.begin(), point.settings.end());
  return row;
}

// A row as one line of JSON.
std::string written(const detail::SweepRow& row) { return answer_json(row, JsonWriter::Layout::compact); }

// The parallel degrees above 1 in words: "tensor_parallel 8, pipeline_parallel 4" becomes "tensor 8, pipeline
// 4".
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
  row.promised_step_time_ms = forecast.promised_ms();
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
  // A training's days and costs are filled in only if its length was given.
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

std::string sweep_row(const SweepPoint& point, const LayoutPlan& plan,
                      const std::optional<TrainingOption>& training) {
  const ChosenLayout chosen = chosen_layout(plan);
  detail::SweepRow row = row_of(point);
  row.model = plan.prototypes.model().name;
  row.n_gpus = static_cast<std::uint64_t>(plan.space.n_gpus);
  row.layout = to_string(chosen.point);
  if (chosen.refinement != nullptr) *row.layout += "; " + join(chosen.refinement->changes, "; ");
  row.layouts = plan.space.size();
  row.layouts_priced = plan.found.priced.size();
  row.layouts_alike = plan.ranking.n_alike;
  const StepPrediction& step = chosen.step;
  row.step_time_ms = step.step.time.value() * 1e-3;
  row.step_time_p10_ms = step.step.p10.value() * 1e-3;
  row.step_time_p90_ms = step.step.p90.value() * 1e-3;
  row.promised_step_time_ms = chosen.promise.time.value() * 1e-3;
  row.tokens_per_s = step.tokens_per_second();
  row.tokens_per_s_per_gpu = step.tokens_per_second() / static_cast<double>(step.n_gpus);
  row.mfu = step.model_flops_utilization();
  row.computation_ms = step.shares.computation_us() * 1e-3;
  row.exposed_communication_ms = step.shares.exposed_communication_us() * 1e-3;
  // A plan's prediction has no breakdown by cause: idle time is the pipeline bubble and waiting for the host.
  row.idle_ms = (step.shares.bubble_us + step.shares.host_us) * 1e-3;
  row.memory_verdict = std::string{to_string(chosen.memory.verdict)};
  row.peak_memory_GiB = chosen.memory.peak().value() / kGiB;
  row.memory_margin_GiB = chosen.memory.margin().value() / kGiB;
  if (training) {
    row.days = training->days;
    row.gpu_hours = training->gpu_hours;
    row.price = training->price;
    row.energy_MWh = training->energy_MWh;
  }
  row.megatron_flags = megatron_text(chosen, plan.prototypes);
  row.notes = plan.notes;
  return written(row);
}

std::string sweep_row(const SweepPoint& point, const Error& error) {
  detail::SweepRow row = row_of(point);
  row.error = error.message();
  return written(row);
}

STEPCAST_ANSWER(sweep_status, SweepStatus, "stepcast.sweep_status/1", "stepcast sweep --status --json")

std::string sweep_row_schema() { return answer_schema<detail::SweepRow>(); }

}  // namespace stepcast
