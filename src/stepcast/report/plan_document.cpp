#include "stepcast/report/plan_document.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stepcast/base/units.h"
#include "stepcast/describe/megatron_writer.h"
#include "stepcast/plan/layout_flags.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

using detail::band_text;
using detail::ms_text;
using detail::percent_text;

constexpr std::size_t kMostRows = 60, kMostRefinedShown = 8, kMostReasons = 40, kMostOnFront = 60;
constexpr double kSlowestDrawn = 1.8;  // times the fastest

double ms_of(const Estimate& step) { return step.time.value() * 1e-3; }
double gib_of(double bytes) { return bytes / kGiB; }

std::string count(std::uint64_t n) { return table_count(n); }

// The fastest layout of every filling of the memory, over all that were priced.
std::vector<const PricedLayout*> pareto_front(const std::vector<PricedLayout>& priced) {
  std::vector<const PricedLayout*> front;
  double least = std::numeric_limits<double>::infinity();
  for (const PricedLayout& layout : priced) {  // ascending in time
    if (layout.peak_bytes >= least) continue;
    least = layout.peak_bytes;
    front.push_back(&layout);
  }
  return front;
}

std::string verdict(const LayoutPlan& plan) {
  const LayoutRanking& ranking = plan.ranking;
  const RankedLayout& chosen = ranking.layouts[ranking.chosen];
  std::string text =
      fmt::format("Run {}: {} ms a step (p10 {}, p90 {}) in {:.1f} of {:.1f} GiB.", to_string(chosen.point),
                  ms_text(chosen.step_ms()), ms_text(chosen.step.step.p10.value() * 1e-3),
                  ms_text(chosen.step.step.p90.value() * 1e-3), gib_of(chosen.memory.peak().value()),
                  gib_of(plan.memory.value()));
  if (ranking.n_alike > 1) {
    text += fmt::format(" {}{} layouts cannot be told from the fastest by the forecast",
                        ranking.more_alike ? "More than " : "", count(ranking.n_alike));
    text += ranking.chosen == 0
                ? "; this is the fastest of them."
                : fmt::format("; this one is {:.1f} % behind it and plainer or with more memory to spare.",
                              100 * chosen.behind_us / ranking.layouts.front().step.step.time.value());
  } else {
    text += " It is faster than every other layout beyond the uncertainty of the forecast.";
  }
  return text;
}

std::string describe(const RankedLayout& l) {
  return fmt::format("{}: {} ms (p10 {}, p90 {}), {:.1f} GiB{}", to_string(l.point), ms_text(l.step_ms()),
                     ms_text(l.step.step.p10.value() * 1e-3), ms_text(l.step.step.p90.value() * 1e-3),
                     gib_of(l.memory.peak().value()), l.alike ? "; cannot be told from the fastest" : "");
}

ReportFigure pareto_figure(const LayoutPlan& plan) {
  const LayoutRanking& ranking = plan.ranking;
  const double slowest = kSlowestDrawn * ranking.layouts.front().step_ms();
  ScatterChart chart{.points = {},
                     .x_title = "step time, ms",
                     .y_title = "memory of the fullest GPU, GiB",
                     .legend = {{"c-faint", "priced layout"},
                                {"c-warm", "nothing faster takes less memory"},
                                {"c-alike", "cannot be told from the fastest"},
                                {"c-accent", "chosen"}},
                     .y_limit = gib_of(plan.memory.value()),
                     .y_limit_name = "memory of a GPU"};
  std::size_t on_front = 0;
  for (const PricedLayout* layout : pareto_front(plan.found.priced)) {
    if (layout->step_us * 1e-3 > slowest || on_front++ == kMostOnFront) break;
    chart.points.push_back(
        {.x = layout->step_us * 1e-3,
         .y = gib_of(layout->peak_bytes),
         .colour = "c-warm",
         .name = fmt::format("{}: {} ms, {:.1f} GiB", to_string(layout->point),
                             ms_text(layout->step_us * 1e-3), gib_of(layout->peak_bytes))});
  }
  std::vector<ScatterPoint> above;
  for (std::size_t i = 0; i < ranking.layouts.size(); ++i) {
    const RankedLayout& l = ranking.layouts[i];
    if (l.step_ms() > slowest && i != ranking.chosen) continue;
    ScatterPoint point{.x = l.step_ms(),
                       .y = gib_of(l.memory.peak().value()),
                       .colour = l.alike ? "c-alike" : "c-faint",
                       .name = describe(l)};
    if (i == ranking.chosen) {
      point.colour = "c-accent";
      point.label = to_string(l.point);
      point.x_low = l.step.step.p10.value() * 1e-3;
      point.x_high = l.step.step.p90.value() * 1e-3;
    }
    (l.alike || i == ranking.chosen ? above : chart.points).push_back(std::move(point));
  }
  // What matters is drawn last.
  std::stable_partition(above.begin(), above.end(), [](const ScatterPoint& p) { return p.label.empty(); });
  std::stable_partition(chart.points.begin(), chart.points.end(),
                        [](const ScatterPoint& p) { return p.colour == "c-faint"; });
  for (ScatterPoint& point : above) chart.points.push_back(std::move(point));
  return {scatter_chart(chart), fmt::format("Left is faster, down leaves more memory. Drawn are the {} "
                                            "layouts that were looked at in full and those "
                                            "that no other beats in both. The line through the chosen one is "
                                            "its p10 to p90; most of that error is "
                                            "common to all layouts.",
                                            ranking.layouts.size())};
}

