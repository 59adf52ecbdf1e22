// Scores dry runs of the programs that the collector measured, and of published ones: the record of each, priced on the GPU of the row.

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/base/units.h"
#include "stepcast/cost/host_overheads.h"
#include "stepcast/platform/platform_file.h"
#include "stepcast/predict/untimed_program.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/trace/execution_trace.h"
#include "stepcast/trace/readers.h"

#include "calibrate/llm_runs.h"
#include "calibrate/overhead_fit.h"
#include "calibrate/overhead_traces.h"
#include "lab/recorded_job.h"
#include "lab/run_platforms.h"
#include "lab/shipped_data.h"
#include "lab/suites.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// The GPU decides a step whose p10 and p90 lie no farther apart than this of its median (measured_suite.cpp).
constexpr double kDecidedByGpu = 0.02;

struct ProgramStep {
  std::string name, gpu;
  double ms = 0, peak_GiB = 0;
  bool gpu_decides = false;
};

struct CollectedGpu {
  fs::path folder;
  std::vector<ProgramStep> steps;
};

Result<CollectedGpu> read_gpu(const fs::path& folder) {
  CollectedGpu gpu{.folder = folder, .steps = {}};
  STEPCAST_TRY(each_row(folder / "steps.csv", [&](const CsvRows& rows) -> Status {
    ProgramStep step{.name = std::string{rows.cell("case")}, .gpu = std::string{rows.cell("gpu")}};
    STEPCAST_ASSIGN(step.ms, rows.number("measured_ms", 0));
    STEPCAST_ASSIGN(const double low, rows.number("measured_ms_p10", 0));
    STEPCAST_ASSIGN(const double high, rows.number("measured_ms_p90", 0));
    STEPCAST_ASSIGN(step.peak_GiB, rows.number("peak_memory_GiB", 0, 0));
    step.gpu_decides = high - low <= kDecidedByGpu * step.ms;
    gpu.steps.push_back(std::move(step));
    return Ok{};
  }));
  return gpu;
}

// The GPU's platform with the host times of the captures of all other GPUs.
Result<Platform> platform_of(const CollectedGpu& gpu, const std::vector<CollectedGpu>& all) {
  STEPCAST_ASSIGN(Platform platform, load_device(gpu.steps.front().gpu));
  std::vector<fs::path> others;
  for (const CollectedGpu& other : all)
    if (other.folder != gpu.folder) others.push_back(other.folder);
  if (others.empty()) return platform;
  STEPCAST_ASSIGN(const TraceOverheads traces, read_overheads(others));
  platform.overheads = {};
  fit_overheads(traces.samples).write_to(platform, {});
  return platform;
}

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

// Folders of the collector in `data`, or in the source tree where there are none.
Result<std::vector<CollectedGpu>> collected_gpus(const fs::path& data, fs::path& records) {
  std::vector<fs::path> places{data};
  if (const auto readme = shipped_data_file("measured/README.md")) places.push_back(readme->parent_path());
  std::vector<CollectedGpu> gpus;
  for (const fs::path& place : places) {
    records = place / "dry_run";
    STEPCAST_ASSIGN(const std::vector<fs::path> folders, folders_of(place));
    for (const fs::path& folder : folders) {
      if (!fs::exists(folder / "steps.csv")) continue;
      STEPCAST_ASSIGN(CollectedGpu gpu, read_gpu(folder));
      if (!gpu.steps.empty()) gpus.push_back(std::move(gpu));
    }
    if (!gpus.empty() && fs::is_directory(records)) return gpus;
    gpus.clear();
  }
  return Error::at(data.string(), "holds no records of dry runs")
      .expected("folders with steps.csv and traces (docs/collector.md), and dry_run/CASE.et.json.gz")
      .advice("make them with python3 lab/record_steps.py dry_run");
}

// The same case on another GPU.
const ProgramStep* on_other(const ProgramStep& step, const std::vector<CollectedGpu>& gpus) {
  for (const CollectedGpu& gpu : gpus)
    for (const ProgramStep& other : gpu.steps)
      if (other.name == step.name && other.gpu != step.gpu) return &other;
  return nullptr;
}

// What PyTorch's roofline estimator says of the same programs (lab/record_steps.py --estimator), in milliseconds. Cases that it does not
// end on are left out.
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
    for (const ProgramStep& step : gpu.steps) {
      const auto estimate = estimates.find({step.name, step.gpu});
      if (estimate == estimates.end()) continue;
      test.set_of(step.gpu).rows.push_back(
          {.row = step.name, .measured = step.ms, .predicted = estimate->second});
    }
  }
  result.add(finished({&test}));
  return Ok{};
}

// The record of a published step, by its description: as lab/record_steps.py names it.
std::string record_of(const LlmRun& run) {
  std::string name = fmt::format("{} {} {} {} {} {} tp{} cp{} {}", run.set, run.model.name, run.gpu,
                                 run.n_gpus, run.dtype, run.framework, run.layout.degrees.tensor,
                                 run.layout.degrees.context, run.layout.batch.seq_len_tokens);
  if (run.note.find("async TP") != std::string::npos) name += " async";
  std::ranges::replace(name, ' ', '_');
  return name + ".et.json.gz";
}

// Steps that others published, by dry runs of the program that made them, and by their description. Times come from the table alone.
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
  fs::path records;
  STEPCAST_ASSIGN(const std::vector<CollectedGpu> gpus, collected_gpus(data, records));
  TestScore all{.test = "dry_run_steps", .protocol = "shipped", .unit = "ms"};
  TestScore by_gpu{.test = "dry_run_gpu_decides", .protocol = "shipped", .unit = "ms"};
  TestScore by_host{.test = "dry_run_host_decides", .protocol = "shipped", .unit = "ms"};
  TestScore other{.test = "dry_run_other_gpu", .protocol = "recorded", .unit = "ms"};
  TestScore other_by_gpu{.test = "dry_run_other_gpu_gpu_decides", .protocol = "recorded", .unit = "ms"};
  TestScore other_by_host{.test = "dry_run_other_gpu_host_decides", .protocol = "recorded", .unit = "ms"};
  TestScore memory{.test = "dry_run_peak_memory", .protocol = "shipped", .unit = "GiB"};
  for (const CollectedGpu& gpu : gpus) {
    STEPCAST_ASSIGN(const Platform platform, platform_of(gpu, gpus));
    STEPCAST_ASSIGN(const HostOverheads host, HostOverheads::of(platform));
    for (const ProgramStep& measured : gpu.steps) {
      const Result<DryRunStep> made = dry_run_step(records / (measured.name + ".et.json.gz"), platform, host);
      if (!made.ok()) {
        result.skipped.push_back({fmt::format("{} {}", measured.gpu, measured.name), made.error().message()});
        continue;
      }
      const ScoredRow row = row_of(measured.name, measured.ms, made->step);
      all.set_of(measured.gpu).rows.push_back(row);
      (measured.gpu_decides ? by_gpu : by_host).set_of(measured.gpu).rows.push_back(row);
      if (const ProgramStep* same = on_other(measured, gpus)) {
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
