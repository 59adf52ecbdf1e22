// The suites of validation, each with its tests.
#pragma once

#include <filesystem>
#include <string>

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
//   time_with_a_cause  the mean step of the ranks without the time of which nobody knows what held it (analyze/culprits.h): the error
//                      is the share without a cause; ms
//   clock_offsets      ranks on clocks that are up to 10, 50, 200 and 1,000 us apart, 20 draws each: the number of joined
//                      collectives of the draw that is farthest off; who is named in extra keys (replay_scores.h)
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
//   period             what a prediction without a change answers, against (last start - first start) / (n - 1) of the longest row
//                      of four ordinary steps and more that follow each other, where the standard deviation of the times between starts
//                      is 3 % at most; ms
//   operator_timeline  steps of operator-level timelines of pipelines, launch delays from the other half of the steps:
//                      of even positions for odd ones and the other way round; ms
//   operator_timeline_no_delay   the same without launch delays, against the publishers' own simulation without
//                      (`step_t_nodelay` of the file result-* beside timeline-*); ms
//   inferred_events    where the trace records which event a stream waits for: edges inferred without those
//                      records; counts in extra keys (replay_scores.h)
//
// Nothing is fitted to a step time, so the protocol is "recorded".
[[nodiscard]] Result<SuiteResult> validate_replay(const std::filesystem::path& data,
                                                  const SuiteOptions& options = {});

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
//   foreign_overheads  medians of the host times of all other jobs, other workloads on whatever GPU, times the factors by
//                      which operators that both know are slower here, which this capture tells: between operators, in
//                      them, calls; the data loader's time as recorded; mean step
//   foreign_overheads_unrelated      the same where those jobs know less than 60 % of the calls
//   foreign_overheads_speed_untold   no word of this capture: families of operators as in the median job
//   foreign_overheads_median_cost    the same of every operator by its name
//   foreign_overheads_by_family      without knowing operators by name
//   execution_traces_alone   a rank's step from the execution traces of all ranks: its own recorded time
//                      gives no more than when it began; host times and launches of the other ranks
//   gpu_active         kernel time from models alone against the recorded one, without communication, table
//                      lookups and what has no known operation; ms
//   gpu_active_by_class   the same by class of kernel, lookups too
//   gpu_active_of_convolutions   the same of convolutions: 1x1, larger, strided, grouped
//   cross_device       kernel time of a workload recorded on two GPUs: one predicted from the other by the
//                      ratio of the models
//   cross_device_models, cross_device_unchanged   the same from models alone, and with the recorded time; _peak_ratio and
//                      _bandwidth_ratio: times the ratio of one figure of the data sheets
//
// `of_baseline_pct` is the error of a set over that of the best of its baselines.
//
// "recorded": nothing is fitted to what is scored. Host times of `step_time` are learned on other ranks.
[[nodiscard]] Result<SuiteResult> validate_predict(const std::filesystem::path& data,
                                                   const SuiteOptions& options = {});

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

// Scores step times predicted from a description against measured LLM runs. Nothing is fitted to their
// times, but docs/constants.md lists what was chosen with them in view.
[[nodiscard]] Result<SuiteResult> validate_iterations(const std::filesystem::path& data,
                                                      const SuiteOptions& options = {});

// Scores recommendation models: lookup operators (dlrm_lookups.h) and whole steps predicted from a description.
[[nodiscard]] Result<SuiteResult> validate_dlrm(const std::filesystem::path& data,
                                                const SuiteOptions& options = {});

// Scores forecasts of published steps of post-training. `data`: a folder with rl_steps.csv.
[[nodiscard]] Result<SuiteResult> validate_rl(const std::filesystem::path& data,
                                              const SuiteOptions& options = {});

// Scores steps of MaxText on TPUs (tpu_steps.csv): each row as a config of MaxText with its layout and what its recipe
// recomputes, on the platform file of its chip and slices of the size that it states.
//
//   dense                (primary) seconds of a step of models without experts, sets by chip
//   experts              the same of models with experts
//   dense_utilisation, experts_utilisation   the trivial answer: the FLOPs of the model at the median share of the peak that
//                        the other rows of the same chip reach
//
// "refit": leave one chip out. One number is fitted: how much longer products take than the corrections say that were
// fitted to GPUs, the median over the dense rows of the other chips (gemm_factor); all_gemm_factor is that of all, which
// platforms/kernels/tpu.json ships. All else is of data sheets. Batches are the tokens that the step printed. Rows that
// state no layout or no rematerialisation, and models that are no preset, are named.
//
// `data`: a folder with tpu_steps.csv.
[[nodiscard]] Result<SuiteResult> validate_tpu(const std::filesystem::path& data,
                                               const SuiteOptions& options = {});

