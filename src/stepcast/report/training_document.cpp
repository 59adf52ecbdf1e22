// The documents of plans for a whole training (options of GPUs and platforms) and for several trainings that
// share GPUs.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/report/cell_text.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/detail/plan_fields.h"
#include "stepcast/report/fields/field_table.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/plan_answer.h"

namespace stepcast {
namespace {

std::string gpus_of(const TrainingOption& o) { return table_count(o.n_gpus); }

// The heading of the column of prices, with their currency.
std::string price_heading(const std::string& currency) {
  return currency.empty() ? "price" : "price\n" + currency;
}
void name_currency(ReportTable& table, const std::string& currency) {
  for (ReportColumn& column : table.columns)
    if (column.heading == "price") column.heading = price_heading(currency);
}
// Says once below a table what its prices are; empty if they have a currency or there are none.
std::string price_note(const std::string& currency, bool has_prices) {
  return has_prices && currency.empty() ? "\nprice: in your currency" : "";
}

// The cost of an option: its price if prices are known, else its GPU-hours.
double cost_of(const TrainingOption& o) { return o.price.value_or(o.gpu_hours); }

// An option in words: "128 x dgx-h100: 20.1 days (p90 22.4), 61,000 GPU-hours".
std::string summary_of(const TrainingOption& o, const std::string& currency) {
  return fmt::format("{} x {}: {} days (p90 {}), {} {}", gpus_of(o), o.platform, table_amount(o.days, 1),
                     table_amount(o.days_p90, 1), table_amount(cost_of(o), 0),
                     !o.price           ? "GPU-hours"
                     : currency.empty() ? "in total"
                                        : currency + " in total");
}

// Whether an option is one of the recommended ones.
bool is_picked(const TrainingPlan& plan, std::size_t i) {
  return plan.fewest == i || plan.cheapest == i || plan.fastest == i || plan.wanted == i;
}

// The options that the table shows: the recommended ones and the fastest, `top` in total. Options that cannot
// be run come last, if there is room.
std::vector<bool> shown_of(const TrainingPlan& plan, std::size_t top) {
  std::vector<std::size_t> order(plan.options.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const TrainingOption &x = plan.options[a], &y = plan.options[b];
    if (is_picked(plan, a) != is_picked(plan, b)) return is_picked(plan, a);
    return x.why_not.empty() != y.why_not.empty() ? x.why_not.empty() : x.days < y.days;
  });
  std::vector<bool> shown(order.size(), false);
  for (std::size_t k = 0; k < order.size(); ++k) shown[order[k]] = k < top || is_picked(plan, order[k]);
  return shown;
}

// The marks of an option in the table, such as "in time, fewest GPUs"; "*" if it is Pareto-optimal.
std::string marks_of(const TrainingPlan& plan, const TrainingGoal& goal, std::size_t i) {
  const TrainingOption& o = plan.options[i];
  std::string mark;
  const auto add = [&](bool holds, std::string_view words) {
    if (holds) mark += fmt::format("{}{}", mark.empty() ? "" : ", ", words);
  };
  add(o.over_power, "over the power budget");
  add(goal.within_days && !o.over_power, !o.meets ? "late" : o.surely ? "in time" : "in time, not at p90");
  add(plan.fewest == i, "fewest GPUs");
  add(plan.cheapest == i, o.price ? "least money" : "fewest GPU-hours");
  add(plan.fastest == i, "fastest");
  add(plan.least_energy == i, "least energy");
  if (o.run)
    mark += fmt::format("{}goodput {:.1f} %", mark.empty() ? "" : "; ", o.run->effective_share_percent);
  if (o.best) mark += mark.empty() ? "*" : " *";
  return mark;
}

// The table of options, in the order of the plan. Rows of options that cannot be run show the reason.
ReportTable options_table(const TrainingAnswer& training) {
  const TrainingPlan& plan = training.plan;
  const std::vector<bool> shown = shown_of(plan, training.top);
  const bool carbon = training.goal.carbon_g_per_kWh.has_value();
  ReportTable table;
  table.indent = 0;
  for (std::size_t i = 0; i < plan.options.size(); ++i) {
    const TrainingOption& o = plan.options[i];
    if (!shown[i]) continue;
    if (plan.fewest == i) table.emphasized = table.rows.size();
    ReportRow& row = add_row(table, {}, o, plan, carbon);
    if (o.why_not.empty()) {
      row.cell(marks_of(plan, training.goal, i)).cell(o.layout).cells.back().copies = o.flags;
    } else {
      std::fill(row.cells.begin() + 2, row.cells.end(), ReportCell{});  // all except platform and GPUs
      row.cell("-").cell(shorten(o.why_not, 120));
    }
  }
  table.add_columns("< | layout<");
  name_currency(table, training.goal.currency);
  return table;
}

// A picture of cost against time, with the deadline.
ReportFigure options_figure(const TrainingPlan& plan, const TrainingGoal& goal) {
  constexpr std::size_t kMostNamed = 12;
  ScatterChart chart{.points = {},
                     .x_title = "days of training",
                     .y_title = !plan.options.front().price_per_gpu_hour ? "GPU-hours"
                                : goal.currency.empty()                  ? "price"
                                                                         : "price, " + goal.currency,
                     .legend = {{"c-faint", "option"},
                                {"c-alike", "Pareto-optimal in time, cost and free memory"},
                                {"c-accent", "fewest GPUs or cheapest that meets the deadline"}},
                     .x_limit = goal.within_days,
                     .x_limit_name = "deadline"};
  for (std::size_t i = 0; i < plan.options.size(); ++i) {
    const TrainingOption& o = plan.options[i];
    if (!o.why_not.empty()) continue;
    const bool picked = plan.fewest == i || plan.cheapest == i;
    // With many options, only the recommended ones have a label.
    const bool is_named = picked || plan.options.size() <= kMostNamed;
    chart.points.push_back(
        {.x = o.days,
         .y = cost_of(o),
         .colour = picked   ? "c-accent"
                   : o.best ? "c-alike"
                            : "c-faint",
         .name = summary_of(o, goal.currency),
         .label = is_named ? fmt::format("{} x {}", o.n_gpus, o.platform) : std::string{}});
  }
  return {scatter_chart(chart), "Every option with the layout chosen by the search."};
}

// The recommended options with the flags to run them. An option that is recommended for several reasons is
// listed once.
std::string picks_text(const TrainingPlan& plan) {
  std::string text;
  const auto add = [&](std::string_view name, std::size_t i) {
    const TrainingOption& o = plan.options[i];
    text +=
        fmt::format("{}: {} x {}: {}\n", name, o.n_gpus, o.platform, o.flags.empty() ? o.layout : o.flags);
  };
  add("Fewest GPUs", *plan.fewest);
  if (plan.fewest != plan.cheapest) add("Cheapest", *plan.cheapest);
  if (plan.fastest != plan.fewest && plan.fastest != plan.cheapest) add("Fastest at p90", *plan.fastest);
  if (plan.wanted && plan.wanted != plan.fewest && plan.wanted != plan.cheapest &&
      plan.wanted != plan.fastest)
    add("As wanted", *plan.wanted);
  return text;
}

}  // namespace

