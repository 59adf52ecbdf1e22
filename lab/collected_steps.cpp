#include "lab/collected_steps.h"

#include <utility>

#include <fmt/format.h>

#include "stepcast/base/csv_rows.h"
#include "stepcast/platform/platform_file.h"

#include "calibrate/overhead_fit.h"
#include "calibrate/overhead_traces.h"
#include "lab/recorded_job.h"
#include "lab/shipped_data.h"
#include "lab/suite.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

constexpr double kDecidedByGpu = 0.02;

Result<CollectedGpu> read_gpu(const fs::path& folder) {
  CollectedGpu gpu{.folder = folder, .steps = {}};
  STEPCAST_TRY(each_row(folder / "steps.csv", [&](const CsvRows& rows) -> Status {
    CollectedStep step{.name = std::string{rows.cell("case")},
                       .gpu = std::string{rows.cell("gpu")},
                       .model = std::string{rows.cell("model")},
                       .dtype = parse_dtype(rows.cell("dtype")),
                       .optimizer = std::string{rows.cell("optimizer")}};
    STEPCAST_ASSIGN(step.batch, rows.extent("batch"));
    if (!rows.cell("seq_len_tokens").empty()) {
      STEPCAST_ASSIGN(step.seq_len_tokens, rows.extent("seq_len_tokens"));
    }
    STEPCAST_ASSIGN(step.ms, rows.number("measured_ms", 1e-6));
    STEPCAST_ASSIGN(const double low, rows.number("measured_ms_p10", 1e-6));
    STEPCAST_ASSIGN(const double high, rows.number("measured_ms_p90", 1e-6));
    STEPCAST_ASSIGN(step.peak_GiB, rows.number("peak_memory_GiB", 0, 0));
    step.gpu_decides = high - low <= kDecidedByGpu * step.ms;
    step.description = folder / std::string{rows.cell("description")};
    gpu.steps.push_back(std::move(step));
    return Ok{};
  }));
  return gpu;
}

}  // namespace

Result<std::vector<CollectedGpu>> collected_gpus(fs::path& data) {
  std::vector<fs::path> places{data};
  if (const auto readme = shipped_data_file("measured/README.md")) places.push_back(readme->parent_path());
  std::vector<CollectedGpu> gpus;
  for (const fs::path& place : places) {
    STEPCAST_ASSIGN(const std::vector<fs::path> folders, folders_of(place));
    for (const fs::path& folder : folders) {
      if (!fs::exists(folder / "steps.csv")) continue;
      STEPCAST_ASSIGN(CollectedGpu gpu, read_gpu(folder));
      if (!gpu.steps.empty()) gpus.push_back(std::move(gpu));
    }
    if (gpus.empty()) continue;
    data = place;
    return gpus;
  }
  return Error::at(data.string(), "holds no folder of the collector")
      .expected("folders with kernels.csv.gz, steps.csv and traces (docs/collector.md)");
}

Result<Platform> with_hosts_of_others(const CollectedGpu& gpu, const std::vector<CollectedGpu>& all) {
  STEPCAST_ASSIGN(Platform platform, load_device(gpu.steps.front().gpu));
  std::vector<fs::path> others;
  for (const CollectedGpu& other : all)
    if (other.folder != gpu.folder) others.push_back(other.folder);
  if (others.empty()) return platform;
  STEPCAST_ASSIGN(const TraceOverheads traces, read_overheads(others));
  platform.overheads = {};
  fit_overheads(traces.jobs, {.levels_jobs = !traces.is_scaled}).write_to(platform, {});
  return platform;
}

const CollectedStep* on_other_gpu(const CollectedStep& step, const std::vector<CollectedGpu>& gpus) {
  for (const CollectedGpu& gpu : gpus)
    for (const CollectedStep& other : gpu.steps)
      if (other.name == step.name && other.gpu != step.gpu) return &other;
  return nullptr;
}

}  // namespace stepcast
