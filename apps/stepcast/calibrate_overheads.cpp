// stepcast calibrate overheads: the host time around operators and calls, T1..T5, from profiler traces.

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/json_writer.h"
#include "stepcast/base/version.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/text_table.h"

#include "calibrate.h"
#include "calibrate/overhead_fit.h"
#include "calibrate/overhead_traces.h"
#include "outputs.h"

namespace stepcast::cli {
namespace {

// Share of the host time from which calls that set something up deserve a word.
constexpr double kMuchSetUp = 0.05;

struct Options {
  std::vector<std::string> traces;
  std::string base, output, name, document, date, software;
  double profiler_cost_us = 0;
  std::size_t top = 25;
  bool overheads_only = false;
  bool json = false;
};

// The overheads of one operator or call, with its time over all occurrences.
struct Line {
  std::string name;
  std::array<const OverheadRecord*, 5> of{};  // [OverheadType]
  double total_us = 0;
};

std::vector<Line> lines_of(const OverheadFit& fit) {
  std::map<std::string_view, Line> by_name;
  for (const OverheadRecord& record : fit.records) {
    if (record.op.empty() || record.op.starts_with('(')) continue;
    Line& line = by_name[record.op];
    line.name = record.op;
    line.of[static_cast<std::size_t>(record.type)] = &record;
    line.total_us += record.mean_us * static_cast<double>(record.n);
  }
  std::vector<Line> lines;
  for (auto& [name, line] : by_name) lines.push_back(std::move(line));
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.total_us > b.total_us; });
  return lines;
}

// Without the words that all operators of a backward begin with.
std::string shown(std::string_view op) {
  constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";
  if (op.starts_with(kEngine)) op.remove_prefix(kEngine.size());
  return shorten(std::string{op}, 48);
}

std::string cell(const OverheadRecord* record) {
  if (record == nullptr) return {};
  return fmt::format("{:.1f} +-{:.1f}", record->mean_us, record->std_us.value_or(0));
}

std::uint64_t most_occurrences(const Line& line) {
  std::uint64_t n = 0;
  for (const OverheadRecord* record : line.of) n = std::max(n, record != nullptr ? record->n : 0);
  return n;
}

std::string report_text(const OverheadFit& fit, const TraceOverheads& traces,
                        const std::vector<std::string>& notes, const Options& options) {
  std::string text;
  for (const OverheadSource& s : traces.sources) {
    text += fmt::format("{}: {} rank{}, {} step{}{}\n", s.name, s.ranks, s.ranks == 1 ? "" : "s", s.steps,
                        s.steps == 1 ? "" : "s", s.device.empty() ? "" : ", " + s.device);
  }
  TextTable kinds{{{"operators, calls", TextTable::Align::left},
                   {"overhead", TextTable::Align::left},
                   {"mean us"},
                   {"+-"},
                   {"p10"},
                   {"p50"},
                   {"p90"},
                   {"outliers\nus of mean"},
                   {"n"}}};
  for (const OverheadRecord& r : fit.records) {
    if (!r.op.empty() && !r.op.starts_with('(')) continue;
    kinds.row({r.op.empty() ? "all" : r.op, std::string{to_string(r.type)}, table_number(r.mean_us, 2),
               table_number(r.std_us.value_or(0), 1), table_number(r.p10_us.value_or(0), 1),
               table_number(r.p50_us.value_or(0), 1), table_number(r.p90_us.value_or(0), 1),
               table_number(r.outlier_us.value_or(0), 2), table_count(r.n)});
  }
  text += "\n" + kinds.text() + "\n";
  const std::vector<Line> lines = lines_of(fit);
  TextTable table{{{"operator or call", TextTable::Align::left},
                   {"total ms"},
                   {"%"},
                   {"n"},
                   {"T1 us"},
                   {"T2 us"},
                   {"T3 us"},
                   {"T4 us"},
                   {"T5 us"}}};
  double sum_us = 0;
  for (const Line& line : lines) sum_us += line.total_us;
  for (std::size_t i = 0; i < std::min(lines.size(), options.top); ++i) {
    const Line& line = lines[i];
    table.row({shown(line.name), table_number(line.total_us / 1e3, 2),
               table_number(100 * line.total_us / sum_us, 1), table_count(most_occurrences(line)),
               cell(line.of[0]), cell(line.of[1]), cell(line.of[2]), cell(line.of[3]), cell(line.of[4])});
  }
  text += table.text();
  if (lines.size() > options.top) text += fmt::format("and {} more\n", lines.size() - options.top);
  text += fmt::format("\n{:.2f} ms of host time in {} operators and calls", sum_us / 1e3, lines.size());
  if (options.profiler_cost_us > 0) {
    text += fmt::format(", after {:.2f} ms taken off for the profiler ({:g} us an event)\n",
                        fit.profiler_cost_us / 1e3, options.profiler_cost_us);
  } else {
    text += ", all that the threads did without waiting, as profiled\n";
  }
  for (const TraceOverheads::LeftOut& l : traces.left_out) {
    text += fmt::format("left out: {}: {}\n", l.what, l.why);
  }
  for (const std::string& note : notes) text += fmt::format("note: {}\n", note);
  return text;
}

