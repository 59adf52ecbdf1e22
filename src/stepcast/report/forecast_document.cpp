// The document of a forecast. A terminal prints, in this order: the question with memory and notes, the step
// time, the check of a measured step, what to change, where the time goes, the sources of the numbers, then
// the sections for what was asked. A page shows the key figures first and adds pictures and long tables
// (add_page_sections()). The first screen has its own, much shorter selection (first_screen_of()).
#include "stepcast/report/forecast_document.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <tuple>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "stepcast/base/one_line.h"
#include "stepcast/base/text.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/detail/document_parts.h"
#include "stepcast/report/fields/field_table.h"
#include "stepcast/report/forecast_json.h"
#include "stepcast/report/html/charts.h"

namespace stepcast {
namespace {

using detail::kMemoryParts;
using detail::memory_bar;
using detail::MemoryPart;
using detail::part_cell;

// Rows of the table of collectives on a page.
constexpr std::size_t kMostCollectives = 12;

// The number of decimals for times of a step with this length and for its parts.
int decimals(double step_ms) { return step_ms < 10 ? 3 : 1; }

// A duration in minutes, hours or days.
std::string duration(double seconds) {
  if (seconds < 3600) return fmt::format("{:.1f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.1f} days", seconds / 86400);
}

// The value of a setting of the layout; 0 or empty if the forecast does not have it.
template <class T>
T said(const Forecast& f, std::string_view name) {
  const auto setting = std::ranges::find(f.layout, name, &Setting::name);
  const T* value = setting == f.layout.end() ? nullptr : std::get_if<T>(&setting->value);
  return value != nullptr ? *value : T{};
}
std::int64_t number(const Forecast& f, std::string_view name) {
  return static_cast<std::int64_t>(said<double>(f, name));
}

// The model and the machine in one line: "llama-3-8b (8,030,261,248 parameters) on 64 x H100 (dgx-h100)".
std::string subject(const Forecast& f) {
  std::string line = in_one_line(f.model ? *f.model : f.traces.value_or("a step"));
  if (f.parameters) line += fmt::format(" ({} parameters)", table_count(*f.parameters));
  line += fmt::format(" on {} x {}", f.n_gpus, f.gpu.value_or("GPU"));
  if (f.platform) line += fmt::format(" ({})", *f.platform);
  return line;
}

// The parallel degrees and the batch in one line.
std::string layout_line(const Forecast& f) {
  const std::int64_t virtual_stages = number(f, "virtual_stages"), expert = number(f, "expert_parallel");
  const std::int64_t micro_batch = number(f, "micro_batch_sequences");
  const std::string& sample = f.throughput.sample;
  return fmt::format(
      "tensor {} x pipeline {}{} x context {} x data {}{}; {} per micro-batch, {} {}s per step",
      number(f, "tensor_parallel"), number(f, "pipeline_parallel"),
      virtual_stages > 1 ? fmt::format(" ({} virtual stages)", virtual_stages) : "",
      number(f, "context_parallel"), number(f, "data_parallel"),
      expert > 1 ? fmt::format(", expert {}", expert) : "",
      f.throughput.tokens_per_step ? fmt::format("{} x {} tokens", micro_batch, number(f, "seq_len_tokens"))
                                   : counted(micro_batch, sample, sample + "s"),
      number(f, "global_batch_sequences"), sample);
}

// The software in one line. It is shown with the layout because it affects the time as much. Empty if it is
// unknown.
std::string software_line(const Forecast& f) {
  const auto word = [&](std::string_view name) { return said<std::string>(f, name); };
  if (word("framework").empty()) return {};
  const std::string date = word("framework_date"), attention = word("attention");
  return fmt::format("{}{}, {}{}, sharding {}, recomputation {}", word("framework"),
                     date.empty() ? "" : " of " + date, word("dtype"),
                     attention.empty() ? "" : fmt::format(", {} attention", attention), word("sharding"),
                     word("recompute"));
}

// The owner of stages[s]: a pipeline stage, or in a dry run with several rank classes one of these.
std::string memory_owner(const Forecast& f, std::size_t s) {
  const bool of_ranks = f.kind == "trace" && f.memory->stages.size() == f.classes.size();
  return of_ranks && f.classes.size() > 1 ? f.classes[s].name : fmt::format("stage {}", s);
}

// The lines about memory: whether the job fits, and how much of the memory each part takes.
std::string memory(const Forecast& f) {
  const ForecastMemory& m = *f.memory;
  if (m.worst_stage >= m.stages.size()) return {};
  const ForecastStageMemory& s = m.stages[m.worst_stage];
  std::string text = fmt::format(
      "\nMemory: {}; {} GiB of {} GiB on {}, {} GiB {}\n  (weights {}, gradients {}, optimizer {}, "
      "activations {}, working {}, buffers and reserve {})\n",
      m.verdict, gib(m.peak_memory_GiB), gib(m.available_GiB), memory_owner(f, m.worst_stage),
      gib(std::abs(m.margin_GiB)), m.margin_GiB < 0 ? "missing" : "headroom", gib(s.weights_GiB),
      gib(s.gradients_GiB), gib(s.optimizer_GiB), gib(s.activations_GiB), gib(s.working_GiB),
      gib(s.communication_GiB + s.reserve_GiB));
  if (s.allocated_GiB && s.reserved_GiB)
    text += fmt::format("  (PyTorch's allocator: {} GiB allocated, {} GiB reserved)\n", gib(*s.allocated_GiB),
                        gib(*s.reserved_GiB));
  if (!m.worst_imbalance || !m.fits_to_imbalance || !s.worst_imbalance_GiB) return text;
  const bool holds_all = *m.fits_to_imbalance >= *m.worst_imbalance;
  text += fmt::format("  (tokens at experts: {}. No token is dropped: {} GiB if all went to one rank, {})\n",
                      gib(s.dispatched_GiB), gib(*s.worst_imbalance_GiB),
                      holds_all ? "which fits"
                      : *m.fits_to_imbalance < 1
                          ? "balanced experts do not fit"
                          : fmt::format("fits up to a load of {:.2f} x the mean", *m.fits_to_imbalance));
  return text;
}

// The first lines in a terminal. Memory and notes come before the step time, because readers need them to
// judge it.
void add_opening(ReportDocument& document, const Forecast& f) {
  std::string text;
  for (const std::string& line : document.subject) text += line + "\n";
  if (f.memory) text += memory(f);
  if (!f.notes.empty()) text += "\n";
  for (const std::string& note : f.notes) text += fmt::format("note: {}\n", note);
  const int digits = decimals(f.step_time_ms);
  text += fmt::format("\nStep time {} ms (p10 {}, p90 {}); {}\n", table_number(f.step_time_ms, digits),
                      table_number(f.step_time_p10_ms, digits), table_number(f.step_time_p90_ms, digits),
                      to_string(f.source));
  if (f.promised_ms() != f.step_time_ms)
    text += fmt::format("Expected {} ms (p10 {}, p90 {}): the forecast x {:.2f}\n",
                        table_number(f.promised_ms(), digits), table_number(f.promised_p10_ms(), digits),
                        table_number(f.promised_p90_ms(), digits), f.promised_ms() / f.step_time_ms);
  text += "\n";
  document.add("", {TerminalText{std::move(text)}}).shown = Shown::terminal;
}

// The sentence about the nearest published runs: their model, number of GPUs and source, and the ratio of
// measured to forecast step time (median, minimum, maximum).
std::string published_text(const PublishedRuns& p) {
  std::string text = fmt::format(
      "Nearest published runs: {} in {} on {} x {} with {} ({}, {}): measured over forecast {:.2f} ({:.2f} "
      "to {:.2f})",
      p.model, p.precision,
      p.min_gpus == p.max_gpus ? table_count(p.min_gpus)
                               : fmt::format("{} to {}", table_count(p.min_gpus), table_count(p.max_gpus)),
      p.gpu, p.framework, p.source, counted(p.runs, "run", "runs"), p.measured_over_forecast,
      p.min_measured_over_forecast, p.max_measured_over_forecast);
  return text + (p.differs.empty() ? "." : fmt::format(". They differ in {}.", p.differs));
}

// The section "Is the measured step normal?", if a measured step of this job was given.
void add_measured_check(ReportDocument& document, const Forecast& f) {
  if (!f.measured_check) return;
  const MeasuredCheck& check = *f.measured_check;
  ReportSection& section = document.add("Is the measured step normal?", {ReportText{check.sentence}});
  section.opening = "Is the measured step normal?\n";
  ReportTable causes;
  causes.list = "measured_check.causes";
  for (const MeasuredCause& cause : check.causes) add_row(causes, {}, cause);
  if (!causes.rows.empty()) section.add(std::move(causes));
  if (check.nearest_published) section.add(ReportText{published_text(*check.nearest_published)});
  section.add(TerminalText{"\n"});
}

// The parts of the critical class with their share of the step. Parts below 0.05 % are left out.
ReportTable breakdown(const Forecast& f) {
  const ForecastClass& c = f.critical();
  ReportTable table{"where the time goes< | ms | %"};
  const bool is_one_of_many = f.classes.size() > 1 || number(f, "pipeline_parallel") > 1;
  if (is_one_of_many) table.columns.front().heading += fmt::format(" on {}", c.name);
  for (const NamedTime& part : c.parts()) {
    if (part.time_ms < 0.0005 * c.window_ms) continue;
    table.row({part_cell(part.key), table_number(part.time_ms, decimals(c.window_ms)),
               table_number(100 * part.time_ms / c.window_ms, 1)});
  }
  return table;
}

// A table of recorded ranks, one row each.
ReportTable ranks(const Forecast& f) {
  ReportTable table{
      "rank< | step ms | begins | computation | exposed comm. | waits for CPU | for ranks | other idle"};
  for (const ForecastClass& c : f.classes) {
    const double cpu = time_ms(c.idle_ms, "cpu"), others = time_ms(c.idle_ms, "other_rank");
    table.row({c.name}).numbers({c.window_ms, c.start_offset_ms, c.computation_ms, c.exposed_comm_ms, cpu,
                                 others, sum_ms(c.idle_ms) - cpu - others},
                                2);
  }
  return table;
}

// The section on where the time goes: picture, table, recorded ranks, expert load and, in a terminal,
// throughput.
void add_breakdown(ReportDocument& document, const Forecast& f) {
  ReportSection& section = document.add("Where the time goes");
  section.opening.emplace();
  const TerminalText gap{"\n"};
  if (!f.classes.empty()) {
    if (document.has_page()) {
      section.add(detail::parts_figure(
          f.classes, f.classes.size() > 1
                         ? "Parts of the step, one bar per class of ranks. The parts sum to the step."
                         : ""));
    }
    section.add(breakdown(f));
    section.add(gap);
  }
  if (f.classes.size() > 1 && f.classes.front().rank) {
    section.add(ranks(f));
    section.add(gap);
  }
  if (f.expert_load) {
    const ForecastExpertLoad& l = *f.expert_load;
    section.add(
        ReportText{fmt::format("expert load {}: the busiest rank has {:.2f} x the mean. Cost against "
                               "balanced experts: {} ms ({:.1f} %)",
                               l.load, l.busiest_over_mean, table_number(l.cost_ms, 1),
                               f.step_time_ms > 0 ? 100 * l.cost_ms / f.step_time_ms : 0)});
  }
  if (const std::string rates = throughput_text(f); !rates.empty())
    section.add(ReportText{rates}, Shown::terminal);
}

// The section on the sources of the time: shares by kind of source, and work that no model covers.
void add_grounds(ReportDocument& document, const Forecast& f, Shown on) {
  ReportSection& section = document.add("Sources of this forecast");
  section.shown = on;
  section.opening.emplace();
  const ForecastCoverage& c = f.coverage;
  BarChart chart{.bars = {{"time of the work", {}, "", {}}}, .unit = "%", .decimals = 0};
  std::string line;
  for (const auto& [colour, source, name, share] :
       {std::tuple{"c-gemm", "measured", "measured", c.measured},
        {"c-attention", "fitted", "fitted to measurements", c.fitted},
        {"c-pipe c-working", "analytic", "analytic", c.analytic},
        // Shares below 0.5 % would print as 0 %.
        {"c-cpu c-buffers", "assumed", "assumed", c.assumed}}) {
    if (share > 0) chart.bars.front().parts.push_back({colour, name, 100 * share});
    if (share >= 0.005) line += fmt::format("{} {} {:.0f} %", line.empty() ? "" : ",", source, 100 * share);
  }
  if (on == Shown::page && c.sum() > 0) {
    section.add(ReportFigure{bar_chart(chart),
                             "Shares of the time of GPU work and communication. 80 % of measurements should "
                             "lie between p10 and p90."});
  }
  if (!line.empty()) {
    section.add(ReportText{fmt::format("sources of the time of GPU work and communication:{}", line)});
    constexpr std::size_t kShown = 5;
    for (std::size_t i = 0; i < c.unmodelled.size(); ++i) {
      const ForecastUnmodelled& work = c.unmodelled[i];
      section.add(ReportText{fmt::format("no model: {}, {} times, {} ms", shorten(work.name, 60),
                                         table_count(work.n), table_number(work.time_ms, 2))},
                  i < kShown ? Shown::everywhere : Shown::page);
    }
  }
  if (!f.notes.empty()) section.add(ReportList{f.notes}, Shown::page);
  if (!f.published) return;
  section.add(TerminalText{"\n"});
  section.add(
      ReportText{fmt::format("Step by the published method, same prices (docs/published-method.md): {} ms",
                             table_number(f.published->step_time_ms, 1)),
                 0});
}

// The memory of every stage as a picture and a table, for pages.
void add_memory(ReportDocument& document, const Forecast& f) {
  if (!f.memory || f.memory->stages.empty()) return;
  const ForecastMemory& memory = *f.memory;
  const bool staged = memory.stages.size() > 1;
  std::vector<Bar> bars;
  ReportTable table{"stage< | total GiB=total_GiB | headroom"};
  table.list = "memory.stages";
  if (staged) table.emphasized = memory.worst_stage;
  for (const MemoryPart& part : kMemoryParts) table.columns.push_back({part.name});
  for (const char* as_printed : {"allocated", "reserved"}) table.columns.push_back({as_printed});
  table.columns.push_back({"", false});
  for (std::size_t s = 0; s < memory.stages.size(); ++s) {
    const ForecastStageMemory& stage = memory.stages[s];
    const std::string name = staged ? memory_owner(f, s) : std::string{"every GPU"};
    ReportRow& row = table.row({name, gib(stage.total_GiB), gib(memory.available_GiB - stage.total_GiB)});
    for (const MemoryPart& part : kMemoryParts) row.cell(gib(stage.*part.value));
    for (const auto& as_printed : {stage.allocated_GiB, stage.reserved_GiB})
      row.cell(as_printed ? gib(*as_printed) : "-");
    row.cell(stage.verdict.empty() ? memory.verdict : stage.verdict);
    bars.push_back(memory_bar(name, stage, memory.available_GiB));
  }
  table.caption =
      "Analytic: computed from the description, with a reserve for the allocator and the libraries. "
      "Allocated and reserved: as PyTorch's allocator reports them.";
  document.add("Memory of a GPU", {detail::memory_figure(std::move(bars)), table});
}

// The peak memory by rank class of a dry run, for terminals. Only if there are several classes.
void add_memory_of_ranks(ReportDocument& document, const Forecast& f) {
  if (f.kind != "trace" || !f.memory || f.memory->stages.size() < 2 ||
      f.memory->stages.size() != f.classes.size())
    return;
  ReportTable table{"ranks< | count | allocated GiB | total GiB | of the GPU % | <"};
  table.list = "memory.stages";
  for (std::size_t c = 0; c < f.classes.size(); ++c) {
    const ForecastStageMemory& one = f.memory->stages[c];
    table.row({f.classes[c].name, table_count(f.classes[c].n_ranks), gib(one.allocated_GiB.value_or(0)),
               gib(one.total_GiB), table_number(100 * one.total_GiB / f.memory->available_GiB, 0),
               one.total_GiB > f.memory->available_GiB ? "OOM" : one.verdict});
  }
  table.caption = "Peaks of the step. Total: with free memory that the allocator keeps, and 1 GiB for CUDA.";
  ReportSection& section = document.add("Peak memory by rank", {std::move(table), TerminalText{"\n"}});
  section.shown = Shown::terminal;
  section.opening = "Peak memory by rank\n";
}

// The collectives that cost most, in waiting plus transfer.
void add_collectives(ReportDocument& document, const Forecast& f) {
  if (f.collectives.empty()) return;
  std::vector<const ForecastCollective*> all;
  for (const ForecastCollective& one : f.collectives) all.push_back(&one);
  std::ranges::stable_sort(all, std::greater{},
                           [](const auto* one) { return one->total_wait_us + one->transfer_us; });
  ReportTable table{"collective< | group< | message | ranks | transfer us | longest wait us | came last<"};
  for (std::size_t i = 0; i < std::min(all.size(), kMostCollectives); ++i) {
    const ForecastCollective& one = *all[i];
    table.row(
        {shorten(one.name, 60), one.group,
         ReportCell{one.message_bytes ? table_bytes(*one.message_bytes) : "-", one.message_bytes.value_or(0)},
         table_count(one.members.size()), table_number(one.transfer_us, 1),
         table_number(one.longest_wait_us, 1),
         one.came_last < f.classes.size() ? f.classes[one.came_last].name : ""});
  }
  table.of = f.n_collectives;
  table.caption = "Most expensive first.";
  document.add("Collectives of the step", {table}).folded = true;
}

// The priced operations of each kind of layer, of embedding, head and update.
void add_operations(ReportDocument& document, const Forecast& f, Shown on) {
  if (f.explained.empty()) return;
  ReportTable table{"item< | what< | n | us | hidden | p10 | p90 | GFLOP | MB | from<"};
  table.indent = 0;
  for (const ForecastItemList& list : f.explained) {
    table.row({list.name});
    table.rule();
    for (const ForecastItem& item : list.items) {
      const bool by_record = !item.record.empty() && item.source != EstimateSource::assumed;
      table.row({(item.overlapped ? "| " : "") + item.name, shorten(item.what, 70), table_number(item.n, 0),
                 table_number(item.time_us, 1), table_number_or_blank(item.hidden_us, 1),
                 table_number(item.alone_p10_us, 1), table_number(item.alone_p90_us, 1),
                 table_number_or_blank(item.flops * 1e-9, 1), table_number(item.bytes * 1e-6, 1),
                 by_record ? item.record : std::string{to_string(item.source)}});
    }
    table.row({"", "sum of exposed time", "", table_number(list.gpu_us, 1)});
    if (list.host_us > 0) table.row({"", "waiting for launches", "", table_number(list.host_us, 1)});
    table.row({""});
  }
  ReportSection& section = document.add(
      "Operations of a layer, and the sources of their times",
      {ReportText{
           "One micro-batch on one rank. Times include overlapped work; `|`: overlaps the next operation.",
           0},
       TerminalText{"\n"}, std::move(table), TerminalText{"\n"}});
  section.shown = on;
  section.folded = true;
  section.is_asked = on == Shown::terminal;
  section.opening.emplace();
}

// All settings of the layout, folded on a page.
void add_settings(ReportDocument& document, const Forecast& f) {
  if (f.layout.empty()) return;
  ReportTable table{"setting< | value<"};
  for (const Setting& setting : f.layout) {
    std::string text;
    if (const auto* flag = std::get_if<bool>(&setting.value)) text = *flag ? "yes" : "no";
    if (const auto* number = std::get_if<double>(&setting.value)) text = fmt::format("{:.10g}", *number);
    if (const auto* word = std::get_if<std::string>(&setting.value)) text = *word;
    table.row({setting.name, std::move(text)});
  }
  document.add("Layout and settings", {table}).folded = true;
}

// The sections that only a page has room for.
void add_page_sections(ReportDocument& document, const Forecast& f, const StepPictures* pictures) {
  add_memory(document, f);
  if (pictures != nullptr) {
    detail::add_schedule(document, "Schedule of the pipeline", pictures->passes,
                         "Forward and backward passes of every stage, with the number of the micro-batch. "
                         "Thin strips: transfers of weights and gradients. Empty: idle.");
    if (pictures->passes.rows.empty()) {
      detail::add_schedule(
          document, "Activity of every rank over the step", pictures->ranks,
          "The colour shows the first activity in this order: computation, communication, copies, waiting.");
    }
  }
  detail::add_streams(document, f);
  detail::add_critical_path(document, f, pictures != nullptr ? &pictures->path : nullptr);
  add_collectives(document, f);
  add_operations(document, f, Shown::page);
  add_settings(document, f);
  add_grounds(document, f, Shown::page);
  document.json = forecast_json(f);
}

}  // namespace

std::string part_text(std::string_view key) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kIdle{
      {{"idle: cpu", "idle: waits for the CPU"},
       {"idle: other_stream", "idle: waits for another stream"},
       {"idle: other_rank", "idle: waits for another rank"},
       {"idle: pipeline", "idle: pipeline bubble"},
       {"idle: between_steps", "idle: between steps"},
       {"idle: rest", "idle: rest"}}};
  for (const auto& [idle, text] : kIdle)
    if (key == idle) return std::string{text};
  return std::string{key};
}