ReportTable layouts_table(const LayoutPlan& plan) {
  ReportTable table{{{"#"},
                     {"layout", false},
                     {"", false},
                     {"step ms"},
                     {"p10"},
                     {"p90"},
                     {"tokens/s per GPU"},
                     {"MFU %"},
                     {"memory GiB"},
                     {"compute %"},
                     {"transfers %"},
                     {"bubble %"}},
                    {}};
  const std::vector<RankedLayout>& all = plan.ranking.layouts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i >= kMostRows && i != plan.ranking.chosen) continue;
    const RankedLayout& l = all[i];
    const StepShares& shares = l.step.shares;
    const double whole = shares.total_us();
    const auto mfu = l.step.model_flops_utilization();
    std::string mark = l.alike ? "~" : "";
    if (l.memory.verdict == MemoryVerdict::tight) mark += " tight";
    if (i == plan.ranking.chosen) {
      mark += " chosen";
      table.emphasized = table.rows.size();
    }
    ReportCell layout{to_string(l.point)};
    if (const auto text = megatron_text(l.point, l.layout, plan.prototypes)) layout.copies = *text;
    table.rows.push_back(
        {count(i + 1), std::move(layout), mark, ms_text(l.step_ms()), ms_text(l.step.step.p10.value() * 1e-3),
         ms_text(l.step.step.p90.value() * 1e-3),
         table_number(l.step.tokens_per_second() / static_cast<double>(l.step.n_gpus), 0),
         mfu ? table_number(100 * *mfu, 1) : "-", table_number(gib_of(l.memory.peak().value()), 1),
         percent_text(shares.computation_us(), whole), percent_text(shares.exposed_communication_us(), whole),
         percent_text(shares.bubble_us, whole)});
  }
  table.caption =
      "~ cannot be told from the fastest: errors common to both cancel, and the rest of the difference is "
      "within its uncertainty. p10 and p90 are of the step itself. copy: the "
      "flags of Megatron-LM.";
  if (all.size() > kMostRows) table.caption += fmt::format(" The first {} of {}.", kMostRows, all.size());
  return table;
}

void add_flags(ReportDocument& document, const LayoutPlan& plan) {
  const RankedLayout& chosen = plan.ranking.layouts[plan.ranking.chosen];
  ReportSection section{"To run the chosen layout"};
  if (const auto text = megatron_text(chosen.point, chosen.layout, plan.prototypes)) {
    section.blocks.emplace_back(ReportCode{"Megatron-LM; stepcast predict understands them, too", *text});
  }
  if (const auto text = torchtitan_text(chosen.layout, plan.prototypes.model()))
    section.blocks.emplace_back(ReportCode{"TorchTitan", *text});
  if (const auto text = deepspeed_text(chosen.layout))
    section.blocks.emplace_back(ReportCode{"DeepSpeed", *text});
  if (!section.blocks.empty()) document.sections.push_back(std::move(section));
}