std::string report_json(const OverheadFit& fit, const TraceOverheads& traces,
                        const std::vector<std::string>& notes, const Platform& platform,
                        const Options& options) {
  JsonWriter json{JsonWriter::Layout::indented};
  json.begin_object().field("schema", "stepcast.calibrate_overheads/1").field("version", version());
  json.field("platform", platform.name);
  json.field("rules", "sum_keeping");
  json.field("profiler_cost_us", options.profiler_cost_us);
  json.field("host_time_us", fit.sum_us).field("taken_off_us", fit.profiler_cost_us);
  json.key("traces").begin_array();
  for (const OverheadSource& s : traces.sources) {
    json.begin_object().field("name", s.name).field("device", s.device);
    json.field("n_ranks", s.ranks).field("n_steps", s.steps).end_object();
  }
  json.end_array();
  json.key("overheads").begin_array();
  for (const OverheadRecord& r : fit.records) {
    json.begin_object().field("type", to_string(r.type)).field("op", r.op);
    json.field("mean_us", r.mean_us).field("std_us", r.std_us.value_or(0));
    json.field("p10_us", r.p10_us.value_or(0)).field("p50_us", r.p50_us.value_or(0));
    json.field("p90_us", r.p90_us.value_or(0)).field("outlier_us", r.outlier_us.value_or(0));
    json.field("n", r.n).end_object();
  }
  json.end_array();
  json.key("launches").begin_array();
  for (const auto& [op, launches] : fit.launches) {
    json.begin_object().field("op", op).field("mean_calls", launches.mean_calls).field("n", launches.n);
    json.key("calls").begin_array();
    for (const std::string& call : launches.calls) json.value(call);
    json.end_array().end_object();
  }
  json.end_array();
  json.key("left_out").begin_array();
  for (const TraceOverheads::LeftOut& l : traces.left_out) {
    json.begin_object().field("what", l.what).field("why", l.why).end_object();
  }
  json.end_array();
  json.key("notes").begin_array();
  for (const std::string& note : notes) json.value(note);
  json.end_array().end_object();
  return std::move(json).text();
}

// How the traces are called in the provenance: by their files and folders, without where these lie.
std::string named(const std::vector<std::string>& traces) {
  std::string names;
  for (const std::string& trace : traces) {
    const std::filesystem::path path = std::filesystem::path{trace}.lexically_normal();
    const std::filesystem::path last = path.has_filename() ? path.filename() : path.parent_path().filename();
    names += (names.empty() ? "" : ", ") + last.string();
  }
  return names;
}