std::string throughput_text(const Forecast& forecast) {
  const ForecastThroughput& t = forecast.throughput;
  std::vector<std::string> parts;
  if (t.tokens_per_s && t.tokens_per_s_per_gpu) {
    parts.push_back(fmt::format("{} tokens/s, {} per GPU", table_number(*t.tokens_per_s, 0),
                                table_number(*t.tokens_per_s_per_gpu, 0)));
  } else if (t.samples_per_s) {
    std::string text = fmt::format("{} {}s/s", table_number(*t.samples_per_s, 0), t.sample);
    if (forecast.n_gpus > 1 && forecast.kind == "transformer")
      text += fmt::format(", {} per GPU",
                          table_number(*t.samples_per_s / static_cast<double>(forecast.n_gpus), 0));
    parts.push_back(std::move(text));
  }
  if (t.tflops_per_gpu)
    parts.push_back(fmt::format("{} TFLOP/s per GPU", table_number(*t.tflops_per_gpu, 1)));
  else if (t.hardware_tflops_per_gpu && *t.hardware_tflops_per_gpu >= 0.05)
    parts.push_back(fmt::format("{} TFLOP/s per GPU run", table_number(*t.hardware_tflops_per_gpu, 1)));
  if (t.mfu && t.hfu) parts.push_back(fmt::format("MFU {:.1f} %, HFU {:.1f} %", 100 * *t.mfu, 100 * *t.hfu));
  return join(parts, "; ");
}

