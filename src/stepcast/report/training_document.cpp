// What a training takes on several machines, as text and as a page.

#include <string>
#include <utility>

#include <fmt/format.h>

#include "stepcast/report/cell_text.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/plan_answer.h"

namespace stepcast {
namespace {

std::string gpus_of(const TrainingOption& o) { return table_count(o.n_gpus); }
double cost_of(const TrainingOption& o) { return o.price.value_or(o.gpu_hours); }

// "128 x dgx-h100: 20.1 days (p90 22.4), 61,000 GPU-hours".
std::string summary_of(const TrainingOption& o) {
  return fmt::format("{} x {}: {:.1f} days (p90 {:.1f}), {} {}", gpus_of(o), o.platform, o.days, o.days_p90,
                     table_number(cost_of(o), 0), o.price ? "in all" : "GPU-hours");
}

std::string marks_of(const TrainingPlan& plan, std::size_t i) {
  const TrainingOption& o = plan.options[i];
  std::string mark = o.over_power ? "over the power budget"
                     : !o.meets   ? "late"
                     : o.surely   ? "in time"
                                  : "in time, not at p90";
  if (plan.fewest == i) mark += ", fewest GPUs";
  if (plan.cheapest == i) mark += o.price ? ", least money" : ", fewest GPU-hours";
  if (plan.least_energy == i) mark += ", least energy";
  if (o.run) mark += fmt::format("; trains {:.1f} % of it", o.run->effective_share_percent);
  if (o.best) mark += " *";
  return mark;
}

ReportTable options_table(const TrainingPlan& plan) {
  ReportTable table{
      "platform< | GPUs | step\nms | days | p90\ndays | GPU-hours | price | kW | MWh | GiB to\nspare | < | "
      "layout<"};
  table.indent = 0;
  for (std::size_t i = 0; i < plan.options.size(); ++i) {
    const TrainingOption& o = plan.options[i];
    if (!o.why_not.empty()) {
      table.row({o.platform, gpus_of(o), "", "", "", "", "", "", "", "", "-", shorten(o.why_not, 120)});
      continue;
    }
    if (plan.fewest == i) table.emphasized = table.rows.size();
    ReportCell layout{o.layout};
    layout.copies = o.flags;
    table.row({o.platform, gpus_of(o), table_number(o.step_ms, 1), table_number(o.days, 1),
               table_number(o.days_p90, 1), table_number(o.gpu_hours, 0),
               o.price ? table_number(*o.price, 0) : "-", o.power_kW ? table_number(*o.power_kW, 0) : "-",
               o.energy_MWh ? table_number(*o.energy_MWh, 1) : "-", table_number(o.margin_GiB, 1),
               marks_of(plan, i), std::move(layout)});
  }
  return table;
}

ReportFigure options_figure(const TrainingPlan& plan, const TrainingGoal& goal) {
  constexpr std::size_t kMostNamed = 12;
  ScatterChart chart{.points = {},
                     .x_title = "days of training",
                     .y_title = goal.price_per_gpu_hour ? "price" : "GPU-hours",
                     .legend = {{"c-faint", "option"},
                                {"c-alike", "no other is as fast, as cheap and as far from full memory"},
                                {"c-accent", "fewest GPUs or cheapest in time"}},
                     .x_limit = goal.within_days,
                     .x_limit_name = "deadline"};
  for (std::size_t i = 0; i < plan.options.size(); ++i) {
    const TrainingOption& o = plan.options[i];
    if (!o.why_not.empty()) continue;
    const bool picked = plan.fewest == i || plan.cheapest == i;
    const bool is_named = picked || plan.options.size() <= kMostNamed;
    chart.points.push_back(
        {.x = o.days,
         .y = cost_of(o),
         .colour = picked   ? "c-accent"
                   : o.best ? "c-alike"
                            : "c-faint",
         .name = summary_of(o),
         .label = is_named ? fmt::format("{} x {}", o.n_gpus, o.platform) : std::string{}});
  }
  return {scatter_chart(chart), "Every option with the layout that the search chooses for it."};
}

// The options that matter with the flags that run them.
std::string picks_text(const TrainingPlan& plan) {
  std::string text;
  const auto add = [&](std::string_view name, std::size_t i) {
    const TrainingOption& o = plan.options[i];
    text +=
        fmt::format("{}: {} x {}: {}\n", name, o.n_gpus, o.platform, o.flags.empty() ? o.layout : o.flags);
  };
  add("Fewest GPUs", *plan.fewest);
  if (plan.fewest != plan.cheapest) add("Cheapest", *plan.cheapest);
  if (plan.wanted && plan.wanted != plan.fewest && plan.wanted != plan.cheapest)
    add("As wanted", *plan.wanted);
  return text;
}

}  // namespace

ReportDocument training_document(const TrainingAnswer& training) {
  const TrainingPlan& plan = training.plan;
  const TrainingGoal& goal = training.goal;
  ReportDocument document;
  document.title = fmt::format("Training on {:.4g} tokens", goal.tokens);
  std::string line = document.title;
  const auto subject = [&](std::string_view before, std::string words) {
    line += fmt::format("{}{}", before, words);
    document.subject.push_back(std::move(words));
  };
  if (goal.within_days) subject(" ", fmt::format("within {:g} days", *goal.within_days));
  if (goal.power_budget_W) subject(" ", fmt::format("with {:g} kW", *goal.power_budget_W * 1e-3));
  if (goal.price_per_gpu_hour) subject(", ", fmt::format("{:g} a GPU-hour", *goal.price_per_gpu_hour));
  document.verdict = goal.power_budget_W ? "No option is in time and within the power budget."
                                         : "No option is in time: more GPUs, or a faster platform.";
  std::string picks = document.verdict + "\n";
  if (plan.fewest) {
    document.verdict = fmt::format("Fewest GPUs: {}.", summary_of(plan.options[*plan.fewest]));
    if (plan.cheapest && *plan.cheapest != *plan.fewest)
      document.verdict += fmt::format(" Cheapest: {}.", summary_of(plan.options[*plan.cheapest]));
    picks = picks_text(plan);
    if (const auto& run = plan.options[*plan.fewest].run)
      picks += fmt::format("Of the fewest GPUs: {}\n", detail::run_text(*run));
  }
  document.add("Time against money", {options_figure(plan, goal)}).shown = Shown::page;
  ReportSection& section = document.add(
      "Options",
      {options_table(plan),
       ReportText{"* no other option is as fast, as cheap and as far from the limit of the memory, and "
                  "better in one\n"
                  "MWh: nodes and switches",
                  0},
       TerminalText{std::move(picks)}});
  section.opening = line + "\n\n";
  document.json = training_json(training);
  return document;
}

}  // namespace stepcast
