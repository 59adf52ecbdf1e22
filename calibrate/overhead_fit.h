// Fits statistics of the five overheads T1..T5 as records of a platform, and applies them to a recorded step.
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
  // Time that the profiler added for every recorded event. It is subtracted from every occurrence, with a minimum of 0.
  // Records then do not contain the number of events, so that it is not subtracted twice. 0: times as profiled.
  double profiler_cost_us = 0;
  // For samples by the published rules (lab/published_overheads.h): no records for unseen operators, which cost nothing by
  // these rules; of several launch sequences the longest.
  bool published_rules = false;
  // With three or more jobs, each is scaled to the speed of the median job. False for times that are already scaled to
  // measured steps.
  bool levels_jobs = true;
};

struct OverheadFit {
  std::vector<OverheadRecord> records;  // by type and op
  LaunchTable launches;
  double sum_us = 0;            // of all occurrences, what was taken off left in
  double profiler_cost_us = 0;  // total cost subtracted
  std::size_t jobs = 1;
  // [job] job_speeds(), the divisors of the times; empty: times are not scaled.
  std::vector<double> job_speed{};
  // Error of the host time of each job when predicted from the others (job_band()); no value for a single job.
  std::optional<double> band{};

  // Replaces the overheads of the same names in `platform`, and its launches and band if any were found.
  void write_to(Platform& platform, const Provenance& provenance) const;
  // The overheads of a platform that contains only this fit.
  [[nodiscard]] HostOverheads host() const;
};

// Means over all occurrences, so that mean x number is the sum. Every operator has a record. Records of families and of all
// operators together represent operators that were not seen. Neither includes the gap before the end of a step.
[[nodiscard]] OverheadFit fit_overheads(const OverheadSamples& samples,
                                        const OverheadFitOptions& options = {});
// For several jobs: the same statistics of all occurrences together, and the band of another job.
[[nodiscard]] OverheadFit fit_overheads(std::span<const OverheadSamples> jobs,
                                        const OverheadFitOptions& options = {});

}  // namespace stepcast
