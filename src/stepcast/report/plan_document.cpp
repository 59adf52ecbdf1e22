// The document of a plan. A terminal prints the recommendation, the table of layouts, memory and flags of the
// chosen layout, then what was asked for. A page adds a picture of step time against memory, and longer
// tables.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/number.h"
#include "stepcast/base/text.h"
#include "stepcast/base/units.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/detail/plan_fields.h"
#include "stepcast/report/fields/field_table.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/plan_answer.h"
#include "stepcast/workload/framework_rule.h"

namespace stepcast {
namespace {

constexpr double kSlowestDrawn = 1.8;  // relative to the fastest layout
// Rows of tables, and points of the Pareto front in the picture.
constexpr std::size_t kMostRows = 60, kMostOnFront = 60;

std::string number(double value) { return table_number(value, 1); }

// The chosen layout with its refinements: "tp4 pp8x12 dp32 mbs1 zero1 sp, refined (...)".
std::string name_of(const ChosenLayoutAnswer& chosen) {
  const std::string point = to_string(chosen.layout.point);
  return chosen.changes.empty() ? point : fmt::format("{}, refined ({})", point, join(chosen.changes, "; "));
}

// The batch: "512 sequences of 8192 tokens per step", "2048 images per step".
std::string batch_text(const PlanAnswer& plan) {
  std::string text = fmt::format("{} {}s", plan.global_batch_sequences, plan.sample);
  if (plan.sample == "sequence") text += fmt::format(" of {} tokens", plan.seq_len_tokens);
  return text + " per step";
}

// The step time, interval and memory of the chosen layout. If the expected step differs from the forecast,
// both.
std::string numbers_of(const ChosenLayoutAnswer& c, double memory_GiB) {
  const bool is_forecast = c.promised_ms == c.layout.step_ms;
  std::string text = fmt::format(
      "{}{} ({}) a step in {:.1f} of {:.1f} GiB", is_forecast ? "" : "expect ", duration_text(c.promised_ms),
      band_text(c.promised_ms, c.promised_p10_ms, c.promised_p90_ms), c.layout.peak_GiB, memory_GiB);
  if (!is_forecast)
    text += fmt::format(", {} tokens/s per GPU (forecast {} x {:.2f})",
                        table_number(c.promised_tokens_per_s_per_gpu, 0), duration_text(c.layout.step_ms),
                        c.promised_ms / c.layout.step_ms);
  return text;
}

// The note below the table: what a tie is, why the expected step is longer than the forecast, and which
// layouts have a wider interval.
std::string why_alike(const PlanAnswer& plan) {
  std::string text = plan.n_alike == 1
                         ? "~ No other layout is tied with the fastest within forecast error.\n"
                         : fmt::format(
                               "~ {}{} layouts are tied with the fastest within forecast error.\n  Errors "
                               "that both layouts share cancel in the comparison.\n",
                               plan.more_alike ? "More than " : "", plan.n_alike);
  if (const double ratio = plan.chosen.promised_ms / plan.chosen.layout.step_ms; ratio != 1)
    text += fmt::format(
        "  Steps in the table are forecasts. The expected step is the forecast x {:.2f},\n  the median of "
        "published runs over forecasts for models with experts.\n",
        ratio);
  const auto first = std::ranges::find_if(
      plan.layouts, [](const RankedLayoutAnswer& l) { return l.unmeasured.has_value(); });
  if (first != plan.layouts.end())
    text += fmt::format(
        "  unmeasured: no published run of {}, so the band is wider. Such a layout is\n  chosen only if it "
        "is faster by more than its band.\n",
        *first->unmeasured);
  return text;
}

// The number of layouts by what became of them.
std::string counts_text(const PlanAnswer& plan) {
  return fmt::format("{} invalid, {} duplicates, {} do not fit in {:.1f} GiB, {} priced",
                     table_count(plan.n.cannot_run), table_count(plan.n.same), table_count(plan.n.too_large),
                     plan.memory_GiB, table_count(plan.n.priced));
}

// The picture: step time against memory of the layouts that were evaluated in full and of the Pareto-optimal
// ones.
ReportFigure pareto_figure(const PlanAnswer& plan) {
  const double slowest = kSlowestDrawn * plan.layouts.front().step_ms;
  ScatterChart chart{.points = {},
                     .x_title = "step time, ms",
                     .y_title = "memory of the fullest GPU, GiB",
                     .legend = {{"c-faint", "priced layout"},
                                {"c-warm", "Pareto-optimal"},
                                {"c-alike", "tied with the fastest"},
                                {"c-accent", "chosen"}},
                     .y_limit = plan.memory_GiB,
                     .y_limit_name = "memory of a GPU"};
  const auto draw = [&](double ms, double GiB, const char* colour, const LayoutPoint& point) {
    chart.points.push_back(
        {.x = ms,
         .y = GiB,
         .colour = colour,
         .name = fmt::format("{}: {}, {:.1f} GiB", to_string(point), duration_text(ms), GiB)});
  };
  // Important points are drawn last, on top of the others.
  for (const bool alike : {false, true}) {
    for (const RankedLayoutAnswer& l : plan.layouts)
      if (l.alike == alike && l.step_ms <= slowest)
        draw(l.step_ms, l.peak_GiB, alike ? "c-alike" : "c-faint", l.point);
    if (alike) break;
    for (std::size_t i = 0; i < std::min(kMostOnFront, plan.pareto.size()); ++i) {
      const LayoutAnswer& l = plan.pareto[i];
      if (l.step_ms <= slowest) draw(l.step_ms, l.peak_GiB, "c-warm", l.point);
    }
  }
  const RankedLayoutAnswer& chosen = plan.chosen.layout;
  draw(chosen.step_ms, chosen.peak_GiB, "c-accent", chosen.point);
  ScatterPoint& last = chart.points.back();
  last.label = to_string(chosen.point);
  last.x_low = chosen.p10_ms;
  last.x_high = chosen.p90_ms;
  return {scatter_chart(chart),
          fmt::format("Left: faster. Down: more free memory. Shown: the {} layouts with a full forecast, and "
                      "the Pareto-optimal ones. The line through the chosen layout is its p10 to p90; most "
                      "of that error is common to all layouts.",
                      plan.layouts.size())};
}

// Adds lines for a terminal.
void add_lines(ReportDocument& document, std::string lines) {
  document.add("", {TerminalText{std::move(lines)}}).shown = Shown::terminal;
}

// Adds the searched space: a line in a terminal (all lists with --why), a table in a page.
void add_space(ReportDocument& document, const PlanAnswer& plan) {
  ReportTable table{"choice< | values<"};
  std::string lines = fmt::format("Space: {} layouts\n", table_count(plan.n.all));
  for (const auto& [name, list] : plan.space) {
    lines += fmt::format("  {:<19}{}\n", name, list);
    table.row({name, list});
  }
  add_lines(document, plan.why ? "\n" + lines + counts_text(plan) + "\n"
                               : fmt::format("\n{} layouts: {}; --why prints the space and the reasons\n",
                                             table_count(plan.n.all), counts_text(plan)));
  ReportSection& section = document.add("Search space", {std::move(table)});
  section.folded = true;
  section.shown = Shown::page;
}

// Adds the reasons why layouts were left out. In a terminal only with --why.
void add_rejections(ReportDocument& document, const PlanAnswer& plan) {
  constexpr std::size_t kMostReasons = 12;
  ReportTable table;
  table.indent = 0;
  table.most = kMostReasons;
  for (const auto* reasons : {&plan.too_large, &plan.rejections, &plan.same})
    for (const LayoutRejection& r : *reasons) add_row(table, {}, r);
  if (table.rows.empty()) return;
  ReportSection& section = document.add("Rejected layouts");
  section.shown = plan.why ? Shown::everywhere : Shown::page;
  section.is_asked = plan.why;
  section.opening = "\n";
  section.add(ReportText{counts_text(plan) + "."}, Shown::page);
  section.add(std::move(table));
}

// The table of layouts: first the recommended layout if it is refined, then the first `most` layouts and the
// chosen one.
ReportTable layouts_table(const PlanAnswer& plan, std::size_t most) {
  ReportTable table;
  table.indent = 0;
  const bool is_refined = !plan.chosen.changes.empty();
  const auto add = [&](const RankedLayoutAnswer& l, bool is_chosen) {
    std::string mark = l.alike ? "~" : "";
    if (l.unmeasured) mark += " unmeasured";
    if (l.memory_verdict == MemoryVerdict::tight) mark += " tight";
    if (is_chosen) mark += " chosen";
    if (is_chosen) table.emphasized = table.rows.size();
    ReportRow& row = add_row(table, {}, l).cell(mark);
    row.cells[1].copies = l.megatron_flags.value_or("");
    if (&l != &plan.chosen.layout) return;
    row.cells[0].text = "-";
    row.cells[1].text += ", refined";
  };
  if (is_refined)
    add(plan.chosen.layout, true);
  else if (plan.chosen.of < most)
    table.list = "layouts";
  for (std::size_t i = 0; i < plan.layouts.size(); ++i) {
    const bool is_chosen = !is_refined && i == plan.chosen.of;
    if (i < most || is_chosen) add(plan.layouts[i], is_chosen);
  }
  table.of = plan.layouts.size() + (is_refined ? 1 : 0);
  table.add_columns("<");
  // Models of images have a rate in images instead of tokens.
  if (plan.sample != "sequence")
    for (ReportColumn& column : table.columns)
      if (column.heading.starts_with("tokens/s"))
        column.heading =
            fmt::format("{}s/s{}", plan.sample, column.heading.substr(std::string_view{"tokens/s"}.size()));
  return table;
}

// The chosen layout in the configuration of each framework that can express it.
std::vector<ReportCode> flags_of(const ChosenLayoutAnswer& chosen, const std::string& platform) {
  const RankedLayoutAnswer& l = chosen.layout;
  std::vector<ReportCode> all;
  if (l.torchtitan_toml) all.push_back({"TorchTitan", *l.torchtitan_toml});
  if (l.deepspeed_json) all.push_back({"DeepSpeed", *l.deepspeed_json});
  if (l.megatron_flags) {
    all.push_back({fmt::format("Megatron-LM (`stepcast predict` --platform {}{} accepts these flags)",
                               platform, chosen.promised_ms != l.step_ms ? " --layout as-planned" : ""),
                   *l.megatron_flags});
  }
  return all;
}

// The configuration for the framework that was asked for; else the flags of Megatron-LM; else a sentence that
// there are none.
std::string flags_text(const PlanAnswer& plan) {
  const std::vector<ReportCode> all = flags_of(plan.chosen, plan.platform);
  const std::string_view wanted = rule_of(plan.framework).search.told_in;
  for (const std::string_view name : {wanted, std::string_view{"Megatron"}}) {
    for (const ReportCode& code : all) {
      if (!code.label.starts_with(name)) continue;
      const bool is_one_line = name == "Megatron";
      return fmt::format("\n{}:\n{}{}{}", code.label, is_one_line ? "  " : "", code.text,
                         is_one_line ? "\n" : "");
    }
  }
  return "\nMegatron-LM has no flags for this layout.\n";
}

// Adds the memory of the chosen layout's worst stage and the flags to run it.
void add_choice(ReportDocument& document, const PlanAnswer& plan) {
  const ChosenLayoutAnswer& chosen = plan.chosen;
  const StageMemory& m = chosen.worst_stage;
  const auto GiB = [](Bytes bytes) { return bytes.value() / kGiB; };
  const std::string memory = fmt::format(
      "Memory of stage {}: {:.1f} GiB of {:.1f}: weights {:.1f}, gradients {:.1f}, optimizer {:.1f}, "
      "activations {:.1f}, working {:.1f}, rest {:.1f}",
      chosen.layout.worst_stage, chosen.layout.peak_GiB, plan.memory_GiB, GiB(m.weights), GiB(m.gradients),
      GiB(m.optimizer), GiB(m.activations), GiB(m.working), GiB(m.communication + m.context + m.reserve));
  add_lines(document, "\n" + why_alike(plan) + memory + "\n" + flags_text(plan));
  ReportSection& section = document.add("To run the chosen layout", {ReportText{memory + "."}});
  section.shown = Shown::page;
  for (ReportCode& code : flags_of(chosen, plan.platform)) section.add(std::move(code));
}

// Adds the ranking of layouts when the speed of GPUs differs from step to step, the steadiest first.
void add_jitter(ReportDocument& document, const PlanAnswer& plan) {
  if (plan.jittered.empty()) return;
  std::vector<JitteredLayout> steady = plan.jittered;
  std::ranges::stable_sort(steady, {}, &JitteredLayout::p90_ms);
  ReportTable table{"# | layout<"};
  table.indent = 0;
  table.of = steady.size();
  for (std::size_t i = 0; i < std::min(plan.top, steady.size()); ++i) {
    const RankedLayoutAnswer& layout = plan.layouts[steady[i].of];
    add_row(table, {std::to_string(layout.rank), to_string(layout.point)}, steady[i])
        .cell(fmt::format("{}{}", layout.alike ? "~" : "", steady[i].of == plan.chosen.of ? " chosen" : ""));
  }
  table.add_columns("<");
  ReportSection& section = document.add("With variation of GPU speed", {std::move(table)});
  section.is_asked = true;
  section.opening = fmt::format(
      "\nWith random variation of GPU speed ({} scenarios), by the 90th percentile of the step. Chosen: "
      "the\nfirst with enough headroom among those tied with the fastest without variation:\n",
      JitterOptions{}.scenarios);
}

// Adds the Pareto front of step time and memory: the fastest layout, the smallest, and some in between.
void add_pareto(ReportDocument& document, const PlanAnswer& plan) {
  // Layouts that take more than twice the time of the fastest are of no interest.
  std::size_t on_front = 0;
  while (on_front < plan.pareto.size() && plan.pareto[on_front].step_ms <= 2 * plan.pareto.front().step_ms)
    ++on_front;
  if (on_front < 2) return;
  constexpr std::size_t kMost = 8;
  ReportTable table{"step\nms | headroom\nGiB | layout<"};
  table.indent = 0;
  // Evenly spaced along the front, including both ends.
  const std::size_t n = std::min(kMost, on_front);
  for (std::size_t i = 0; i < n; ++i) {
    const LayoutAnswer& l = plan.pareto[i * (on_front - 1) / (n - 1)];
    table.row({number(l.step_ms), number(l.margin_GiB), to_string(l.point)});
  }
  table.of = on_front;
  document.add("Pareto-optimal layouts", {std::move(table)}).opening =
      "\nPareto-optimal in time and memory\n";
}

// Adds the refinements that were faster, and why none of them was chosen if that is so.
void add_refined(ReportDocument& document, const PlanAnswer& plan) {
  if (plan.refined.empty()) return;
  constexpr std::size_t kMostShown = 5;
  ReportTable table{"#"};
  table.indent = 0;
  table.list = "refined";
  table.of = plan.refined.size();
  for (std::size_t i = 0; i < std::min(kMostShown, plan.refined.size()); ++i) {
    const RefinedLayoutAnswer& r = plan.refined[i];
    ReportCell changed{shorten(join(r.changes, "; "), 150)};
    changed.copies = r.megatron_flags;
    add_row(table, {std::to_string(plan.layouts[r.of].rank)}, r).cell(std::move(changed));
  }
  table.add_columns("changed<");
  constexpr std::string_view kTitle = "Refined: uneven stages, partial recomputation, recipe options";
  ReportSection& section = document.add(std::string{kTitle}, {std::move(table)});
  section.opening =
      fmt::format("\n{}; {} of {} layouts became faster\n", kTitle, plan.refined.size(), plan.n_refined);
  if (!plan.chosen.changes.empty()) return;
  section.add(TerminalText{
      plan.refined.front().step_ms < plan.chosen.layout.step_ms
          ? "None of them is chosen: too little headroom, no flags in the framework, or an objective other "
            "than step time.\n"
          : "None of them is faster than the chosen layout.\n"});
}

// Adds better layouts near the one that runs now.
void add_now(ReportDocument& document, const PlanAnswer& plan) {
  if (!plan.now) return;
  const RunningLayoutAnswer& now = *plan.now;
  std::string is = fmt::format("Now: {}, ", to_string(now.point));
  is += now.step_ms ? fmt::format("forecast {}", duration_text(*now.step_ms))
                    : fmt::format("not priced: {}", now.why_no_time.value_or(""));
  ReportTable table{"changes | step\nms | of now\n% | memory\nGiB | changed<"};
  table.indent = 0;
  for (const NearbyLayoutAnswer& n : now.nearby) {
    const double percent_of_now = 100 * n.becomes.step_ms / now.step_ms.value_or(1);
    table.row({std::to_string(n.changes)})
        .numbers({n.becomes.step_ms, percent_of_now, n.becomes.peak_GiB}, 1)
        .cell(n.which);
  }
  ReportSection& section = document.add("Better layouts near the running one");
  section.is_asked = true;
  section.opening = "\n";
  section.add(ReportText{is, 0});
  if (!now.nearby.empty())
    section.add(std::move(table));
  else if (now.step_ms)
    section.add(ReportText{"No layout of the search space is faster.", 0});
}

// The gain and the cost of idle GPUs: "256 of 384 GPUs: 3.03 s, 10.0 % shorter than on all. ...".
std::string idle_text(const PlanAnswer& plan, std::int64_t given) {
  if (plan.n_gpus == given)
    return "No plan on fewer GPUs has a shorter step; of several nodes, whole ones were tried.";
  const double ms = plan.chosen.promised_ms, used = as_double(plan.n_gpus), all = as_double(given);
  const auto on_all = std::ranges::find_if(plan.alternatives, [&](const PlanAlternativeAnswer& other) {
    return other.global_batch_sequences == plan.global_batch_sequences;
  });
  std::string text =
      fmt::format("{} of {} GPUs: {}", table_count(plan.n_gpus), table_count(given), duration_text(ms));
  constexpr double kShown = 5e-4;  // 0.1 %, rounded
  text += on_all == plan.alternatives.end() ? "; no layout runs and fits on all."
          : 1 - ms / on_all->step_ms < kShown
              ? ", as fast as on all."
              : fmt::format(", {:.1f} % shorter than on all.", 100 * (1 - ms / on_all->step_ms));
  text += fmt::format(" {} GPUs stay idle: {} GPU-s per step.", table_count(given - plan.n_gpus),
                      number((all - used) * ms * 1e-3));
  if (on_all != plan.alternatives.end())
    text += fmt::format(" Without them a step costs {:.1f} % fewer GPU-hours.",
                        100 * (1 - used * ms / (all * on_all->step_ms)));
  return text;
}

// Adds the comparison with the plan on all given GPUs, and with batches that divide better.
void add_alternatives(ReportDocument& document, const PlanAnswer& plan) {
  if (!plan.gpu_limit) return;
  ReportTable table;
  table.indent = 0;
  const auto add = [&](const PlanAlternativeAnswer& one) {
    add_row(table, {}, one).cells.back().copies = one.command.value_or("");
  };
  const double ms = plan.chosen.promised_ms, sequences = as_double(plan.global_batch_sequences);
  add({.n_gpus = plan.n_gpus,
       .global_batch_sequences = plan.global_batch_sequences,
       .step_ms = ms,
       .ms_per_sequence = ms / sequences,
       .gpu_s_per_sequence = as_double(plan.n_gpus) * ms * 1e-3 / sequences,
       .layout = to_string(plan.chosen.layout.point) + " (chosen)"});
  for (const PlanAlternativeAnswer& other : plan.alternatives) add(other);
  const std::string title = fmt::format("On at most {} GPUs", table_count(*plan.gpu_limit));
  ReportSection& section = document.add(title);
  section.is_asked = true;
  section.opening = "\n" + title + "\n";
  section.add(ReportText{idle_text(plan, *plan.gpu_limit), 0});
  if (!plan.alternatives.empty()) section.add(std::move(table));
}

// The content of the first screen.
FirstScreen first_screen_of(const PlanAnswer& plan) {
  constexpr std::size_t kMostLayouts = 4;
  FirstScreen screen;
  screen.most_figures = 2;  // step time and memory
  screen.why = fmt::format("Run {}", name_of(plan.chosen));
  screen.why += plan.chosen.reason.empty() ? "." : fmt::format(": {}.", plan.chosen.reason);
  screen.why += fmt::format(" {} of {} layouts tie within forecast error (~).", table_count(plan.n_alike),
                            table_count(plan.n.all));
  ReportTable layouts = layouts_table(plan, kMostLayouts);
  layouts.on_first_screen = {"#", "layout", "step\nms", "memory\nGiB", ""};
  screen.blocks.emplace_back(std::move(layouts));
  if (const std::vector<ReportCode> flags = flags_of(plan.chosen, plan.platform); !flags.empty())
    screen.blocks.emplace_back(
        ReportCode{"Megatron-LM flags (stepcast predict accepts them)", flags.back().text});
  screen.notes = plan.notes;
  return screen;
}

}  // namespace

ReportDocument plan_document(const PlanAnswer& plan) {
  const RankedLayoutAnswer& chosen = plan.chosen.layout;
  ReportDocument document;
  document.title = fmt::format("Layouts of {} on {} x {}", plan.model, table_count(plan.n_gpus), plan.gpu);
  document.subject = {fmt::format("{}; {}", plan.platform, batch_text(plan))};
  document.verdict =
      fmt::format("Run {}: {}", name_of(plan.chosen), numbers_of(plan.chosen, plan.memory_GiB));
  document.verdict += plan.chosen.reason.empty() ? "." : fmt::format("; {}.", plan.chosen.reason);
  document.figures = {
      {"Expected step time", duration_text(plan.chosen.promised_ms),
       band_text(plan.chosen.promised_ms, plan.chosen.promised_p10_ms, plan.chosen.promised_p90_ms),
       std::string{to_string(chosen.source)}, "chosen_layout.promised_step_time_ms"},
      {"Memory of a GPU", number(chosen.peak_GiB) + " GiB", fmt::format("of {:.1f}", plan.memory_GiB),
       "analytic", "chosen_layout.peak_memory_GiB"},
      {"Layouts", table_count(plan.n.all), table_count(plan.n.priced) + " valid, fit and priced"},
      {"Tied with the fastest", table_count(plan.n_alike), "within forecast error"}};
  document.first_screen = first_screen_of(plan);
  add_lines(document, fmt::format("{} on {} x {} ({}): {}\n{}\n", plan.model, table_count(plan.n_gpus),
                                  plan.gpu, plan.platform, batch_text(plan), document.verdict));
  document.add("Time against memory", {pareto_figure(plan)}).shown = Shown::page;
  document.add("", {TerminalText{"\n"}, layouts_table(plan, plan.top)}).shown = Shown::terminal;
  ReportTable layouts = layouts_table(plan, kMostRows);
  layouts.caption = why_alike(plan) + " copy: the flags of Megatron-LM.";
  document.add("Layouts", {std::move(layouts)}).shown = Shown::page;
  add_choice(document, plan);
  add_alternatives(document, plan);
  add_jitter(document, plan);
  add_pareto(document, plan);
  add_refined(document, plan);
  if (!plan.notes.empty()) document.add("Notes", {ReportList{plan.notes, "note: "}}).opening = "\n";
  add_now(document, plan);
  add_space(document, plan);
  add_rejections(document, plan);
  document.json = plan_json(plan);
  return document;
}

}  // namespace stepcast
