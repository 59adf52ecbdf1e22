// Scores dry runs of collected and published programs: the record of each program, priced on the GPU of the row.

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/units.h"
#include "stepcast/cost/host_overheads.h"
#include "stepcast/predict/untimed_program.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/trace/execution_trace.h"
#include "stepcast/trace/readers.h"

#include "calibrate/llm_runs.h"
#include "lab/collected_steps.h"
#include "lab/run_platforms.h"
#include "lab/run_scores.h"
#include "lab/suite.h"
#include "lab/suites.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

struct DryRunStep {
  Estimate step;
  double peak_GiB = 0, reserved_GiB = 0;
};

Result<DryRunStep> dry_run_step(const fs::path& record, const Platform& platform, const HostOverheads& host) {
  STEPCAST_ASSIGN(const ExecutionTrace trace, read_execution_trace(record));
  if (!trace.dry_run) return Error::at(record.string(), "is not a record of a dry run");
  const UntimedRank rank{&trace, trace.rank.value_or(0), 0};
  STEPCAST_ASSIGN(RecordedProgram recorded, untimed_program(std::span{&rank, 1}, host.launch_table()));
  STEPCAST_ASSIGN(const TracePrediction prediction,
                  predict_recorded(std::move(recorded), {.platform = &platform,
                                                         .kernels = KernelTimeSource::models,
                                                         .host = HostTimeSource::overheads}));
  return DryRunStep{prediction.step, static_cast<double>(trace.dry_run->peak_allocated_bytes) / kGiB,
                    static_cast<double>(trace.dry_run->peak_reserved_bytes) / kGiB};
}

double ms_of(Microseconds time) { return time.value() / 1e3; }

ScoredRow row_of(std::string name, double measured_ms, const Estimate& step) {
  return {.row = std::move(name),
          .measured = measured_ms,
          .predicted = ms_of(step.time),
          .p10 = ms_of(step.p10),
          .p90 = ms_of(step.p90)};
}

// Scores the estimates of PyTorch's roofline estimator for the same programs (lab/record_steps.py --estimator), in
// milliseconds. Cases in which it fails are left out.
Status score_estimator(const fs::path& file, const std::vector<CollectedGpu>& gpus, SuiteResult& result) {
  if (!fs::exists(file)) return Ok{};
  std::map<std::pair<std::string, std::string>, double> estimates;  // [case, GPU]
  STEPCAST_TRY(each_row(file, [&](const CsvRows& rows) -> Status {
    if (rows.cell("estimate_ms").empty()) return Ok{};
    STEPCAST_ASSIGN(const double ms, rows.number("estimate_ms", 0));
    estimates.emplace(std::pair{std::string{rows.cell("case")}, std::string{rows.cell("gpu")}}, ms);
    return Ok{};
  }));
  TestScore test{.test = "dry_run_runtime_estimator", .protocol = "recorded", .unit = "ms"};
  for (const CollectedGpu& gpu : gpus) {
    for (const CollectedStep& step : gpu.steps) {
      const auto estimate = estimates.find({step.name, step.gpu});
      if (estimate == estimates.end()) continue;
      test.set_of(step.gpu).rows.push_back(
          {.row = step.name, .measured = step.ms, .predicted = estimate->second});
    }
  }
  result.add(finished({&test}));
  return Ok{};
}

// The file name of the record of a published step, as in lab/record_steps.py.
std::string record_of(const LlmRun& run) {
  std::string name = fmt::format("{} {} {} {} {} {} tp{} cp{} {}", run.set, run.model.name, run.gpu,
                                 run.n_gpus, run.dtype, run.framework, run.layout.degrees.tensor,
                                 run.layout.degrees.context, run.layout.batch.seq_len_tokens);
  if (run.note.find("async TP") != std::string::npos) name += " async";
  std::ranges::replace(name, ' ', '_');
  return name + ".et.json.gz";
}

