#include "stepcast/report/detail/document_parts.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stepcast/report/cell_text.h"
#include "stepcast/report/fields/field_table.h"
#include "stepcast/report/forecast_document.h"
#include "stepcast/report/html/charts.h"

namespace stepcast::detail {
namespace {

// A table of shares of the critical path.
ReportTable shares_table(std::string_view heading, std::span<const ForecastShare> shares, double length_ms) {
  constexpr std::size_t kWidth = 100, kMost = 12;
  ReportTable table{"< | ms | % of path | steps"};
  table.columns.front().heading = heading;
  for (const ForecastShare& share : shares) {
    table.row({shorten(share.what, kWidth), ms_text(share.time_ms), percent_text(share.time_ms, length_ms),
               table_count(share.steps)});
  }
  table.most = kMost;
  return table;
}

// The table of goodput over numbers of GPUs, with the number beyond which more GPUs do not help.
ReportTable scale_table(const RunForecast& run) {
  ReportTable table = table_of(run.scale);
  // Rounded to two digits, since the number is not known more precisely.
  const double digit = std::pow(10, std::floor(std::log10(run.most_useful_gpus)) - 1);
  table.caption = fmt::format("Above {} GPUs, more GPUs do not train more in a day.",
                              table_number(std::round(run.most_useful_gpus / digit) * digit, 0));
  return table;
}

}  // namespace

// First line: the goodput and how often the run is interrupted. Second line: what checkpoints cost. A third
// line only if nodes are missing.
std::string run_text(const RunForecast& run) {
  std::string text = fmt::format(
      "Goodput {:.1f} % (p10 {:.1f}, p90 {:.1f}), {:.1f} days without losses; an interruption every {:.1f} "
      "h, rates: {}\nCheckpoints: {} GB every {:.1f} min, {}: stop training for {} s, {:.2f} % of the time",
      run.effective_share_percent, run.effective_share_p10_percent, run.effective_share_p90_percent,
      run.days_without_losses, run.mean_time_to_interruption_h, shorten(run.failures, 60),
      table_number(run.checkpoint_GB, 0), run.checkpoint_interval_min, run.checkpoint_mode,
      table_number(run.checkpoint_stops_s, run.checkpoint_stops_s < 1 ? 3 : 1), run.checkpoint_percent);
  if (run.checkpoint_safe_after_s > 0)
    text += fmt::format(", safe after {:.1f} s more", run.checkpoint_safe_after_s);
  if (run.waiting_percent >= 0.005)
    text += fmt::format("\nWithout enough spare nodes: {:.2f} % of the time", run.waiting_percent);
  return text;
}

ReportCell part_cell(std::string_view key) {
  ReportCell cell{part_text(key)};
  cell.swatch = part_colour(key);
  return cell;
}

Bar parts_bar(std::string label, const ForecastClass& one) {
  Bar bar{.label = std::move(label), .parts = {}, .note = ms_text(one.window_ms) + " ms"};
  for (const NamedTime& part : one.parts())
    bar.parts.push_back({part_colour(part.key), part_text(part.key), part.time_ms});
  return bar;
}

// One bar per rank class, all on one scale.
ReportFigure parts_figure(const std::vector<ForecastClass>& classes, std::string caption) {
  BarChart chart{.unit = "ms", .decimals = kByLength};
  for (const ForecastClass& one : classes) chart.bars.push_back(parts_bar(one.name, one));
  return {bar_chart(chart), std::move(caption)};
}

Bar memory_bar(std::string label, const ForecastStageMemory& stage, double available_GiB) {
  Bar bar{
      .label = std::move(label), .parts = {}, .note = gib(stage.total_GiB) + " GiB", .limit = available_GiB};
  for (const MemoryPart& part : kMemoryParts)
    bar.parts.push_back({part.colour, part.name, stage.*part.value});
  return bar;
}

// The name of the limit contains its size, if all bars belong to one kind of GPU.
ReportFigure memory_figure(std::vector<Bar> bars) {
  BarChart chart{.bars = std::move(bars), .unit = "GiB", .limit_name = "memory of a GPU"};
  if (!chart.bars.empty() && chart.bars.front().limit)
    chart.limit_name = fmt::format("{} GiB of a GPU", gib(*chart.bars.front().limit));
  return {bar_chart(chart), "Peak memory by use. Dashed line: memory of a GPU."};
}

void add_critical_path(ReportDocument& document, const Forecast& forecast, const StepPicture* picture) {
  const ForecastPath& path = forecast.critical_path;
  if (path.length_ms <= 0) return;
  ReportSection& section = document.add("Critical path");
  section.add(ReportText{fmt::format(
      "The chain of tasks that sets the step time: {} ms in {} tasks. Everything off the path has slack.",
      ms_text(path.length_ms), table_count(path.n_steps))});
  if (picture != nullptr && !picture->rows.empty()) {
    section.add(ReportFigure{schedule_chart(*picture),
                             picture->rows.size() > 1
                                 ? "Every moment of the path is on one rank. Where the path moves to another "
                                   "rank, the step waits for that rank."
                                 : "The whole path is on one rank."});
  }
  section.add(shares_table("by class of work", path.by_class, path.length_ms));
  // With one rank, this table would have a single row.
  if (path.by_rank.size() > 1) section.add(shares_table("by rank", path.by_rank, path.length_ms));
  section.add(shares_table("longest contributors", path.by_name, path.length_ms));
}

void add_streams(ReportDocument& document, const Forecast& forecast) {
  if (forecast.critical_class >= forecast.classes.size()) return;
  struct Part {
    const char *key, *colour, *name;
  };
  // The parts of ForecastStream::parts_ms in the order of the bars.
  constexpr Part kParts[] = {{"embedding", "c-embedding", "embedding"},
                             {"gemm", "c-gemm", "gemm"},
                             {"attention", "c-attention", "attention"},
                             {"memory", "c-memory", "copies and memory"},
                             {"other", "c-elementwise", "other computation"},
                             {"communication_transfer", "c-warm", "communication: transfer"},
                             {"communication_waiting", "c-idle-other-rank", "communication: waiting"},
                             {"idle", "c-idle", "idle"}};
  const ForecastClass& one = forecast.critical();
  BarChart chart{.bars = {}, .unit = "ms", .decimals = kByLength};
  ReportTable table{"stream< | tasks"};
  for (const Part& part : kParts) table.columns.push_back({part.name});
  for (const ForecastStream& stream : one.streams) {
    if (stream.tasks == 0) continue;
    Bar& bar = chart.bars.emplace_back(Bar{.label = stream.name});
    ReportRow& row = table.row({stream.name, table_count(stream.tasks)});
    for (const Part& part : kParts) {
      const double ms = time_ms(stream.parts_ms, part.key);
      bar.parts.push_back({part.colour, part.name, ms});
      row.cell(ms_text(ms));
    }
  }
  if (table.rows.empty()) return;
  table.caption = "Times in ms; every row sums to the step. Streams overlap, so columns do not.";
  document.add(fmt::format("Streams of {}", one.name),
               {ReportFigure{bar_chart(chart), ""}, std::move(table)});
}

void add_throughput_figures(ReportDocument& document, const Forecast& forecast, const std::string& under) {
  const ForecastThroughput& t = forecast.throughput;
  const auto band = [&](double rate, int decimals) {
    return rate_band_text(rate, forecast.step_time_ms, forecast.step_time_p10_ms, forecast.step_time_p90_ms,
                          decimals);
  };
  const auto detail = [](const std::string& more, const std::string& interval) {
    return interval.empty() ? more : more.empty() ? interval : interval + "; " + more;
  };
  // The interval of rates follows from that of the step time; without it, the source is not shown either.
  const std::string source = band(1, 0).empty() ? std::string{} : std::string{to_string(forecast.source)};
  if (t.tokens_per_s_per_gpu && t.tokens_per_s) {
    document.figures.push_back(
        {"Tokens per second", table_number(*t.tokens_per_s, 0),
         detail(table_number(*t.tokens_per_s_per_gpu, 0) + " per GPU", band(*t.tokens_per_s, 0)), source,
         under + "throughput.tokens_per_s"});
  } else if (t.samples_per_s) {
    document.figures.push_back({sentence(t.sample + "s per second"), table_number(*t.samples_per_s, 0),
                                band(*t.samples_per_s, 0), source, under + "throughput.samples_per_s"});
  }
  if (t.mfu) {
    document.figures.push_back(
        {"MFU", table_number(100 * *t.mfu, 1) + " %",
         detail(t.tflops_per_gpu ? table_number(*t.tflops_per_gpu, 1) + " TFLOP/s per GPU" : std::string{},
                band(100 * *t.mfu, 1)),
         source, under + "throughput.mfu", 100});
  }
}

// The section repeats what the first screen says about the training, then adds losses by cause and the scale.
void add_training_section(ReportDocument& document, const Forecast& forecast) {
  const std::string text = training_text(forecast);
  if (text.empty()) return;
  ReportSection& section = document.add("The whole training", {ReportText{text, 0}});
  section.opening = "\n";
  if (!forecast.training->run) return;
  const RunForecast& run = *forecast.training->run;
  section.add(ReportText{run_text(run), 0});
  section.add(table_of(run.losses));
  section.add(scale_table(run));
}

void add_what_to_change(ReportDocument& document, const std::optional<ForecastAdvice>& advice,
                        std::uint64_t n_gpus, const std::string& under) {
  if (!advice) return;
  ReportSection& section = document.add("What to change", {ReportText{advice->sentence}});
  ReportTable table{"#"};
  table.list = under + "what_to_change.actions";
  for (ForecastAction action : advice->actions) {
    action.change = shorten(std::move(action.change), 48);
    add_row(table, {std::to_string(table.rows.size() + 1)}, action);
  }
  // Columns without any known value are not shown.
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (std::ranges::all_of(table.rows, [&](const ReportRow& row) { return row.cells[c].text == "-"; }))
      table.columns[c].shown = Shown{};  // unknown for this job
  // Only if the first suggestion keeps the number of GPUs.
  if (!table.rows.empty() && advice->actions.front().n_gpus == n_gpus)
    table.caption =
        "GPUs, batch, model and precision stay the same, so the cost of a training falls with its step time.";
  if (!table.rows.empty()) section.add(std::move(table));
  for (std::size_t i = 0; i < advice->actions.size(); ++i) {
    const ForecastAction& action = advice->actions[i];
    if (!action.reason.empty()) section.add(ReportText{fmt::format("{}: {}", i + 1, action.reason)});
    section.add(ReportCode{action.reason.empty() ? std::to_string(i + 1) : "", action.command + "\n"});
  }
}

void add_what_to_change(FirstScreen& screen, const std::optional<ForecastAdvice>& advice) {
  if (!advice) return;
  screen.blocks.emplace_back(ReportText{"What to change: " + advice->sentence});
  // The first screen has room for three suggestions without their commands.
  constexpr std::size_t kMostActions = 3;
  ReportList changes{.most = kMostActions};
  for (const ForecastAction& action : advice->actions) {
    // The job as given does not fit, so there is no time that could be saved.
    const std::string saved =
        action.certainty == "fits"
            ? action.certainty
            : fmt::format("saves {} %, {}", table_number(action.saved_percent, 1), action.certainty);
    std::string item =
        fmt::format("{}: {}, {}", action.change, duration_text(action.promised_step_time_ms), saved);
    if (action.peak_memory_GiB) item += fmt::format("; {} GiB", gib(*action.peak_memory_GiB));
    if (action.saved_days) item += fmt::format("; {} days less", table_amount(*action.saved_days, 1));
    if (!action.reason.empty()) item += fmt::format(" ({})", action.reason);
    changes.items.push_back(std::move(item));
  }
  if (!changes.items.empty()) screen.blocks.emplace_back(std::move(changes));
}

void add_schedule(ReportDocument& document, std::string title, const StepPicture& picture,
                  std::string caption) {
  if (!picture.rows.empty())
    document.add(std::move(title), {ReportFigure{schedule_chart(picture), std::move(caption)}});
}

}  // namespace stepcast::detail
