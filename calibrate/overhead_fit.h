// Statistics of the five overheads T1..T5 as records of a platform, and what they say about a recorded step.
//
//   STEPCAST_ASSIGN(const TraceOverheads traces, read_overheads(places));   // of every job that ran on that host
//   const OverheadFit fit = fit_overheads(traces.jobs);
//   fit.write_to(platform, provenance);                              // HostOverheads reads it there
//   apply_host_overheads(fit.host(), recorded, rank, costs);         // or at once
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "stepcast/cost/host_overheads.h"
#include "stepcast/platform/platform.h"

#include "calibrate/overhead_traces.h"

namespace stepcast {

struct OverheadFitOptions {
  // What the profiler added for every event it recorded; taken off every occurrence, down to 0. Records then
  // say nothing of events, so that it is not taken off twice. 0: times as profiled.
  double profiler_cost_us = 0;
  // For samples by the published rules (lab/published_overheads.h): no record for operators that were never seen, as
  // they cost nothing there; of several sequences of launches the longest.
  bool published_rules = false;
  // Of three jobs and more: each is brought to the speed of the median job. False for times that were scaled to measured steps
  // already.
  bool levels_jobs = true;
};

struct OverheadFit {
  std::vector<OverheadRecord> records;  // by type and op
  LaunchTable launches;
  double sum_us = 0;            // of all occurrences, what was taken off left in
  double profiler_cost_us = 0;  // total cost subtracted
  std::size_t jobs = 1;
  // [job] job_speeds(), which its times were divided by; empty: they were not.
  std::vector<double> job_speed{};
  // How far the host time of each job is off what the others say (job_band()); nothing for a single job.
  std::optional<double> band{};

  // Replaces the overheads of the same name in `platform` and, if any were found, its launches and its band.
  void write_to(Platform& platform, const Provenance& provenance) const;
  // As a platform that holds nothing else has it.
  [[nodiscard]] HostOverheads host() const;
};

// Means over all occurrences, so that mean x number is the sum. Every operator has a record. Records of families and of all
// operators together represent operators that were not seen. Neither includes the gap before the end of a step.
[[nodiscard]] OverheadFit fit_overheads(const OverheadSamples& samples,
                                        const OverheadFitOptions& options = {});
// Of several jobs: the same of all occurrences together, and the band of another job.
[[nodiscard]] OverheadFit fit_overheads(std::span<const OverheadSamples> jobs,
                                        const OverheadFitOptions& options = {});

}  // namespace stepcast
