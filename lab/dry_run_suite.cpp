// Scores dry runs of the programs that the collector measured: the record of each, priced on the GPU of the row.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/base/units.h"
#include "stepcast/cost/host_overheads.h"
#include "stepcast/predict/untimed_program.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/trace/execution_trace.h"
#include "stepcast/trace/readers.h"

#include "lab/collected_steps.h"
#include "lab/suites.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

struct DryRunStep {
  Estimate step;
  double peak_GiB = 0;
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
  return DryRunStep{prediction.step, static_cast<double>(trace.dry_run->peak_allocated_bytes) / kGiB};
}

double ms_of(Microseconds time) { return time.value() / 1e3; }

}  // namespace

Result<SuiteResult> validate_dry_run(const fs::path& data, const SuiteOptions& /*options*/) {
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
      const ScoredRow row{.row = measured.name,
                          .measured = measured.ms,
                          .predicted = ms_of(made->step.time),
                          .p10 = ms_of(made->step.p10),
                          .p90 = ms_of(made->step.p90)};
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
  return result;
}

}  // namespace stepcast