void add_refined(ReportDocument& document, const LayoutPlan& plan) {
  if (plan.refined.empty()) return;
  ReportTable table{
      {{"of #"}, {"step ms"}, {"before ms"}, {"memory GiB"}, {"changed", false}, {"flags", false}}, {}};
  for (std::size_t i = 0; i < std::min(kMostRefinedShown, plan.refined.size()); ++i) {
    const RefinedLayout& r = plan.refined[i];
    ReportCell flags;
    flags.copies = megatron_flags_of(r.settings);
    table.rows.push_back({count(r.of + 1), ms_text(ms_of(r.step.step)),
                          ms_text(plan.ranking.layouts[r.of].step_ms()),
                          table_number(gib_of(r.memory.peak().value()), 1),
                          fmt::format("{}", fmt::join(r.changes, "; ")), std::move(flags)});
  }
  table.caption =
      "Uneven stages, recomputation of some layers, overlap inside layers: what the lists of the space do "
      "not hold.";
  if (plan.refined.size() > kMostRefinedShown)
    table.caption += fmt::format(" The fastest {} of {}.", kMostRefinedShown, plan.refined.size());
  document.sections.push_back({"Refined", {table}});
}

void add_rejections(ReportDocument& document, const SearchedLayouts& found) {
  ReportTable table{{{"layouts"}, {"why not", false}, {"for example", false}, {"nearest that runs", false}},
                    {}};
  std::size_t left = 0;
  for (const auto* reasons : {&found.too_large, &found.rejections, &found.same}) {
    for (const LayoutRejection& r : *reasons) {
      if (table.rows.size() == kMostReasons) {
        ++left;
        continue;
      }
      table.rows.push_back({count(r.count), r.reason, shorten(r.example, 120), shorten(r.cure, 120)});
    }
  }
  if (left > 0) table.caption = fmt::format("and {} more reasons, in the JSON", left);
  document.sections.push_back(
      {"Why not the others",
       {ReportText{fmt::format(
            "{} cannot run, {} are another one of them, {} do not fit, {} were priced: all that are left.",
            count(found.n_rejected), count(found.n_same), count(found.n_too_large),
            count(found.priced.size()))},
        table}});
}

// What runs now, and what is faster and near it.
void add_now(ReportDocument& document, const LayoutNow& now) {
  ReportTable table{{{"layout", false}, {"changes", true}, {"step ms", true}, {"memory GiB", true}}, {}};
  table.rows.push_back(
      {to_string(now.point), "now", now.why_not.empty() ? ms_text(now.step_us * 1e-3) : now.why_not, ""});
  for (const NearbyLayout& n : now.nearby) {
    table.rows.push_back({difference(now.point, n.layout.point), std::to_string(n.changes),
                          ms_text(n.layout.step_us * 1e-3), table_number(gib_of(n.layout.peak_bytes), 1)});
  }
  document.sections.push_back({"Better layouts near the one that runs now", {table}});
}

}  // namespace

ReportDocument plan_document(const LayoutPlan& plan, const PlanSubject& subject) {
  ReportDocument document;
  document.title = fmt::format("Layouts of {} on {} x {}", plan.prototypes.model().name,
                               count(static_cast<std::uint64_t>(plan.space.n_gpus)), subject.gpu);
  document.subject = {fmt::format("{}; {} sequences of {} tokens per step", subject.platform,
                                  count(static_cast<std::uint64_t>(plan.prototypes.global_batch())),
                                  count(static_cast<std::uint64_t>(plan.prototypes.seq_len())))};
  document.verdict = verdict(plan);
  const RankedLayout& chosen = plan.ranking.layouts[plan.ranking.chosen];
  document.figures = {
      {"Step time of the chosen", ms_text(chosen.step_ms()) + " ms",
       band_text(chosen.step.step.p10.value() * 1e-3, chosen.step.step.p90.value() * 1e-3),
       std::string{to_string(chosen.step.step.source)}},
      {"Memory of a GPU", table_number(gib_of(chosen.memory.peak().value()), 1) + " GiB",
       fmt::format("of {:.1f}", gib_of(plan.memory.value())), "analytic"},
      {"Layouts", count(plan.space.size()), count(plan.found.priced.size()) + " run, fit and were priced"},
      {"Cannot be told apart", count(plan.ranking.n_alike), "from the fastest"}};
  document.sections.push_back({"Time against memory", {pareto_figure(plan)}});
  if (subject.now) add_now(document, *subject.now);
  document.sections.push_back({"Layouts", {layouts_table(plan)}});
  add_flags(document, plan);
  add_refined(document, plan);
  add_rejections(document, plan.found);
  ReportTable space{{{"choice", false}, {"values", false}}, {}};
  for (const auto& [name, list] : plan.space.lines()) space.rows.push_back({name, list});
  document.sections.push_back({"The space that was searched", {space}, true});
  if (!plan.notes.empty()) document.sections.push_back({"Notes", {ReportList{plan.notes}}});
  document.json = plan_json(plan, subject);
  return document;
}

