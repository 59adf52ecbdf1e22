// The suites of validation, each with its tests.
#pragma once

#include <filesystem>

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

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
[[nodiscard]] Result<SuiteResult> validate_replay(const std::filesystem::path& data,
                                                  const SuiteOptions& options = {});
[[nodiscard]] Suite replay_suite();

// Scores predictions of recorded steps: the structure of a recorded step with times that come from elsewhere.
//
//   step_time          (primary) leave one rank out: a rank's host time is what the other ranks of the job
//                      needed for the same operators; its GPU work as recorded, the other ranks as recorded,
//                      start offsets given; ms
//   mean_of_others     the mean of the other ranks' steps instead: what knowing nothing of the rank comes to
//   published_algorithm, speed_of_light, overlap_factor   what others' models say of the same steps
//                      (trace_baselines.h)
//   own_overheads      every rank with the mean host times of its own step, all ranks together
//   cross_step         the median of what the other steps of the file take with this step's data loader time;
//                      without the steps before the job is under way, which are named
//   median_of_others   the median of the other steps as they are
//   two_captures       one capture's structure and GPU work with the host times of another capture of the same
//                      job (a trace set beside it with the same operators); the data loader's time as recorded;
//                      the mean of its steps
//   two_captures_each_step        the same, every step alone
//   two_captures_loader_learned   the mean step with the data loader's time from the other capture
//   foreign_overheads  host times of the job that knows most of this one's calls, another workload on whatever
//                      GPU, times the factor by which operators that both know are slower here; mean step
//   foreign_overheads_unrelated   the same where that job knows less than 60 % of the calls
//   execution_traces_alone   a rank's step from the execution traces of all ranks: its own recorded time
//                      gives no more than when it began; host times and launches of the other ranks
//   gpu_active         kernel time from models alone against the recorded one, without communication, table
//                      lookups and what has no known operation; ms
//   gpu_active_by_class   the same by class of kernel, lookups too
//   gpu_active_of_convolutions   the same of convolutions: 1x1, larger, strided, grouped
//   cross_device       kernel time of a workload recorded on two GPUs: one predicted from the other by the
//                      ratio of the models
//   cross_device_models, cross_device_unchanged   the same from models alone, and with the recorded time
//
// "recorded": nothing is fitted to what is scored. Host times of `step_time` are learned on other ranks.
[[nodiscard]] Result<SuiteResult> validate_predict(const std::filesystem::path& data,
                                                   const SuiteOptions& options = {});
[[nodiscard]] Suite predict_suite();

// Scores the models of collectives against measured times (files of collective_measurements.h, or folders of
// them).
//
//   held_out_sizes     (primary) every octave of message sizes of a curve in turn is left out, both ends too,
//                      with all repeats of its sizes; the curve is fitted to the rest and scored on the octave
//   published_form     our form against the published sigmoid on the same folds, form against form, no knots;
//                      the rows are of ours, the sigmoid stands in extra keys
//   dense_smooth       the curves of held_out_sizes with 200 sizes or more that lie on lines between their
//                      neighbours: within 0.2 % (median) and 2 % (90th percentile)
//   unseen_ranks       fitted on 2 and 4 ranks of a node, scored on 8: NVSwitch; _other: PCIe, mixed, not stated
//   unseen_nodes       fitted on fewer nodes, scored on the most: one-GPU nodes; _many_gpus: others, from 1 MB
//   synthetic_3pct     curves that are known, drawn with 3 % noise: start-up, peak bandwidth and curve
//   unseen_system...   machines and whole generations left out (unseen_system.h); also those of the later measurements
//                      in ../modern/collectives beside the folder
//   shipped            (protocol shipped) the platform file that ships, on rows it was not fitted on
[[nodiscard]] Result<SuiteResult> validate_collectives(const std::filesystem::path& data,
                                                       const SuiteOptions& options = {});
[[nodiscard]] Suite collectives_suite();

// Scores kernel models against measured kernel times (files of kernel_measurements.h, or folders of them; to a
// folder `kernels` belongs a folder `modern/kernels` beside it).
//
// Under the protocol `refit` models are fitted to the rows of a device that are not held out. Five folds:
//   held_out_rows              (primary) by shape: no shape that is tested was fitted to, in any direction
//   random_rows                by row, where equal shapes come from different parameters, as the published
//                              errors are: a tested row may have a twin among the fitted ones
//   held_out_hidden_size       whole values of the hidden size
//   held_out_sequence_length   whole values of the sequence length
// One fold:
//   beyond_range               the largest hidden sizes; elsewhere the tenth with the most FLOPs or bytes
//   held_out_gradients         products in a layout of gradients that was measured in batches alone
//   unseen_gpu                 every GPU in turn from at least two others that measured the same family: fp32
//                              and what else is not 16 bits
//   unseen_gpu_20_points       the same with 20 measured points of each operator of the new GPU
//   unseen_gpu_half            tables by type: the whole generation of a GPU left out, from others' tables
//   unseen_gpu_half_siblings   16-bit types, from at least one other GPU, which may be of its generation
// Under the protocol `shipped`:
//   shipped                    the shipped platform of the row's GPU, on rows that it was not fitted on
//
// Sets are "GPU/operator/direction". Rows faster than the bound of their device are left out and counted.
[[nodiscard]] Result<SuiteResult> validate_kernels(const std::filesystem::path& data,
                                                   const SuiteOptions& options = {});
[[nodiscard]] Suite kernels_suite();

// Scores step times predicted from a description against measured LLM runs. Nothing is fitted to their
// times, but docs/constants.md lists what was chosen with them in view.
[[nodiscard]] Suite iterations_suite();

// Scores recommendation models: lookup operators (dlrm_lookups.h) and whole steps predicted from a description.
[[nodiscard]] Suite dlrm_suite();

}  // namespace stepcast