namespace {

// The evaluations and checkpoints between steps, and their share of the time. If the job does not say how
// often they happen, which flags would say it.
std::string stops_text(const Forecast& forecast) {
  const ForecastTraining& t = *forecast.training;
  std::string out, missing;
  double stopped = 0;
  for (const std::string_view name : {"evaluation", "checkpoint"}) {
    const auto stop = std::ranges::find(t.stops, name, &RegularStop::name);
    if (stop == t.stops.end()) {
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ",
                             name == "evaluation" ? "--eval-interval and --eval-iters" : "--save-interval");
      continue;
    }
    stopped += stop->s / stop->every_steps;
    out += fmt::format("{}{} of {} s after every {} steps", out.empty() ? "; with " : ", ", name,
                       table_number(stop->s, stop->s < 1 ? 3 : 1), table_number(stop->every_steps, 0));
  }
  const double step_s = forecast.promised_ms() * 1e-3;
  if (!out.empty()) return out + fmt::format(": {:.2g} % of the time", 100 * stopped / (step_s + stopped));
  return number(forecast, "tensor_parallel") > 0
             ? fmt::format(", without evaluation and checkpoints ({} not given)", missing)
             : out;
}

}  // namespace

std::string training_text(const Forecast& forecast) {
  if (!forecast.training) return {};
  const ForecastTraining& t = *forecast.training;
  std::string out = "Training";
  if (t.tokens) out += fmt::format(" on {} tokens", table_number(*t.tokens, 0));
  if (t.samples) out += fmt::format(" on {} samples", table_number(*t.samples, 0));
  out += fmt::format(": {} steps, {}", table_number(t.iterations, 0), duration(t.time_s));
  if (t.run) out += fmt::format(" (p10 {:.1f}, p90 {:.1f})", t.run->days_p10, t.run->days_p90);
  out += fmt::format(", {} GPU-hours", table_amount(t.gpu_hours, 0));
  if (t.price)
    out += fmt::format(", price {} {}", table_amount(*t.price, 0), t.currency.value_or("in your currency"));
  if (t.energy_MWh) out += fmt::format(", {} MWh", table_amount(*t.energy_MWh, 1));
  if (t.co2_t) out += fmt::format(", {} t CO2", table_amount(*t.co2_t, 1));
  out += fmt::format("\nSteps: p50 {}, p90 {}, p99 {}", duration_text(t.step_p50_ms),
                     duration_text(t.step_p90_ms), duration_text(t.step_p99_ms));
  return out + stops_text(forecast);
}