// Scores published steps of models whose layers differ (hybrid_steps.csv: Nemotron 3, Mamba-2 with experts) as a job of that
// software, of the config.json in model_configs beside the file.
//
//   hybrid_steps           (primary) milliseconds of a step, sets by model
//   hybrid_utilisation     the trivial answer: the FLOPs of the model at the median share of the peak that the steps of
//                          other models reach
//   hybrid_same_model      one that knows more: the median rate of a GPU in the other rows of the model, other releases too
//
// "shipped": nothing is fitted. What the rows do not say is as in most recipes of the same software for models with experts
// (bridge_recipes.csv): HybridEP, a distributed optimizer, experts not cut, weights gathered in 8 bits. They ran, so the first
// of no recomputation, of activations and norms, of experts and norms, and of all that fits with room is what they did.
//
// `data`: a folder with hybrid_steps.csv and model_configs/.
[[nodiscard]] Result<SuiteResult> validate_hybrid(const std::filesystem::path& data,
                                                  const SuiteOptions& options = {});

// Prints how much of its time a run trains beside simulated and published figures (goodput.csv). Nothing is fitted to them,
// and no target rests on them: publications rarely state what their share hangs on.
//
//   exact             (primary) share of 200 random jobs: simulated event by event, and by the closed form; percent
//   llama_54_days     54 days of 16,384 H100, 419 interruptions, a write of 8 s: the share by the downtime of each, in extra
//                     keys, beside the published "above 90"
//   published_shares  rows that state a share and GPUs or the time between interruptions, by default rates and a downtime of
//                     15 min
//   by_people         the same where people restart, 6 times as long; where a row states a share of manual restarts, that
//   constant          the mean of the other rows
//   checkpoint        size from the model; TB
//
// `data`: a folder with goodput.csv.
[[nodiscard]] Result<SuiteResult> validate_goodput(const std::filesystem::path& data,
                                                   const SuiteOptions& options = {});

// Scores folders of the collector (docs/collector.md), of several GPUs beside each other: data/measured.
//
//   kernels_of_other_gpu   (primary) kernels of a GPU priced by records that were fitted to the other one's rows and moved by the
//                          factors of siblings (sibling_pairs.h), beside the other one's time unchanged, moved by the ratio of
//                          bandwidths, and the analytic model
//   kernels_of_other_gpu_large   of them products of 300 us and more
//   described_steps        steps that the GPU decides, by description, on the platform that ships; milliseconds
//   described_steps_utilisation   the trivial answer: FLOPs at the median share of the peak of the other steps
//   steps_of_other_gpu     and the measured step of the other GPU
//   retyped_steps          traces of steps in bf16 asked for in fp32, against the step measured in fp32; milliseconds
//   gpu_active..., cross_device...   GPU time of the traces as in validate_predict()
//
// `data`: a folder with a folder for each GPU; where there is none, that of the source tree.
[[nodiscard]] Result<SuiteResult> validate_measured(const std::filesystem::path& data,
                                                    const SuiteOptions& options = {});

// Scores host times that `calibrate overheads` learns from jobs of a machine on the other jobs of that machine, as profiled: the
// step that `replay` takes, with its recorded GPU work and learned host times, as `predict --host overheads` answers.
//
//   other_jobs             (primary) learned from all other jobs of the machine; ms
//   one_other_job          learned from one job, every pair of jobs; ms
//
// Sets are folders: every profiler trace in a folder is a job of one machine, also the ranks of one job. "refit": nothing is
// learned from the job that is scored.
//
// `data`: a folder with profiler traces in it or below; where there is none, that of the source tree, and ../traces/dlrm8 beside it.
[[nodiscard]] Result<SuiteResult> validate_overheads(const std::filesystem::path& data,
                                                     const SuiteOptions& options = {});