ReportDocument training_document(const TrainingPlan& plan, const TrainingGoal& goal) {
  ReportDocument document;
  document.title = fmt::format("Training on {:.4g} tokens", goal.tokens);
  if (goal.within_days) document.subject.push_back(fmt::format("within {:g} days", *goal.within_days));
  if (goal.price_per_gpu_hour)
    document.subject.push_back(fmt::format("{:g} a GPU-hour", *goal.price_per_gpu_hour));
  const bool priced = goal.price_per_gpu_hour.has_value();
  const auto cost = [&](const TrainingOption& o) { return priced ? o.price.value_or(0) : o.gpu_hours; };
  const auto told = [&](const TrainingOption& o) {
    return fmt::format("{} x {}: {:.1f} days (p90 {:.1f}), {} {}",
                       count(static_cast<std::uint64_t>(o.n_gpus)), o.platform, o.days, o.days_p90,
                       table_number(cost(o), 0), priced ? "in all" : "GPU-hours");
  };
  document.verdict = "No option is in time: more GPUs, or a faster platform.";
  if (plan.fewest) {
    document.verdict = fmt::format("Fewest GPUs: {}.", told(plan.options[*plan.fewest]));
    if (plan.cheapest && *plan.cheapest != *plan.fewest)
      document.verdict += fmt::format(" Cheapest: {}.", told(plan.options[*plan.cheapest]));
  }
  ScatterChart chart{.points = {},
                     .x_title = "days of training",
                     .y_title = priced ? "price" : "GPU-hours",
                     .legend = {{"c-faint", "option"},
                                {"c-alike", "no other is as fast, as cheap and as far from full memory"},
                                {"c-accent", "fewest GPUs or cheapest in time"}},
                     .x_limit = goal.within_days,
                     .x_limit_name = "deadline"};
  ReportTable table{{{"platform", false},
                     {"GPUs"},
                     {"step ms"},
                     {"days"},
                     {"p90 days"},
                     {"GPU-hours"},
                     {"price"},
                     {"GiB to spare"},
                     {"", false},
                     {"layout", false}},
                    {}};
  for (std::size_t i = 0; i < plan.options.size(); ++i) {
    const TrainingOption& o = plan.options[i];
    if (!o.why_not.empty()) {
      table.rows.push_back({o.platform, count(static_cast<std::uint64_t>(o.n_gpus)), "", "", "", "", "", "",
                            "does not run", o.why_not});
      continue;
    }
    const bool picked = plan.fewest == i || plan.cheapest == i;
    std::string mark = o.meets ? (o.surely ? "in time" : "in time, not at p90") : "late";
    if (plan.fewest == i) {
      mark += ", fewest GPUs";
      table.emphasized = table.rows.size();
    }
    if (plan.cheapest == i) mark += priced ? ", least money" : ", fewest GPU-hours";
    ReportCell layout{o.layout};
    layout.copies = o.flags;
    table.rows.push_back({o.platform, count(static_cast<std::uint64_t>(o.n_gpus)), ms_text(o.step_ms),
                          table_number(o.days, 1), table_number(o.days_p90, 1), table_number(o.gpu_hours, 0),
                          o.price ? table_number(*o.price, 0) : "-", table_number(o.margin_GiB, 1), mark,
                          std::move(layout)});
    ScatterPoint point{.x = o.days,
                       .y = cost(o),
                       .colour = picked   ? "c-accent"
                                 : o.best ? "c-alike"
                                          : "c-faint",
                       .name = told(o),
                       .label = fmt::format("{} x {}", o.n_gpus, o.platform)};
    if (plan.options.size() > 12 && !picked) point.label.clear();
    chart.points.push_back(std::move(point));
  }
  document.sections.push_back(
      {"Time against money",
       {ReportFigure{scatter_chart(chart), "Every option with the layout that the search chooses for it."},
        table}});
  document.json = training_json(plan, goal);
  return document;
}

}  // namespace stepcast