std::vector<std::string> forecast_subject(const Forecast& f) {
  std::vector<std::string> lines{subject(f)};
  if (number(f, "tensor_parallel") <= 0) return lines;
  lines.push_back(layout_line(f));
  if (std::string software = software_line(f); !software.empty()) lines.push_back(std::move(software));
  return lines;
}

std::string forecast_text(const Forecast& forecast) {
  return report_text(forecast_document(forecast, {.made_for = Shown::terminal}));
}

namespace {

// How much of the step the GPUs compute, and the largest other part. Means over all GPUs, because while one
// stage computes others wait. Empty if the forecast has no classes.
std::string largest_loss(const Forecast& f) {
  if (f.classes.empty()) return {};
  double step_ms = 0, computing_ms = 0;
  NamedTimes parts;
  for (const ForecastClass& c : f.classes) {
    const auto n_ranks = static_cast<double>(std::max<std::uint64_t>(1, c.n_ranks));
    step_ms += n_ranks * c.window_ms;
    computing_ms += n_ranks * c.computation_ms;
    for (NamedTime& part : c.parts()) {
      const auto found = std::ranges::find(parts, part.key, &NamedTime::key);
      (found == parts.end() ? parts.emplace_back(NamedTime{std::move(part.key), 0}) : *found).time_ms +=
          n_ranks * part.time_ms;
    }
  }
  std::string text = fmt::format("GPUs compute for {} % of the step", percent_text(computing_ms, step_ms));
  const NamedTime* loss = nullptr;
  for (const NamedTime& part : parts) {
    if (part.key.starts_with("computation")) continue;
    if (loss == nullptr || part.time_ms > loss->time_ms) loss = &part;
  }
  if (loss != nullptr && loss->time_ms > 0) {
    const double share = loss->time_ms / step_ms;
    text += fmt::format("; the largest loss is {} ({}, {} %)", part_text(loss->key),
                        duration_text(share * f.step_time_ms), percent_text(loss->time_ms, step_ms));
  }
  return text + '.';
}

// The content of the first screen: the largest loss, short answers to what was asked, and the most important
// notes.
FirstScreen first_screen_of(const Forecast& f) {
  FirstScreen screen{.why = largest_loss(f), .notes = f.notes, .shows_title = false};
  // Notes about assumed values come last.
  std::ranges::stable_partition(
      screen.notes, [](const std::string& note) { return note.find(" not given") == std::string::npos; });
  if (f.measured_check)
    screen.blocks.emplace_back(ReportText{"Is the measured step normal? " + f.measured_check->sentence});
  if (f.expert_load && f.expert_load->cost_ms > 0)
    screen.blocks.emplace_back(
        ReportText{fmt::format("Expert load: the busiest rank has {:.2f} x the mean. Cost: {}.",
                               f.expert_load->busiest_over_mean, duration_text(f.expert_load->cost_ms))});
  if (f.training) screen.blocks.emplace_back(ReportText{training_text(f)});
  detail::add_what_to_change(screen, f.what_to_change);
  return screen;
}

}  // namespace