Result<int> run(const Options& options) {
  if (!(options.profiler_cost_us >= 0 && options.profiler_cost_us <= 1000)) {
    return Error{"--profiler-cost-us"}
        .found(fmt::format("{:g}", options.profiler_cost_us))
        .expected("from 0 to 1000");
  }
  STEPCAST_ASSIGN(const Platform base, load_platform(options.base));
  STEPCAST_ASSIGN(const PlatformOutput output,
                  PlatformOutput::at(options.output, options.base, base, options.traces,
                                     options.overheads_only ? PlatformOutput::Content::part
                                                            : PlatformOutput::Content::platform));
  const std::vector<std::filesystem::path> places(options.traces.begin(), options.traces.end());
  STEPCAST_ASSIGN(const TraceOverheads traces, read_overheads(places));
  std::vector<std::string> notes;
  for (const OverheadSource& source : traces.sources) {
    if (source.device.empty() || base.device.matches_name(source.device)) continue;
    notes.push_back(fmt::format("{} was recorded on {}, the platform has {}: hosts may differ, too",
                                source.name, source.device, base.device.name));
  }
  const OverheadFit fit = fit_overheads(traces.samples, {.profiler_cost_us = options.profiler_cost_us});
  double set_up_us = 0;
  for (const OverheadRecord& record : fit.records) {
    if (record.type != OverheadType::t4 || record.op.empty() || record.op.starts_with('(')) continue;
    if (overhead_family(OverheadType::t4, record.op) == "(set-up)") {
      set_up_us += record.mean_us * static_cast<double>(record.n);
    }
  }
  if (set_up_us > kMuchSetUp * fit.sum_us) {
    notes.push_back(fmt::format(
        "{:.1f} ms are calls like cudaMalloc and cudaFree, which happen once or wait for the GPU: traces of "
        "later steps say more of the host",
        set_up_us / 1e3));
  }

  Provenance provenance;
  provenance.source = FigureSource::fitted;
  provenance.document = options.document.empty() ? named(options.traces) : options.document;
  provenance.date = options.date;
  provenance.software = options.software;
  Platform platform = output.begin(base, options.name);
  fit.write_to(platform, provenance);
  if (options.overheads_only) {
    Platform part;
    fit.write_to(part, provenance);
    part.description = fmt::format("Host time of {}, for platform files that take their host from this one",
                                   named(options.traces));
    STEPCAST_TRY(output.write_part(std::move(part), platform));
  } else {
    STEPCAST_TRY(output.write(platform, base));
  }
  if (options.json) {
    print("{}", report_json(fit, traces, notes, platform, options));
  } else {
    print("{}", report_text(fit, traces, notes, options));
    if (!options.output.empty()) print("\n{}\n", output.note());
  }
  return kSuccess;
}

}  // namespace

Calibration overheads_calibration() {
  return {"overheads", "host time around operators and calls (T1..T5) from profiler traces",
          [](CLI::App& app) -> Action {
            auto options = std::make_shared<Options>();
            app.add_option(
                   "TRACES", options->traces,
                   "profiler traces, or folders with those of a job; jobs that ran on the same kind of host")
                ->required();
            app.add_option("--platform", options->base, "the platform they ran on; the result extends it")
                ->required();
            add_output_option(
                app, "-o,--output", options->output,
                "platform file to write (may be that of --platform); without it nothing is written");
            app.add_option("--name", options->name, "name of the new platform (default: of the file)");
            app.add_option(
                   "--profiler-cost-us", options->profiler_cost_us,
                   "what the profiler added for every event; taken off (not verified by anything here)")
                ->capture_default_str();
            app.add_flag("--overheads-only", options->overheads_only,
                         "write the overheads alone, as a part that platform files take their host from");
            app.add_option("--top", options->top, "operators to print, by their total host time")
                ->capture_default_str();
            app.add_option("--document", options->document, "where the traces are from, for the provenance");
            app.add_option("--date", options->date, "when they were recorded: 2024, 2024-05 or 2024-05-31");
            app.add_option("--software", options->software, "\"PyTorch 2.1, CUDA 12.1\"");
            app.add_flag("--json", options->json, "print one JSON object (docs/overheads.md)");
            return [options] { return run(*options); };
          }};
}

}  // namespace stepcast::cli
