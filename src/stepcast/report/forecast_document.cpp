#include "stepcast/report/forecast_document.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/detail/spread_sections.h"
#include "stepcast/report/forecast_json.h"
#include "stepcast/report/forecast_text.h"
#include "stepcast/report/html/charts.h"
#include "stepcast/report/text_table.h"

namespace stepcast {
namespace {

using detail::band_text;
using detail::gib;
using detail::kMemoryParts;
using detail::kMostClassesDrawn;
using detail::memory_bar;
using detail::memory_figure;
using detail::MemoryPart;
using detail::ms_text;
using detail::parts_figure;
using detail::parts_table;
using detail::percent_text;

constexpr std::size_t kMostCollectives = 12;

void add_memory(ReportDocument& document, const Forecast& f) {
  if (!f.memory || f.memory->stages.empty()) return;
  const ForecastMemory& memory = *f.memory;
  const bool staged = memory.stages.size() > 1;
  std::vector<Bar> bars;
  ReportTable table{{{"stage", false}, {"in all GiB"}, {"to spare"}}, {}};
  if (staged) table.emphasized = memory.worst_stage;
  for (const MemoryPart& part : kMemoryParts) table.columns.push_back({part.name});
  table.columns.push_back({"", false});
  for (std::size_t s = 0; s < memory.stages.size(); ++s) {
    const ForecastStageMemory& stage = memory.stages[s];
    const std::string name = staged ? fmt::format("stage {}", s) : std::string{"every GPU"};
    std::vector<ReportCell> row{name, gib(stage.total_GiB), gib(memory.available_GiB - stage.total_GiB)};
    for (const MemoryPart& part : kMemoryParts) {
      row.emplace_back(gib(stage.*part.value));
    }
    row.emplace_back(stage.verdict.empty() ? memory.verdict : stage.verdict);
    table.rows.push_back(std::move(row));
    if (s < kMostClassesDrawn) bars.push_back(memory_bar(name, stage, memory.available_GiB));
  }
  table.caption =
      "Analytic: bytes of what the description says is kept, with a reserve for the allocator and the "
      "libraries.";
  document.sections.push_back({"Memory of a GPU", {memory_figure(std::move(bars)), table}});
}

void add_sensitivity(ReportDocument& document, const Sensitivity* sensitivity) {
  if (sensitivity == nullptr || sensitivity->resources.empty()) return;
  BarChart chart{.bars = {}, .unit = "ms", .with_legend = false};
  ReportTable table{{{"resource", false},
                     {"on the path ms"},
                     {"elasticity"},
                     {"10 % faster saves ms"},
                     {"% of the step"},
                     {"", false}},
                    {}};
  double most = 0;
  for (const ResourceSensitivity& one : sensitivity->resources) most = std::max(most, one.saved_ms);
  chart.decimals = most >= 100 ? 1 : most >= 1 ? 2 : 3;
  for (const ResourceSensitivity& one : sensitivity->resources) {
    const char* const note = one.switches_at_once ? "another path is as long"
                             : one.switches       ? "another path takes over"
                                                  : "";
    table.rows.push_back({one.resource, ms_text(one.path_ms), table_number(one.elasticity, 3),
                          ms_text(one.saved_ms), percent_text(one.saved_ms, sensitivity->step_time_ms),
                          note});
    if (one.saved_ms > 5e-3 * most) {
      chart.bars.push_back({one.resource,
                            {{"c-accent", "saved", one.saved_ms}},
                            percent_text(one.saved_ms, sensitivity->step_time_ms) + " %",
                            {}});
    }
  }
  table.caption =
      "Elasticity: relative change of the step over that of the times of the resource. Simulated anew with "
      "each resource 10 % faster, all else unchanged.";
  document.sections.push_back(
      {"What 10 % more of a resource would save", {ReportFigure{bar_chart(chart), ""}, table}});
}

void add_collectives(ReportDocument& document, const Forecast& f) {
  std::vector<const ForecastCollective*> all;
  for (const ForecastCollective& one : f.collectives) all.push_back(&one);
  if (all.empty()) return;
  std::stable_sort(all.begin(), all.end(), [](const ForecastCollective* a, const ForecastCollective* b) {
    return a->total_wait_us + a->transfer_us > b->total_wait_us + b->transfer_us;
  });
  ReportTable table{{{"collective", false},
                     {"group", false},
                     {"message", true},
                     {"ranks"},
                     {"transfer us"},
                     {"longest wait us"},
                     {"came last", false}},
                    {}};
  for (std::size_t i = 0; i < std::min(all.size(), kMostCollectives); ++i) {
    const ForecastCollective& one = *all[i];
    ReportCell bytes{one.message_bytes ? table_bytes(*one.message_bytes) : "-",
                     one.message_bytes.value_or(0)};
    table.rows.push_back({shorten(one.name, 60), one.group, std::move(bytes), table_count(one.members.size()),
                          table_number(one.transfer_us, 1), table_number(one.longest_wait_us, 1),
                          one.came_last < f.classes.size() ? f.classes[one.came_last].name : ""});
  }
  table.caption = fmt::format("Those that cost most of {}.", table_count(f.n_collectives));
  document.sections.push_back({"Collectives that ranks meet in", {table}, true});
}

void add_operations(ReportDocument& document, const Forecast& f) {
  if (f.explained.empty()) return;
  ReportSection section{"Operations of a layer, and what their times rest on", {}, true};
  for (const ForecastItemList& list : f.explained) {
    ReportTable table{{{list.name, false},
                       {"what", false},
                       {"n"},
                       {"us"},
                       {"p10"},
                       {"p90"},
                       {"GFLOP"},
                       {"MB"},
                       {"rests on", false}},
                      {}};
    for (const ForecastItem& item : list.items) {
      table.rows.push_back({item.name, shorten(item.what, 80), table_number(item.n, 0),
                            table_number(item.time_us, 1), table_number(item.alone_p10_us, 1),
                            table_number(item.alone_p90_us, 1), table_number(item.flops * 1e-9, 1),
                            table_number(item.bytes * 1e-6, 1), std::string{to_string(item.source)}});
    }
    if (!table.rows.empty()) section.blocks.push_back(std::move(table));
  }
  if (!section.blocks.empty()) document.sections.push_back(std::move(section));
}

void add_grounds(ReportDocument& document, const Forecast& f) {
  ReportSection section{"What this rests on"};
  const ForecastCoverage& c = f.coverage;
  if (c.sum() > 0) {
    BarChart chart{.bars = {{"time of the work", {}, "", {}}}, .unit = "%", .decimals = 0};
    for (const auto& [colour, name, share] : {std::tuple{"c-gemm", "measured", c.measured},
                                              std::tuple{"c-attention", "fitted to measurements", c.fitted},
                                              std::tuple{"c-pipe c-working", "analytic", c.analytic},
                                              std::tuple{"c-cpu c-buffers", "assumed", c.assumed}}) {
      if (share > 0) chart.bars.front().parts.push_back({colour, name, 100 * share});
    }
    section.blocks.push_back(
        ReportFigure{bar_chart(chart), "Shares of the time of GPU work and communication."});
    section.blocks.push_back(ReportText{fmt::format(
        "Measured {:.0f} %, fitted {:.0f} %, analytic {:.0f} %, assumed {:.0f} % of the time of GPU work and "
        "communication. Between p10 and p90 80 of 100 measurements should lie.",
        100 * c.measured, 100 * c.fitted, 100 * c.analytic, 100 * c.assumed)});
  }
  if (!c.unmodelled.empty()) {
    ReportTable table{{{"no model covers", false}, {"times"}, {"counted with ms"}}, {}};
    for (const ForecastUnmodelled& one : c.unmodelled) {
      table.rows.push_back({shorten(one.name, 80), table_count(one.n), ms_text(one.time_ms)});
    }
    section.blocks.push_back(std::move(table));
  }
  if (!f.notes.empty()) section.blocks.push_back(ReportList{f.notes});
  if (f.published) {
    section.blocks.push_back(ReportText{
        fmt::format("Composed as the published operator-level method does from the same prices: {} ms.",
                    ms_text(f.published->step_time_ms))});
  }
  document.sections.push_back(std::move(section));
}

void add_settings(ReportDocument& document, const Forecast& f) {
  if (f.layout.empty()) return;
  ReportTable table{{{"setting", false}, {"value", false}}, {}};
  for (const Setting& setting : f.layout) {
    std::string text;
    if (const auto* flag = std::get_if<bool>(&setting.value)) text = *flag ? "yes" : "no";
    if (const auto* number = std::get_if<double>(&setting.value)) text = fmt::format("{:.10g}", *number);
    if (const auto* word = std::get_if<std::string>(&setting.value)) text = *word;
    table.rows.push_back({setting.name, std::move(text)});
  }
  document.sections.push_back({"Layout and settings", {table}, true});
}

}  // namespace

std::string forecast_verdict(const Forecast& f) {
  std::string text = fmt::format("A step takes {} ms", ms_text(f.step_time_ms));
  if (const std::string band = band_text(f.step_time_p10_ms, f.step_time_p90_ms); !band.empty()) {
    text += fmt::format(" ({})", band);
  }
  if (f.memory) {
    const ForecastMemory& m = *f.memory;
    text +=
        m.margin_GiB < 0
            ? fmt::format(" and does not fit: {} GiB of memory are missing", gib(-m.margin_GiB))
            : fmt::format(" and fits{}, with {} of {} GiB to spare", m.verdict == "tight" ? " tightly" : "",
                          gib(m.margin_GiB), gib(m.available_GiB));
  }
  text += '.';
  if (f.classes.empty() || f.critical_class >= f.classes.size()) return text;
  const ForecastClass& c = f.critical();
  text += fmt::format(" GPUs compute for {} % of it", percent_text(c.computation_ms, c.window_ms));
  const NamedTimes parts = c.parts();
  const NamedTime* loss = nullptr;
  for (const NamedTime& part : parts) {
    if (part.key.starts_with("computation")) continue;
    if (loss == nullptr || part.time_ms > loss->time_ms) loss = &part;
  }
  if (loss != nullptr && loss->time_ms > 0) {
    text += fmt::format("; the largest loss is {} ({} ms, {} %)", part_text(loss->key),
                        ms_text(loss->time_ms), percent_text(loss->time_ms, c.window_ms));
  }
  return text + '.';
}

ReportDocument forecast_document(const Forecast& f, const ForecastIllustrations& illustrations) {
  ReportDocument document;
  document.subject = forecast_subject(f);
  document.title = fmt::format("{} on {} x {}", f.model ? *f.model : f.traces.value_or("a step"),
                               table_count(f.n_gpus), f.gpu.value_or("GPU"));
  document.verdict = forecast_verdict(f);
  document.figures.push_back({"Step time", ms_text(f.step_time_ms) + " ms",
                              band_text(f.step_time_p10_ms, f.step_time_p90_ms),
                              std::string{to_string(f.source)}});
  if (f.memory) {
    document.figures.push_back({"Memory of a GPU", gib(f.memory->peak_memory_GiB) + " GiB",
                                fmt::format("of {}; {}", gib(f.memory->available_GiB), f.memory->verdict),
                                "analytic"});
  }
  detail::add_throughput_figures(document, f);
  const StepPictures* pictures = illustrations.pictures;
  if (!f.classes.empty() && f.critical_class < f.classes.size()) {
    const bool several = f.classes.size() > 1;
    document.sections.push_back(
        {"Where the time goes",
         {parts_figure(
              f.classes,
              several ? "Parts of the step, one bar for each class of ranks; they sum to the step." : ""),
          parts_table(f.critical())}});
    if (several)
      document.sections.back().blocks.insert(document.sections.back().blocks.begin() + 1,
                                             ReportText{fmt::format("{} ends last:", f.critical().name)});
  }
  add_memory(document, f);
  if (pictures != nullptr) {
    detail::add_schedule(
        document, "Schedule of the pipeline", pictures->passes,
        "Forward and backward passes of every stage with the number of their micro-batch; thin strips are "
        "transfers of weights and gradients. Empty is idle.");
    if (pictures->passes.rows.empty()) {
      detail::add_schedule(
          document, "What every rank does over the step", pictures->ranks,
          "At every moment the first of these that holds: computation, communication, copies, waiting.");
    }
  }
  detail::add_training_section(document, f);
  add_sensitivity(document, illustrations.sensitivity);
  detail::add_streams(document, f);
  detail::add_distributions(document, f);
  detail::add_critical_path(document, f, pictures != nullptr ? &pictures->path : nullptr);
  add_collectives(document, f);
  add_operations(document, f);
  add_settings(document, f);
  add_grounds(document, f);
  document.json = forecast_json(f);
  return document;
}

}  // namespace stepcast
