// stepcast calibrate overheads: the host time of operators and calls, T1 to T5, from profiler traces.

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/operation/overhead_name.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/report/cell_text.h"
#include "stepcast/report/document.h"

#include "calibrate.h"
#include "calibrate/overhead_fit.h"
#include "calibrate/overhead_traces.h"
#include "calibration_answers.h"
#include "outputs.h"

namespace stepcast::cli {
namespace {

// Share of the host time above which one-time setup calls are mentioned.
constexpr double kMuchSetUp = 0.05;

struct CalibrateOverheadsOptions : PlatformCalibration {
  double profiler_cost_us = 0;
  std::size_t top = 25;
  bool overheads_only = false;
};

// The overheads of one operator or call, and its total time.
struct Line {
  std::string name;
  std::array<const OverheadRecord*, 5> of{};  // [OverheadType]
  double total_us = 0;
};

std::vector<Line> lines_of(const OverheadFit& fit) {
  std::map<std::string_view, Line> by_name;
  for (const OverheadRecord& record : fit.records) {
    if (record.op.empty() || record.op.starts_with('(') || names_both_sides(record.op)) continue;
    Line& line = by_name[record.op];
    line.name = record.op;
    line.of[static_cast<std::size_t>(record.type)] = &record;
    line.total_us += record.mean_us * static_cast<double>(record.n);
  }
  std::vector<Line> lines;
  for (auto& [name, line] : by_name) lines.push_back(std::move(line));
  std::ranges::stable_sort(lines, std::greater{}, &Line::total_us);
  return lines;
}

// The name without the prefix of all backward operators.
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

// Overheads of families of operators, and of all operators.
ReportTable families_table(const OverheadFit& fit) {
  ReportTable table{
      "operators, calls< | overhead< | mean us | +- | p10 | p50 | p90 | outliers\nus of mean | n"};
  table.indent = 0;
  for (const OverheadRecord& r : fit.records) {
    if (!r.op.empty() && !r.op.starts_with('(')) continue;
    table.row({r.op.empty() ? "all" : r.op, std::string{to_string(r.type)}, table_number(r.mean_us, 2),
               table_number(r.std_us.value_or(0), 1), table_number(r.p10_us.value_or(0), 1),
               table_number(r.p50_us.value_or(0), 1), table_number(r.p90_us.value_or(0), 1),
               table_number(r.outlier_us.value_or(0), 2), table_count(r.n)});
  }
  return table;
}

// The first `top` lines, with the total of all.
ReportTable operators_table(const std::vector<Line>& lines, double sum_us, std::size_t top) {
  ReportTable table{"operator or call< | total ms | % | n | T1 us | T2 us | T3 us | T4 us | T5 us"};
  table.indent = 0;
  table.most = top;
  for (const Line& line : lines) {
    ReportRow& row =
        table.row({shown(line.name), table_number(line.total_us / 1e3, 2),
                   table_number(100 * line.total_us / sum_us, 1), table_count(most_occurrences(line))});
    for (const OverheadRecord* record : line.of) row.cell(cell(record));
  }
  return table;
}

ReportDocument document_of(const CalibratedOverheads& answer, std::size_t top) {
  ReportDocument document{.title = "Host overheads of " + answer.platform};
  ReportSection& section = document.add("");
  for (std::size_t i = 0; i < answer.sources.size(); ++i) {
    const OverheadSource& s = answer.sources[i];
    std::string line = fmt::format("{}: {}, {}{}{}", s.name, counted(s.ranks, "rank", "ranks"),
                                   counted(s.steps, "ordinary step", "ordinary steps"),
                                   s.device.empty() ? "" : ", " + s.device,
                                   s.times == 1 ? "" : fmt::format(", host times x {:.2f}", s.times));
    if (i < answer.fit.job_speed.size())
      line += fmt::format(", {:.2f} times the median job's host time", answer.fit.job_speed[i]);
    section.add(ReportText{std::move(line), 0});
  }
  const std::vector<Line> lines = lines_of(answer.fit);
  double sum_us = 0;
  for (const Line& line : lines) sum_us += line.total_us;
  std::string text =
      fmt::format("{:.2f} ms of host time in {} operators and calls", sum_us / 1e3, lines.size());
  const bool scaled =
      std::ranges::any_of(answer.sources, [](const OverheadSource& s) { return s.times != 1; });
  text += answer.profiler_cost_us > 0
              ? fmt::format(", after subtracting {:.2f} ms for the profiler ({:g} us per event)",
                            answer.fit.profiler_cost_us / 1e3, answer.profiler_cost_us)
          : scaled ? ", all thread time without waiting, as without a profiler"
                   : ", all thread time without waiting, as profiled";
  text += answer.fit.band
              ? fmt::format(
                    ". Host time of another job: within {:.0f} % for 80 % of jobs, estimated from {} jobs",
                    100 * *answer.fit.band, answer.fit.jobs)
              : ". One job is not enough to estimate the error for other jobs";
  std::vector<std::string> left_out;
  for (const auto& [what, why] : answer.left_out) left_out.push_back(fmt::format("{}: {}", what, why));
  const TerminalText gap{"\n"};
  for (ReportBlock& block :
       std::vector<ReportBlock>{gap, families_table(answer.fit), gap, operators_table(lines, sum_us, top),
                                gap, ReportText{text, 0}, ReportList{std::move(left_out), "left out: "},
                                ReportList{answer.notes, "note: "}})
    section.add(std::move(block));
  return document;
}

std::vector<std::string> notes_on(const CalibratedOverheads& answer, const Device& device) {
  std::vector<std::string> notes;
  for (const OverheadSource& source : answer.sources) {
    if (source.device.empty() || device.matches_name(source.device)) continue;
    notes.push_back(fmt::format("{} was recorded on {}, the platform has {}: the hosts may differ, too",
                                source.name, source.device, device.name));
  }
  double set_up_us = 0;
  for (const OverheadRecord& record : answer.fit.records) {
    if (record.type != OverheadType::t4 || record.op.empty() || record.op.starts_with('(')) continue;
    if (overhead_family(OverheadType::t4, record.op) == "(set-up)")
      set_up_us += record.mean_us * static_cast<double>(record.n);
  }
  if (set_up_us > kMuchSetUp * answer.fit.sum_us) {
    notes.push_back(
        fmt::format("{:.1f} ms are calls such as cudaMalloc and cudaFree, which happen once or wait for the "
                    "GPU. Traces of later steps represent the host better",
                    set_up_us / 1e3));
  }
  return notes;
}

Result<CalibratedOverheads> fit_traces(const CalibrateOverheadsOptions& options, const Device& device) {
  const std::vector<std::filesystem::path> places(options.files.begin(), options.files.end());
  STEPCAST_ASSIGN(TraceOverheads traces, read_overheads(places));
  CalibratedOverheads answer;
  answer.profiler_cost_us = options.profiler_cost_us;
  answer.fit = fit_overheads(
      traces.jobs, {.profiler_cost_us = options.profiler_cost_us, .levels_jobs = !traces.is_scaled});
  answer.sources = std::move(traces.sources);
  answer.left_out = std::move(traces.left_out);
  answer.notes = notes_on(answer, device);
  return answer;
}

Result<int> run_calibrate_overheads(const CalibrateOverheadsOptions& options) {
  if (!(options.profiler_cost_us >= 0 && options.profiler_cost_us <= 1000)) {
    return Error{"--profiler-cost-us"}
        .found(fmt::format("{:g}", options.profiler_cost_us))
        .expected("from 0 to 1000");
  }
  STEPCAST_ASSIGN(const Platform base, load_platform(options.base));
  STEPCAST_ASSIGN(const PlatformOutput output,
                  PlatformOutput::at(options.output, options.base, base, options.files,
                                     options.overheads_only ? PlatformOutput::Content::part
                                                            : PlatformOutput::Content::platform));
  STEPCAST_ASSIGN(CalibratedOverheads answer, fit_traces(options, base.device));

  const Provenance provenance = options.provenance();
  Platform platform = output.begin(base, options.name);
  answer.platform = platform.name;
  answer.fit.write_to(platform, provenance);
  if (options.overheads_only) {
    Platform part;
    answer.fit.write_to(part, provenance);
    part.description =
        fmt::format("Host time of {}, for platform files that use this host", names_of(options.files));
    STEPCAST_TRY(output.write_part(std::move(part), platform));
  } else {
    STEPCAST_TRY(output.write(platform, base));
  }
  options.answer(calibration_json(answer), document_of(answer, options.top), output);
  return kSuccess;
}

}  // namespace

Calibration overheads_calibration() {
  return {"overheads", "fit host time around operators and calls (T1..T5) to profiler traces",
          [](CLI::App& app) -> Action {
            auto options = std::make_shared<CalibrateOverheadsOptions>();
            app.add_option("TRACES", options->files,
                           "profiler traces or folders of them, one per job, all from the same kind of host. "
                           "Or folders of stepcast-collect, which also have step times without a profiler")
                ->required();
            options->add_platform(
                app, "platform of the jobs; the result extends it",
                "platform file to write (may be that of --platform); without it nothing is written");
            app.add_option("--profiler-cost-us", options->profiler_cost_us,
                           "profiler overhead per event in us, subtracted (not verified)")
                ->capture_default_str();
            app.add_flag("--overheads-only", options->overheads_only,
                         "write only the overheads, as a part that platform files use for their host");
            app.add_option("--top", options->top, "number of operators to print, by total host time")
                ->capture_default_str();
            options->add_origin(app, "traces", "recorded", "\"PyTorch 2.1, CUDA 12.1\"");
            app.add_flag("--json", options->json, "print one JSON object (docs/overheads.md)");
            return [options] { return run_calibrate_overheads(*options); };
          }};
}

}  // namespace stepcast::cli