std::string forecast_verdict(const Forecast& f) {
  std::string text =
      fmt::format("A step takes {}", duration_text(f.step_time_ms, f.step_time_p10_ms, f.step_time_p90_ms));
  if (const std::string band = band_text(f.step_time_ms, f.step_time_p10_ms, f.step_time_p90_ms);
      !band.empty())
    text += fmt::format(" ({})", band);
  if (f.promised_ms() != f.step_time_ms) text += fmt::format(", expected {}", duration_text(f.promised_ms()));
  if (f.memory) {
    const ForecastMemory& m = *f.memory;
    text += m.margin_GiB < 0 ? fmt::format(" and does not fit: {} GiB of memory missing", gib(-m.margin_GiB))
                             : fmt::format(" and fits{}, with {} of {} GiB headroom",
                                           m.verdict == "tight" ? " tightly" : "", gib(m.margin_GiB),
                                           gib(m.available_GiB));
  }
  const std::string why = largest_loss(f);
  return text + (why.empty() ? "." : ". " + why);
}

ReportDocument forecast_document(const Forecast& forecast, const ForecastIllustrations& illustrations) {
  const Forecast& f = forecast;
  ReportDocument document;
  document.made_for = illustrations.made_for;
  document.subject = forecast_subject(f);
  document.title = fmt::format("{} on {} x {}", f.model ? *f.model : f.traces.value_or("a step"),
                               table_count(f.n_gpus), f.gpu.value_or("GPU"));
  document.verdict = forecast_verdict(f);
  document.first_screen = first_screen_of(f);
  document.figures.push_back({"Step time",
                              duration_text(f.step_time_ms, f.step_time_p10_ms, f.step_time_p90_ms),
                              band_text(f.step_time_ms, f.step_time_p10_ms, f.step_time_p90_ms),
                              std::string{to_string(f.source)}, "step_time_ms"});
  if (f.promised_ms() != f.step_time_ms)
    document.figures.push_back({"Expected step time", duration_text(f.promised_ms()),
                                band_text(f.promised_ms(), f.promised_p10_ms(), f.promised_p90_ms()),
                                std::string{to_string(f.source)}, "promised_step_time_ms"});
  if (f.memory) {
    document.figures.push_back({"Memory of a GPU", gib(f.memory->peak_memory_GiB) + " GiB",
                                fmt::format("of {}; {}", gib(f.memory->available_GiB), f.memory->verdict),
                                "analytic", "memory.peak_memory_GiB"});
  }
  detail::add_throughput_figures(document, f);
  detail::add_pool_layouts(document, f.pool_layouts);
  if (illustrations.explains) add_operations(document, f, Shown::terminal);
  add_opening(document, f);
  add_measured_check(document, f);
  detail::add_what_to_change(document, f.what_to_change, f.n_gpus);
  if (f.what_to_change) {
    document.sections.back().opening = "What to change\n";
    document.sections.back().add(TerminalText{"\n"});
  }
  add_memory_of_ranks(document, f);
  add_breakdown(document, f);
  add_grounds(document, f, Shown::terminal);
  detail::add_distributions(document, f);
  detail::add_cluster_sections(document, f);
  detail::add_training_section(document, f);
  if (illustrations.sensitivity != nullptr)
    add_sensitivity(document, *illustrations.sensitivity,
                    illustrations.prints_sensitivity ? Shown::everywhere : Shown::page);
  const std::size_t n_sections = document.sections.size();
  if (document.has_page()) add_page_sections(document, f, illustrations.pictures);
  document.keep_on_page(n_sections);
  return document;
}

}  // namespace stepcast
