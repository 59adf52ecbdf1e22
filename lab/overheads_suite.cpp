// Scores host times that `calibrate overheads` learns from other jobs of a machine.

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/platform/platform_file.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/sources/trace_set.h"

#include "calibrate/overhead_fit.h"
#include "calibrate/overhead_traces.h"
#include "lab/recorded_job.h"
#include "lab/shipped_data.h"
#include "lab/suites.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

// A step with fewer named operators is a loop of launches, not a training step.
constexpr std::size_t kLeastOperators = 50;

// A profiler trace of a machine: the overheads that `calibrate overheads` learns from it, and its replayed step.
struct TracedJob {
  fs::path file;
  std::string name;
  OverheadSamples host;
  RecordedProgram recorded;
  double step_us = 0;
};

Result<TracedJob> read_job(const fs::path& file, const std::string& name, unsigned threads) {
  STEPCAST_ASSIGN(const TraceListing listing, list_traces(std::span{&file, 1}));
  STEPCAST_ASSIGN(const TraceSet set, read_trace_set(listing, {.ranks = {}, .threads = threads}));
  STEPCAST_ASSIGN(RecordedProgram recorded, rebuild_program(set.inputs()));
  STEPCAST_ASSIGN(TraceOverheads overheads, read_overheads(std::span{&file, 1}, threads));
  TracedJob job{.file = file,
                .name = name,
                .host = std::move(overheads.jobs.front()),
                .recorded = std::move(recorded),
                .step_us = 0};
  for (const RecordedStepFacts& facts : job.recorded.facts)
    job.step_us = std::max(job.step_us, facts.step_us.length_us());
  return job;
}

// The files of one folder, by kind of GPU that recorded them.
std::map<std::string, std::vector<TracedJob>> machines_in(const fs::path& folder, const fs::path& data,
                                                          unsigned threads, std::vector<Skipped>& skipped) {
  std::map<std::string, std::vector<TracedJob>> by_device;
  const std::vector<fs::path> place{folder};
  const Result<TraceListing> listing = list_traces(place);
  if (!listing.ok()) return by_device;
  for (const fs::path& file : listing->of(SourceKindId::profiler)) {
    const std::string name = relative_name(file, data);
    Result<TracedJob> job = read_job(file, name, threads);
    if (!job.ok()) {
      skipped.push_back({name, message_without_file(job.error())});
    } else if (job->recorded.facts.front().step_number < 0 || job->host.of.size() < kLeastOperators) {
      skipped.push_back({name, "marks no steps, or hardly calls an operator"});
    } else {
      by_device[job->recorded.files.front().device].push_back(std::move(*job));
    }
  }
  return by_device;
}

// The step of `job` predicted with the host times of others, as in `predict --host overheads`.
Result<ScoredRow> predicted(const TracedJob& job, const Platform& device,
                            std::span<const OverheadSamples> others, std::string name) {
  Platform platform = device;
  platform.overheads = {};
  fit_overheads(others).write_to(platform, {});
  STEPCAST_ASSIGN(const TracePrediction p,
                  predict_recorded(job.recorded, {.platform = &platform,
                                                  .recorded_on = &platform,
                                                  .kernels = KernelTimeSource::recorded,
                                                  .host = HostTimeSource::overheads}));
  return ScoredRow{.row = std::move(name),
                   .measured = job.step_us / 1e3,
                   .predicted = p.step.time.value() / 1e3,
                   .p10 = p.step.p10.value() / 1e3,
                   .p90 = p.step.p90.value() / 1e3,
                   .shares = {}};
}

Status score_machine(const std::vector<TracedJob>& jobs, const std::string& set, TestScore& all,
                     TestScore& one) {
  STEPCAST_ASSIGN(const Platform device, load_device(jobs.front().recorded.files.front().device));
  for (const TracedJob& job : jobs) {
    std::vector<OverheadSamples> others;
    for (const TracedJob& other : jobs) {
      if (&other == &job) continue;
      others.push_back(other.host);
      STEPCAST_ASSIGN(ScoredRow row, predicted(job, device, std::span{&other.host, 1},
                                               fmt::format("{} from {}", job.file.filename().string(),
                                                           other.file.filename().string())));
      one.set_of(set).n_fit = 1;
      one.set_of(set).rows.push_back(std::move(row));
    }
    STEPCAST_ASSIGN(ScoredRow row, predicted(job, device, others, job.file.filename().string()));
    SetScore& scores = all.set_of(set);
    scores.n_fit = others.size();
    scores.rows.push_back(std::move(row));
  }
  return Ok{};
}

}  // namespace

Result<SuiteResult> validate_overheads(const fs::path& data, const SuiteOptions& options) {
  SuiteResult result{.suite = "overheads"};
  fs::path place = data;
  std::vector<fs::path> beside;
  if (const auto readme = shipped_data_file("measured/README.md"); !fs::exists(data) && readme) {
    place = readme->parent_path();
    beside = {data.parent_path() / "traces" / "dlrm8"};
  }
  STEPCAST_ASSIGN(std::vector<fs::path> folders, folders_of(place));
  std::ranges::copy_if(beside, std::back_inserter(folders),
                       [](const fs::path& other) { return fs::exists(other); });
  TestScore all{.test = "other_jobs", .protocol = "refit", .unit = "ms"};
  TestScore one{.test = "one_other_job", .protocol = "refit", .unit = "ms"};
  for (const fs::path& folder : folders) {
    for (const auto& [device, jobs] : machines_in(folder, place, options.threads, result.skipped)) {
      const std::string set = folder.filename() == "traces" ? folder.parent_path().filename().string()
                                                            : folder.filename().string();
      if (jobs.size() < 2) {
        result.skipped.push_back({set, "a single trace of its GPU: no other job to learn from"});
        continue;
      }
      STEPCAST_TRY(score_machine(jobs, set, all, one));
    }
  }
  result.add(finished({&all, &one}));
  if (result.tests.empty()) {
    return Error::at(data.string(), "no two profiler traces with steps of one GPU in a folder")
        .expected("a folder with the traces of several jobs of a machine");
  }
  return result;
}

}  // namespace stepcast