// Scores dry runs (docs/dry-run.md) of the programs that the collector measured, on the GPU of each row. Kernels are those of the
// platform that ships; host times come from the captures of the other GPUs alone.
//
//   dry_run_steps          (primary) milliseconds of a step, sets by GPU
//   dry_run_gpu_decides, dry_run_host_decides   of them, by whether p10 and p90 lie within 2 %
//   dry_run_other_gpu...   the trivial answer, which has a measured step of the same program: that of the other GPU
//   dry_run_peak_memory    GiB that the allocator hands out at most
//   dry_run_runtime_estimator   PyTorch's own estimate of the same programs, of the cases that it ends on
//   dry_run_published      steps that others published (iterations/llm_runs.csv beside `data` or in it), by the programs that made them
//   dry_run_published_described   the same by description, as the suite iterations forecasts them
//   dry_run_published_memory      GiB that PyTorch reserved at most, where it is published
//
// "shipped": nothing is fitted to these rows but kernels, of which the same machines measured shapes one by one.
//
// `data`: a folder with a folder for each GPU, dry_run/CASE.et.json.gz and dry_run/published/DESCRIPTION.et.json.gz, which
// lab/record_steps.py makes; where there is none, that of the source tree.
[[nodiscard]] Result<SuiteResult> validate_dry_run(const std::filesystem::path& data,
                                                   const SuiteOptions& options = {});

// Scores published steps of models with experts under FSDP 2 and expert parallelism (fsdp_expert_steps.csv).
//
//   fsdp_experts           (primary) milliseconds of a step; recomputation is not printed: none or full, the faster that fits
//   fsdp_experts_closer    the one of both that comes closer to what was measured, as a bound
//   fsdp_experts_constant  the trivial answer: every GPU computes at the median rate of the other rows
//
// "shipped": nothing is fitted. Where expert parallelism is not printed it is all GPUs.
[[nodiscard]] Result<SuiteResult> validate_fsdp_experts(const std::filesystem::path& data,
                                                        const SuiteOptions& options = {});

// Scores networks that are told by their operations (describe/network_presets.h) against the GPU time of traces: each by its
// name, image size, batch and type alone, as kernels take on the platform of the GPU.
//
//   networks               (primary) milliseconds of all kernels of an iteration, sets by trace
//   networks_utilisation   the trivial answer: the FLOPs of the iteration at the median share of the peak that the other
//                          traces reach
//
// "shipped": nothing is fitted to these rows; docs/constants.md says which rates of convolutions and pooling were chosen with
// traces of ResNet-50, VGG-13 and ResNet-18 in view. Forward passes of recorded inference count the forward pass alone.
//
// `data`: the folder of all measured data.
[[nodiscard]] Result<SuiteResult> validate_networks(const std::filesystem::path& data,
                                                    const SuiteOptions& options = {});

// Scores what nodes draw in the steady phase of a training: the median reading of node_power.csv.
//
//   one_node       (primary) one node alone, its benchmark left out of the fit
//   several_nodes  the same, with the step time given
//   constant_...   the mean over the other benchmarks of the same size class and meter
//   limit_...      the limits of the GPUs alone
//   shipped_...    dgx-h100 as it ships, fitted on all rows; AC meters
//
// Sets are system, benchmark and meter. Fitted are, per meter, the draw of a node that computes and what waiting takes off
// it. Waiting is the forecast's where the benchmark can be described (BERT, LoRA of Llama 2 70B), with the measured step
// time in the place of its own; in the fit also what the rate per GPU lost against one node. A benchmark that is not
// described draws what the others of its size class and maker do: its waiting is not known.
//
// `data`: a folder with node_power.csv.
[[nodiscard]] Result<SuiteResult> validate_node_power(const std::filesystem::path& data,
                                                      const SuiteOptions& options = {});

// Scores ratios of step times of published pairs of runs that differ in one setting (ab_pairs.csv).
//
//   ratio      (primary) time of B over time of A, both forecast; by kind of setting. right_percent: of the pairs whose
//              measured and forecast ratios lie on one side of 1, or both within 1 % of it
//   no_change  the trivial answer: always 1
//   memory     difference of the peaks, of that of A, in percent; where both are printed. Of what is allocated
//
// "shipped": nothing is fitted. Pairs that state neither batch nor length are forecast with the number of micro-batches
// whose interleaved run comes closest to that of the same table, which is not scored then. Pairs that lack GPUs or
// batch, or a model that is not known, are named.
//
// `data`: a folder with ab_pairs.csv.
[[nodiscard]] Result<SuiteResult> validate_ab_pairs(const std::filesystem::path& data,
                                                    const SuiteOptions& options = {});

// src/stepcast/analyze/tables/published_runs.csv, from the folder of the suite `iterations`: what published runs of every
// source, model, GPU, precision and framework took, over our forecasts of them. Errors: those of validate_iterations().
[[nodiscard]] Result<std::string> published_runs_table(const std::filesystem::path& data);

}  // namespace stepcast
