// Scores replays of recorded traces: every rank and every ProfilerStep of every trace set in a folder and its
// sub-folders.
//
//   step_time          (primary) CPU duration of ProfilerStep, per rank and step; ms
//   gpu_window         step start to the last GPU end of work launched in it; ms
//   global_window      all ranks of a set together; ms
//   kernel_starts      starts of GPU work relative to the step's start; absolute errors in extra keys; us
//   collective_waits   what each rank waited in each collective; share within 5 % + 20 us in extra keys; us
//   unexplained_wait   waiting in calls that no dependency explains, and kept hand-off latency, as shares of
//                      the step; percent
//   gpu_lateness       time in which GPU work that every dependency let start had not started, as a share of the
//                      step; in extra keys what keeps recorded distances, and replays that come with a warning;
//                      percent
//   naive              step_time of the naive replay: waits cut to their base cost, no dependencies of GPU work
//   naive_gpu_window   its gpu_window
//   smallest_handoff   step_time with the smallest hand-off latency over all ranks instead of each rank's own
//   whole_trace        traces that mark no steps: first CPU event to the last
//   round_trip         a changed scenario simulated, written as a trace, imported with all inference and changed
//                      back, against the original: rank ends as errors of the step, kernel starts in extra keys
//                      (round_trip.h); ms
//   operator_timeline  steps of operator-level timelines of pipelines, launch delays from the other half of the steps:
//                      of even positions for odd ones and the other way round; ms
//   operator_timeline_no_delay   the same without launch delays, against the publishers' own simulation without
//                      (`step_t_nodelay` of the file result-* beside timeline-*); ms
//   inferred_events    where the trace records which event a stream waits for: edges inferred without those
//                      records; counts in extra keys (inference_score.h)
//
// Nothing is fitted to a step time, so the protocol is "recorded".
#pragma once

#include <filesystem>

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

[[nodiscard]] Result<SuiteResult> validate_replay(const std::filesystem::path& data,
                                                  const SuiteOptions& options = {});

[[nodiscard]] Suite replay_suite();

}  // namespace stepcast
