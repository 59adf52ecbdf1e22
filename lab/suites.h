// The validation suites, each with its tests.
#pragma once

#include <filesystem>
#include <string>

#include "stepcast/base/result.h"

#include "lab/suite.h"

namespace stepcast {

// Scores replays of recorded traces: every rank and every ProfilerStep of every trace set in a folder and its sub-folders.
//
//   step_time          (primary) CPU duration of ProfilerStep, by rank and step; ms
//   gpu_window         from the start of the step to the end of the last GPU work launched in it; ms
//   global_window      all ranks of a set together; ms
//   kernel_starts      starts of GPU work relative to the start of the step; absolute errors in extras; us
//   collective_waits   waiting time of each rank in each collective; share within 5 % + 20 us in extras; us
//   unexplained_wait   waiting in calls that no dependency explains, and hand-off latency copied from the record, as shares
//                      of the step; percent
//   time_with_a_cause  mean step of the ranks without time of unknown cause (analyze/culprits.h): the error is the share
//                      without a cause; ms
//   clock_offsets      clocks of ranks shifted by up to 10, 50, 200 and 1,000 us, 20 draws each: number of joined
//                      collectives in the worst draw; the named rank in extras (replay_scores.h)
//   gpu_lateness       time in which GPU work was ready (all dependencies met) but not started, as a share of the step;
//                      work that keeps recorded distances, and replays with a warning, in extras; percent
//   naive              step_time of the naive replay: waits cut to their base cost, no dependencies of GPU work
//   naive_gpu_window   gpu_window of the naive replay
//   smallest_handoff   step_time with the smallest hand-off latency over all ranks instead of that of each rank
//   whole_trace        traces without marked steps: from the first CPU event to the last
//   round_trip         a changed scenario simulated, written as a trace, imported with all inference and changed back,
//                      compared with the original: rank ends relative to the step, kernel starts in extras
//                      (round_trip.h); ms
//   period             prediction without a change, against (last start - first start) / (n - 1) of the longest sequence
//                      of four or more consecutive ordinary steps, if the standard deviation of the times between starts
//                      is at most 3 %; ms
//   operator_timeline  steps of operator-level timelines of pipelines, with launch delays from the other half of the steps
//                      (steps at even positions for those at odd positions and vice versa); ms
//   operator_timeline_no_delay   the same without launch delays, against the publishers' simulation without them
//                      (`step_t_nodelay` of the file result-* that belongs to timeline-*); ms
//   inferred_events    if the trace records the event that a stream waits for: edges inferred without those records;
//                      counts in extras (replay_scores.h)
//
// Nothing is fitted to a step time, so the protocol is "recorded".
[[nodiscard]] Result<SuiteResult> validate_replay(const std::filesystem::path& data,
                                                  const SuiteOptions& options = {});

// Scores predictions of recorded steps: the structure of a recorded step with times from other sources.
//
//   step_time          (primary) leave one rank out: host times of a rank are those of the other ranks of the job for the
//                      same operators; GPU work, other ranks and start offsets as recorded; ms
//   mean_of_others     trivial answer: the mean step of the other ranks
//   published_algorithm, speed_of_light, overlap_factor   other models on the same steps (trace_baselines.h)
//   own_overheads      every rank with the mean host times of its step, all ranks together
//   cross_step         the median over the other steps of the file, each with the data loader time of this step; warm-up
//                      steps are left out and named
//   median_of_others   the median of the other steps without a change
//   two_captures       structure and GPU work of one capture with the host times of another capture of the same job (a
//                      trace set in the same folder with the same operators); data loader time as recorded; mean step
//   two_captures_each_step        the same for every step separately
//   two_captures_loader_learned   the mean step with the data loader time of the other capture
//   foreign_overheads  medians of the host times of all other jobs (other workloads on any GPU), scaled by how much slower
//                      the common operators are in this capture, separately between operators, in operators and in
//                      calls; data loader time as recorded; mean step
//   foreign_overheads_unrelated      the same if the other jobs know less than 60 % of the calls
//   foreign_overheads_speed_untold   nothing known of this capture: families of operators as in the median job
//   foreign_overheads_median_cost    the same with every operator by name
//   foreign_overheads_by_family      without the names of operators
//   execution_traces_alone   step of a rank from the execution traces of all ranks: the recorded times of the rank give
//                      only its start; host times and launches are those of the other ranks
//   gpu_active         kernel time from models against the recorded one, without communication, table lookups and
//                      unknown operations; ms
//   gpu_active_by_class   the same by class of kernel, with lookups
//   gpu_active_of_convolutions   the same for convolutions: 1x1, larger, strided, grouped
//   cross_device       kernel time of a workload recorded on two GPUs: one predicted from the other by the ratio of the
//                      models
//   cross_device_models, cross_device_unchanged   the same from models alone, and with the recorded time; _peak_ratio and
//                      _bandwidth_ratio: recorded time scaled by the ratio of one figure of the data sheets
//
// `of_baseline_pct` is the error of a set over that of its best baseline.
//
// "recorded": nothing is fitted to the scored steps. Host times of `step_time` are learned from other ranks.
[[nodiscard]] Result<SuiteResult> validate_predict(const std::filesystem::path& data,
                                                   const SuiteOptions& options = {});

// Scores the models of collectives against measured times (files of collective_measurements.h, or folders of them).
//
//   held_out_sizes     (primary) each octave of message sizes of a curve is left out in turn, including both ends, with all
//                      repeats of its sizes; the curve is fitted to the rest and scored on the octave
//   published_form     our form against the published sigmoid on the same folds, without knots; rows are those of our form,
//                      the sigmoid is in extras
//   dense_smooth       curves of held_out_sizes with 200 or more sizes that lie on lines between their neighbours, within
//                      0.2 % (median) and 2 % (90th percentile)
//   unseen_ranks       fitted on 2 and 4 ranks of a node, scored on 8: NVSwitch; _other: PCIe, mixed, not stated
//   unseen_nodes       fitted on fewer nodes, scored on the most: one-GPU nodes; _many_gpus: other nodes, from 1 MB
//   synthetic_3pct     known curves with 3 % noise: start-up, peak bandwidth and curve
//   unseen_system...   machines and whole generations left out (unseen_system.h), including those of later measurements in
//                      ../modern/collectives of the folder
//   shipped            (protocol shipped) the shipped platform file, on rows that it was not fitted on
[[nodiscard]] Result<SuiteResult> validate_collectives(const std::filesystem::path& data,
                                                       const SuiteOptions& options = {});

// Scores kernel models against measured kernel times (files of kernel_measurements.h, or folders of them; with a folder
// `kernels`, the folder `../modern/kernels` is read too).
//
// Under the protocol `refit` models are fitted to the rows of a device that are not held out. Five folds:
//   held_out_rows              (primary) by shape: no tested shape was fitted to, in any direction
//   random_rows                by row, if equal shapes come from different parameters, like the published errors: a tested
//                              row may have the same shape as a fitted one
//   held_out_hidden_size       whole values of the hidden size
//   held_out_sequence_length   whole values of the sequence length
// One fold:
//   beyond_range               the largest hidden sizes; without them, the tenth with the most FLOPs or bytes
//   held_out_gradients         GEMMs in a layout of gradients that was measured only in batches
//   unseen_gpu                 every GPU in turn from at least two others that measured the same family: fp32 and other
//                              types without 16 bits
//   unseen_gpu_20_points       the same with 20 measured points of each operator of the new GPU
//   unseen_gpu_half            tables by type: the whole generation of a GPU left out, predicted from other tables
//   unseen_gpu_half_siblings   16-bit types, from at least one other GPU, possibly of the same generation
// Under the protocol `shipped`:
//   shipped                    the shipped platform of the GPU of a row, on rows that it was not fitted on
//
// Sets are "GPU/operator/direction". Rows faster than the bound of their device are left out and counted.
[[nodiscard]] Result<SuiteResult> validate_kernels(const std::filesystem::path& data,
                                                   const SuiteOptions& options = {});

// Scores step times predicted from a description against measured LLM runs. Nothing is fitted to their times, but
// docs/constants.md lists constants that were tuned with these runs.
[[nodiscard]] Result<SuiteResult> validate_iterations(const std::filesystem::path& data,
                                                      const SuiteOptions& options = {});

// Scores recommendation models: lookup operators (dlrm_lookups.h) and whole steps predicted from a description.
[[nodiscard]] Result<SuiteResult> validate_dlrm(const std::filesystem::path& data,
                                                const SuiteOptions& options = {});

// Scores forecasts of published steps of post-training. `data`: a folder with rl_steps.csv.
[[nodiscard]] Result<SuiteResult> validate_rl(const std::filesystem::path& data,
                                              const SuiteOptions& options = {});

// Scores steps of MaxText on TPUs (tpu_steps.csv): each row as a MaxText config with its layout and the recomputation of its
// recipe, on the platform file of its chip with slices of the stated size.
//
//   dense                (primary) seconds of a step of models without experts, sets by chip
//   experts              the same of models with experts
//   dense_utilisation, experts_utilisation   the trivial answer: the FLOPs of the model at the median share of the peak that
//                        the other rows of the same chip reach
//
// "refit": leave one chip out. One number is fitted: gemm_factor, the factor by which GEMMs are slower than forecast with
// corrections fitted to GPUs, as the median over the dense rows of the other chips. all_gemm_factor is the median over all
// chips, which platforms/kernels/tpu.json contains. All other figures are from data sheets. Batches are the tokens that the
// step printed. Rows without a layout or rematerialisation, and models without a preset, are named.
//
// `data`: a folder with tpu_steps.csv.
[[nodiscard]] Result<SuiteResult> validate_tpu(const std::filesystem::path& data,
                                               const SuiteOptions& options = {});

// Scores published steps of models with layers of several kinds (hybrid_steps.csv: Nemotron 3, Mamba-2 with experts), as
// jobs of that software with the config.json in model_configs in the folder of the file.
//
//   hybrid_steps           (primary) milliseconds of a step, sets by model
//   hybrid_utilisation     the trivial answer: the FLOPs of the model at the median share of the peak that the steps of
//                          other models reach
//   hybrid_same_model      a baseline with more knowledge: the median rate of a GPU in the other rows of the model, including
//                          other releases
//
// "shipped": nothing is fitted. Settings that the rows do not state are those of most recipes of the software for models
// with experts (bridge_recipes.csv): HybridEP, a distributed optimizer, unsharded experts, weights gathered in 8 bits.
// Recomputation is the first of these that fits with room, because the runs did not run out of memory: none, activations and
// norms, experts and norms, everything.
//
// `data`: a folder with hybrid_steps.csv and model_configs/.
[[nodiscard]] Result<SuiteResult> validate_hybrid(const std::filesystem::path& data,
                                                  const SuiteOptions& options = {});

// Scores the forecast goodput of runs against simulated and published figures (goodput.csv). Nothing is fitted to them and
// there are no targets: publications rarely state what their share depends on.
//
//   exact             (primary) share of 200 random jobs: event-by-event simulation against the closed form; percent
//   llama_54_days     54 days of 16,384 H100, 419 interruptions, a write of 8 s: the share for several downtimes, in extras;
//                     published: "above 90"
//   published_shares  rows that state a share and either GPUs or the time between interruptions, with default rates and a
//                     downtime of 15 min
//   by_people         the same with restarts by people, which take 6 times as long; rows that state the share of manual
//                     restarts use it
//   constant          trivial answer: the mean of the other rows
//   checkpoint        size from the model; TB
//
// `data`: a folder with goodput.csv.
[[nodiscard]] Result<SuiteResult> validate_goodput(const std::filesystem::path& data,
                                                   const SuiteOptions& options = {});

// Scores folders of the collector (docs/collector.md) of several GPUs: data/measured.
//
//   kernels_of_other_gpu   (primary) kernels of a GPU from records fitted to the rows of the other GPU and scaled by the factors
//                          of siblings (sibling_pairs.h). Baselines: the time of the other GPU unchanged and scaled by the
//                          ratio of bandwidths, and the analytic model
//   kernels_of_other_gpu_large   only GEMMs of 300 us and more
//   described_steps        GPU-bound steps by description, on the shipped platform; milliseconds
//   described_steps_utilisation   the trivial answer: FLOPs at the median share of the peak of the other steps
//   steps_of_other_gpu     another trivial answer: the measured step of the other GPU
//   retyped_steps          traces of bf16 steps converted to fp32, against the step measured in fp32; milliseconds
//   gpu_active..., cross_device...   GPU time of the traces as in validate_predict()
//
// `data`: a folder with a folder for each GPU; if there are none, that of the source tree.
[[nodiscard]] Result<SuiteResult> validate_measured(const std::filesystem::path& data,
                                                    const SuiteOptions& options = {});

// Scores host times that `calibrate overheads` learns from jobs of a machine on other jobs of that machine, as profiled: the
// replayed step with its recorded GPU work and learned host times, as in `predict --host overheads`.
//
//   other_jobs             (primary) learned from all other jobs of the machine; ms
//   one_other_job          learned from one job, every pair of jobs; ms
//
// Sets are folders: every profiler trace in a folder is a job of one machine, including the ranks of one job. "refit":
// nothing is learned from the scored job.
//
// `data`: a folder with profiler traces in it or below; if there are none, that of the source tree and its ../traces/dlrm8.
[[nodiscard]] Result<SuiteResult> validate_overheads(const std::filesystem::path& data,
                                                     const SuiteOptions& options = {});

// Scores dry runs (docs/dry-run.md) of the programs that the collector measured, on the GPU of each row. Kernels are those
// of the shipped platform; host times come only from the captures of the other GPUs.
//
//   dry_run_steps          (primary) milliseconds of a step, sets by GPU
//   dry_run_gpu_decides, dry_run_host_decides   GPU-bound and host-bound steps: p10 and p90 within 2 % or not
//   dry_run_other_gpu...   the trivial answer, from a measured step of the same program: that of the other GPU
//   dry_run_peak_memory    GiB, largest amount handed out by the allocator
//   dry_run_runtime_estimator   estimate of PyTorch for the same programs, in the cases where it ends
//   dry_run_published      steps from publications (iterations/llm_runs.csv in `data` or next to it), by the programs that
//                          made them
//   dry_run_published_described   the same by description, as in the suite iterations
//   dry_run_published_memory      GiB, largest amount reserved by PyTorch, if published
//
// "shipped": only kernels are fitted to data of these machines, which measured their shapes one by one.
//
// `data`: a folder with a folder for each GPU, dry_run/CASE.et.json.gz and dry_run/published/DESCRIPTION.et.json.gz, written by
// lab/record_steps.py; if there are none, that of the source tree.
[[nodiscard]] Result<SuiteResult> validate_dry_run(const std::filesystem::path& data,
                                                   const SuiteOptions& options = {});

// Scores published steps of models with experts under FSDP 2 and expert parallelism (fsdp_expert_steps.csv).
//
//   fsdp_experts           (primary) milliseconds of a step. Recomputation is not printed: the faster of none and full that fits
//   fsdp_experts_closer    the one of both that is closer to the measured time, as a bound
//   fsdp_experts_constant  the trivial answer: every GPU computes at the median rate of the other rows
//
// "shipped": nothing is fitted. If expert parallelism is not printed, it is over all GPUs.
[[nodiscard]] Result<SuiteResult> validate_fsdp_experts(const std::filesystem::path& data,
                                                        const SuiteOptions& options = {});

// Scores networks that are described by their operations (describe/network_presets.h) against the GPU time of traces: each
// from its name, image size, batch and type only, with kernels of the platform of the GPU.
//
//   networks               (primary) milliseconds of all kernels of an iteration, sets by trace
//   networks_utilisation   the trivial answer: the FLOPs of the iteration at the median share of the peak that the other
//                          traces reach
//
// "shipped": nothing is fitted to these rows. docs/constants.md lists the rates of convolutions and pooling that were tuned
// with traces of ResNet-50, VGG-13 and ResNet-18. Recorded inference is compared with the forward pass only.
//
// `data`: the folder of all measured data.
[[nodiscard]] Result<SuiteResult> validate_networks(const std::filesystem::path& data,
                                                    const SuiteOptions& options = {});

// Scores the power draw of nodes in the steady phase of a training: the median reading of node_power.csv.
//
//   one_node       (primary) a single node, with its benchmark left out of the fit
//   several_nodes  the same for several nodes, with the step time given
//   constant_...   the mean over the other benchmarks of the same size class and meter
//   limit_...      the sum of the limits of the GPUs
//   shipped_...    the shipped dgx-h100, fitted on all rows; AC meters
//
// Sets are system, benchmark and meter. Fitted for each meter: the draw of a computing node, and the reduction by waiting.
// The share of waiting is forecast if the benchmark can be described (BERT, LoRA of Llama 2 70B), with the measured step
// time instead of the forecast one. The fit also uses the loss of rate per GPU against one node. A benchmark without a
// description is given the draw of the others of its size class and maker, because its waiting is unknown.
//
// `data`: a folder with node_power.csv.
[[nodiscard]] Result<SuiteResult> validate_node_power(const std::filesystem::path& data,
                                                      const SuiteOptions& options = {});

// Scores ratios of step times of published pairs of runs that differ in one setting (ab_pairs.csv).
//
//   ratio      (primary) time of B over time of A, both forecast; by kind of setting. right_percent: share of the pairs with
//              measured and forecast ratios on the same side of 1, or both within 1 % of it
//   no_change  the trivial answer: always 1
//   memory     difference of the peaks of allocated memory relative to that of A, in percent, if both are printed
//
// "shipped": nothing is fitted. For pairs that state neither batch nor length, the number of micro-batches is the one that
// fits the interleaved run of the same table best, and that run is not scored. Pairs without GPUs or batch, or with an
// unknown model, are named.
//
// `data`: a folder with ab_pairs.csv.
[[nodiscard]] Result<SuiteResult> validate_ab_pairs(const std::filesystem::path& data,
                                                    const SuiteOptions& options = {});

// Text of src/stepcast/analyze/tables/published_runs.csv, from the folder of the suite `iterations`: step times of published
// runs over our forecasts, by source, model, GPU, precision and framework. Errors: those of validate_iterations().
[[nodiscard]] Result<std::string> published_runs_table(const std::filesystem::path& data);

}  // namespace stepcast
