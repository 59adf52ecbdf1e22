#include "calibrate/collected_traces.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/file.h"
#include "stepcast/base/statistics.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kProfilerTrace = ".kineto.json.gz";
// Prefix of the cases in overheads.csv with a trace of their step: "trace/host_bound_gpt2_b1_s32_bf16".
constexpr std::string_view kTracedCase = "trace/";

struct MeasuredSteps {
  bool of_collector = false;                                                    // the table has its columns
  std::map<std::string, std::string, std::less<>> program_of;                   // [file name] model and type
  std::map<std::string, std::vector<double>, std::less<>> of_program, of_case;  // us
};

Status read_steps(const fs::path& file, MeasuredSteps& steps) {
  STEPCAST_ASSIGN(const std::string text, read_file(file));
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, file.string()));
  steps.of_collector = rows.has("measured_ms") && rows.has("kineto_trace");
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more || !steps.of_collector) return Ok{};
    STEPCAST_ASSIGN(const double ms, rows.number("measured_ms", 0));
    std::string program{rows.cell("model")};
    program.append(" ").append(rows.cell("dtype"));
    steps.of_program[program].push_back(ms * 1e3);
    if (const std::string_view trace = rows.cell("kineto_trace"); !trace.empty())
      steps.program_of[fs::path{trace}.filename().string()] = std::move(program);
  }
}

Status read_overhead_steps(const fs::path& file, MeasuredSteps& steps) {
  STEPCAST_ASSIGN(const std::string text, read_file(file));
  STEPCAST_ASSIGN(CsvRows rows, CsvRows::open(text, file.string()));
  for (;;) {
    STEPCAST_ASSIGN(const bool more, rows.next());
    if (!more) return Ok{};
    const std::string_view name = rows.cell("case");
    if (!name.starts_with(kTracedCase)) continue;
    STEPCAST_ASSIGN(const double us, rows.number("time_us", 0));
    std::string trace{name.substr(kTracedCase.size())};
    steps.of_case[trace.append(kProfilerTrace)].push_back(us);
  }
}

double unprofiled_us(const MeasuredSteps& steps, const std::string& trace) {
  if (const auto own = steps.of_case.find(trace); own != steps.of_case.end()) return median(own->second);
  const auto program = steps.program_of.find(trace);
  return program == steps.program_of.end() ? 0 : median(steps.of_program.find(program->second)->second);
}

}  // namespace

Result<std::vector<CollectedTrace>> collected_traces(const fs::path& folder) {
  std::vector<CollectedTrace> traces;
  std::error_code ignored;
  if (!fs::is_regular_file(folder / "steps.csv", ignored) || !fs::is_directory(folder / "traces", ignored))
    return traces;
  MeasuredSteps steps;
  STEPCAST_TRY(read_steps(folder / "steps.csv", steps));
  if (!steps.of_collector) return traces;
  if (fs::is_regular_file(folder / "overheads.csv", ignored))
    STEPCAST_TRY(read_overhead_steps(folder / "overheads.csv", steps));
  for (const auto& entry : fs::directory_iterator(folder / "traces", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(kProfilerTrace)) traces.push_back({entry.path(), unprofiled_us(steps, name)});
  }
  std::ranges::sort(traces, {}, &CollectedTrace::file);
  // Loops of bare launches are excluded, because they do not represent training.
  std::erase_if(traces, [](const CollectedTrace& trace) {
    return trace.file.filename().string().starts_with("launches.");
  });
  return traces;
}

}  // namespace stepcast