// Scores published steps by dry runs of the programs that made them, and by their descriptions. Measured times are those of
// the table.
Status score_published(const fs::path& data, const fs::path& records, const SuiteOptions& options,
                       SuiteResult& result) {
  fs::path table = data / "iterations" / "llm_runs.csv";
  if (!fs::exists(table)) table = data.parent_path() / "iterations" / "llm_runs.csv";
  if (!fs::exists(table) || !fs::is_directory(records)) {
    result.skipped.push_back({"dry_run_published", "no iterations/llm_runs.csv with the measured times", 1});
    return Ok{};
  }
  STEPCAST_ASSIGN(std::vector<LlmRun> runs, read_llm_runs(table));
  std::erase_if(runs, [&](const LlmRun& run) { return !fs::exists(records / record_of(run)); });
  RunPlatforms platforms{options.platforms};
  TestScore published{.test = "dry_run_published", .protocol = "shipped", .unit = "ms"};
  TestScore described{.test = "dry_run_published_described", .protocol = "shipped", .unit = "ms"};
  TestScore memory{.test = "dry_run_published_memory", .protocol = "shipped", .unit = "GiB"};
  for (const PredictedRun& by_description : predict_runs(runs, platforms, result.skipped)) {
    const LlmRun& run = *by_description.run;
    STEPCAST_ASSIGN(const Platform platform, platforms.choose(run));
    STEPCAST_ASSIGN(const HostOverheads host, HostOverheads::of(platform));
    const ScoredRow row = scored(by_description);
    const Result<DryRunStep> made = dry_run_step(records / record_of(run), platform, host);
    if (!made.ok()) {
      result.skipped.push_back({row.row, made.error().message(), 1});
      continue;
    }
    published.set_of(run.set).rows.push_back(row_of(row.row, run.iter_time_ms, made->step));
    described.set_of(run.set).rows.push_back(row);
    if (run.memory_GiB)
      memory.set_of(run.set).rows.push_back(
          {.row = row.row, .measured = *run.memory_GiB, .predicted = made->reserved_GiB});
  }
  result.add(finished({&published, &described, &memory}));
  return Ok{};
}

}  // namespace

Result<SuiteResult> validate_dry_run(const fs::path& data, const SuiteOptions& options) {
  SuiteResult result{.suite = "dry_run"};
  fs::path place = data;
  STEPCAST_ASSIGN(const std::vector<CollectedGpu> gpus, collected_gpus(place));
  const fs::path records = place / "dry_run";
  if (!fs::is_directory(records)) {
    return Error::at(place.string(), "holds no records of dry runs")
        .expected("a folder dry_run with CASE.et.json.gz")
        .advice("make them with python3 lab/record_steps.py dry_run");
  }
  TestScore all{.test = "dry_run_steps", .protocol = "shipped", .unit = "ms"};
  TestScore by_gpu{.test = "dry_run_gpu_decides", .protocol = "shipped", .unit = "ms"};
  TestScore by_host{.test = "dry_run_host_decides", .protocol = "shipped", .unit = "ms"};
  TestScore other{.test = "dry_run_other_gpu", .protocol = "recorded", .unit = "ms"};
  TestScore other_by_gpu{.test = "dry_run_other_gpu_gpu_decides", .protocol = "recorded", .unit = "ms"};
  TestScore other_by_host{.test = "dry_run_other_gpu_host_decides", .protocol = "recorded", .unit = "ms"};
  TestScore memory{.test = "dry_run_peak_memory", .protocol = "shipped", .unit = "GiB"};
  for (const CollectedGpu& gpu : gpus) {
    STEPCAST_ASSIGN(const Platform platform, with_hosts_of_others(gpu, gpus));
    STEPCAST_ASSIGN(const HostOverheads host, HostOverheads::of(platform));
    for (const CollectedStep& measured : gpu.steps) {
      const Result<DryRunStep> made = dry_run_step(records / (measured.name + ".et.json.gz"), platform, host);
      if (!made.ok()) {
        result.skipped.push_back({fmt::format("{} {}", measured.gpu, measured.name), made.error().message()});
        continue;
      }
      const ScoredRow row = row_of(measured.name, measured.ms, made->step);
      all.set_of(measured.gpu).rows.push_back(row);
      (measured.gpu_decides ? by_gpu : by_host).set_of(measured.gpu).rows.push_back(row);
      if (const CollectedStep* same = on_other_gpu(measured, gpus)) {
        const ScoredRow unchanged{.row = measured.name, .measured = measured.ms, .predicted = same->ms};
        other.set_of(measured.gpu).rows.push_back(unchanged);
        (measured.gpu_decides ? other_by_gpu : other_by_host).set_of(measured.gpu).rows.push_back(unchanged);
      }
      if (measured.peak_GiB > 0) {
        memory.set_of(measured.gpu)
            .rows.push_back(
                {.row = measured.name, .measured = measured.peak_GiB, .predicted = made->peak_GiB});
      }
    }
  }
  result.add(finished({&all, &by_gpu, &by_host, &other, &other_by_gpu, &other_by_host, &memory}));
  STEPCAST_TRY(score_estimator(records / "runtime_estimator.csv", gpus, result));
  STEPCAST_TRY(score_published(data, records / "published", options, result));
  return result;
}

}  // namespace stepcast