ReportDocument training_document(const TrainingAnswer& training) {
  const TrainingPlan& plan = training.plan;
  const TrainingGoal& goal = training.goal;
  ReportDocument document;
  document.title = fmt::format("Training on {} tokens", amount_text(goal.tokens));
  std::string line = document.title;
  const auto subject = [&](std::string_view before, std::string words) {
    line += fmt::format("{}{}", before, words);
    document.subject.push_back(std::move(words));
  };
  if (goal.within_days) subject(" ", fmt::format("within {:g} days", *goal.within_days));
  if (goal.power_budget_W) subject(" ", fmt::format("with {:g} kW", *goal.power_budget_W * 1e-3));
  if (goal.price_per_gpu_hour)
    subject(", ", fmt::format("{:g}{}{} a GPU-hour", *goal.price_per_gpu_hour,
                              goal.currency.empty() ? "" : " ", goal.currency));
  document.verdict = goal.power_budget_W
                         ? "No option meets the deadline within the power budget."
                         : "No option meets the deadline: use more GPUs, or a faster platform.";
  std::string picks = document.verdict + "\n";
  if (plan.fewest) {
    document.verdict = fmt::format("Fewest GPUs: {}.", summary_of(plan.options[*plan.fewest], goal.currency));
    if (plan.cheapest && *plan.cheapest != *plan.fewest)
      document.verdict +=
          fmt::format(" Cheapest: {}.", summary_of(plan.options[*plan.cheapest], goal.currency));
    if (*plan.fastest != *plan.fewest && *plan.fastest != *plan.cheapest)
      document.verdict +=
          fmt::format(" Fastest at p90: {}.", summary_of(plan.options[*plan.fastest], goal.currency));
    picks = picks_text(plan);
    if (const auto& run = plan.options[*plan.fewest].run)
      picks += fmt::format("With the fewest GPUs: {}\n", detail::run_text(*run));
  }
  document.add("Time against cost", {options_figure(plan, goal)}).shown = Shown::page;
  ReportSection& section = document.add(
      "Options",
      {options_table(training),
       ReportText{"* Pareto-optimal in time, cost and free memory\nMWh: energy of nodes and switches" +
                      price_note(goal.currency, plan.options.front().price_per_gpu_hour.has_value()),
                  0},
       TerminalText{std::move(picks)}});
  const std::vector<bool> shown = shown_of(plan, training.top);
  if (const auto n = std::ranges::count(shown, true); static_cast<std::size_t>(n) < shown.size())
    section.add(
        ReportText{fmt::format("{} of {} options shown: --top shows more", n, plan.options.size()), 0});
  section.opening = line + "\n\n";
  ReportTable options = options_table(training);
  constexpr std::size_t kMostOptions = 9;
  options.most = kMostOptions;
  options.of = plan.options.size();
  options.on_first_screen = {
      "platform", "GPUs", "step\nms", "days", "p90\ndays", price_heading(goal.currency), "MWh", "layout", ""};
  document.first_screen = FirstScreen{.blocks = {std::move(options)}};
  document.json = training_json(training);
  return document;
}

namespace {

// Whether a job meets its deadline, and if not, the number of GPUs with which it would.
std::string job_verdict(const JobPool& pool, const PooledJob& job) {
  const TrainingOption* option = job.chosen ? &job.curve[*job.chosen] : nullptr;
  if (option != nullptr && option->meets)
    return !job.job.deadline_days ? "" : option->surely ? "in time" : "in time, not at p90";
  const std::string what = option != nullptr ? "late" : "does not run";
  if (!job.gpus_in_time)
    return what + fmt::format(", not in time on {} either", table_count(8 * pool.n_gpus));
  return what + fmt::format("; in time on {} GPUs", table_count(*job.gpus_in_time));
}

bool is_priced(const PooledJob& job) { return job.chosen && job.price(job.curve[*job.chosen]); }

// The table of jobs: GPUs, time, slack, price and layout of each job.
ReportTable jobs_table(const JobPool& pool) {
  ReportTable table{
      "job< | GPUs | step\nms | days | p90\ndays | deadline\ndays | slack\ndays | price | < | layout<"};
  table.indent = 0;
  name_currency(table, pool.currency);
  for (const PooledJob& job : pool.jobs) {
    const std::string deadline = job.job.deadline_days ? table_number(*job.job.deadline_days, 1) : "-";
    if (!job.chosen) {
      table.row({job.job.name, "-", "", "", "", deadline, "", "", job_verdict(pool, job),
                 shorten(job.curve.back().why_not, 100)});
      continue;
    }
    const TrainingOption& o = job.curve[*job.chosen];
    const auto slack = job.slack_days(), price = job.price(o);
    table.row({job.job.name, table_count(o.n_gpus), table_number(o.step_ms, 1), table_amount(o.days, 1),
               table_amount(o.days_p90, 1), deadline, slack ? table_amount(*slack, 1) : "-",
               price ? table_amount(*price, 0) : "-", job_verdict(pool, job), o.layout});
  }
  return table;
}

}  // namespace

ReportDocument jobs_document(const JobPool& pool) {
  ReportDocument document;
  document.title =
      fmt::format("{} on {} GPUs ({})", counted(static_cast<std::int64_t>(pool.jobs.size()), "job", "jobs"),
                  table_count(pool.n_gpus), pool.platform);
  std::size_t missed = 0;
  for (const PooledJob& job : pool.jobs)
    if (!job.chosen || !job.curve[*job.chosen].meets) ++missed;
  document.verdict =
      missed == 0
          ? fmt::format("Every job meets its deadline, on {} GPUs.", table_count(pool.n_used))
          : fmt::format("{} of {} jobs {} late; {}.", missed, pool.jobs.size(), missed == 1 ? "is" : "are",
                        pool.pool_in_time
                            ? fmt::format("{} GPUs are enough for all", table_count(*pool.pool_in_time))
                            : "no pool that was tried is large enough for all");
  document
      .add("Jobs", {jobs_table(pool),
                    ReportText{"All jobs run at the same time, each on its own whole nodes until its end." +
                                   price_note(pool.currency, std::ranges::any_of(pool.jobs, is_priced)),
                               0}})
      .opening = fmt::format("{}\n{}\n\n", document.title, document.verdict);
  ReportTable jobs = jobs_table(pool);
  constexpr std::size_t kMostJobs = 12;
  jobs.most = kMostJobs;
  jobs.on_first_screen = {"job", "GPUs", "step\nms", "days", "deadline\ndays", price_heading(pool.currency),
                          ""};
  document.first_screen = FirstScreen{.blocks = {std::move(jobs)}};
  document.json = jobs_json(pool);
  return document;
}

}  // namespace stepcast
