// A Forecast is the result of stepcast: a step that was predicted from a description or from traces,
// replayed, or measured. It contains values only and refers to nothing, so it can be kept, sent, written as
// JSON (report/forecast_json.h) and compared.
//
//   Forecast f = ...;
//   f.step_time_ms, f.step_time_p10_ms, f.source
//   f.critical().computation_by_class_ms      {"gemm", 5111.4}, {"attention", 668.8}, ...
//   time_ms(f.critical().idle_ms, "pipeline")
//
// Sums: per class, computation_ms + exposed_comm_ms + exposed_memcpy_ms + the sum of idle_ms = window_ms.
// Lists of the critical path by class and by rank each sum to length_ms. Shares of coverage sum to 1.
//
// Names, units and meanings of the members are those of the JSON keys (base/fields.h). Comparisons join two
// forecasts by texts that do not depend on numbering: class of kernel, label of a group, cause, name of an
// operation, name and ordinal of a collective.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stepcast/base/fields.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/run/run_forecast.h"

namespace stepcast {

// One setting of a layout or a job: "tensor_parallel" 8, "recompute" "full".
struct Setting {
  std::string name{};
  std::variant<bool, double, std::string> value;
  friend bool operator==(const Setting&, const Setting&) = default;
};

// A time with a key that is the same in all forecasts.
struct NamedTime {
  std::string key{};
  double time_ms = 0;
  friend bool operator==(const NamedTime&, const NamedTime&) = default;
};
using NamedTimes = std::vector<NamedTime>;
// The sum of all times.
[[nodiscard]] double sum_ms(const NamedTimes& times);
// The time of a key; 0 if the key is missing.
[[nodiscard]] double time_ms(const NamedTimes& times, std::string_view key);

// The time of one GPU stream in milliseconds. Without the exposed times, the parts sum to the window of its
// class.
struct ForecastStream {
  STEPCAST_FIELDS(ForecastStream, "stream");
  STEPCAST_FIELD(std::string, name, "name of the stream in the trace or the description");
  // The number of tasks, not of kernels: copies and collectives are included.
  STEPCAST_FIELD(std::uint64_t, tasks, "number of tasks of the stream that overlap the window");
  // The eight parts of a stacked bar. The lists below split the same time in more detail.
  STEPCAST_FIELD(
      NamedTimes, parts_ms,
      "time of the stream by activity, in ms: embedding, gemm, attention, memory (kernels and copies), "
      "other, communication_transfer, communication_waiting, idle; the sum is the window");
  STEPCAST_FIELD(NamedTimes, kernels_ms, "computation time by class of kernel, in ms");
  STEPCAST_FIELD(double, transfer_ms, "transfer time of collectives, without waiting for other ranks, in ms");
  // Exposed times are parts of transfer_ms and memcpy_ms, so they do not add to the window.
  STEPCAST_FIELD(double, exposed_comm_ms, "transfer time while no stream of the rank computes, in ms");
  STEPCAST_FIELD(double, memcpy_ms, "time of copies and fills, in ms");
  STEPCAST_FIELD(double, exposed_memcpy_ms,
                 "time of copies and fills while no stream of the rank computes, in ms");
  STEPCAST_FIELD(NamedTimes, idle_ms,
                 "idle time by cause, in ms; other_rank and pipeline are waiting inside transfers");
};

// The time of one CPU thread of a recorded or described step, in milliseconds.
struct ForecastThread {
  STEPCAST_FIELDS(ForecastThread, "thread");
  STEPCAST_FIELD(std::string, name, "name of the thread in the trace");
  // Busy and idle time sum to the window.
  STEPCAST_FIELD(double, busy_ms, "time in which the thread works, in ms");
  STEPCAST_FIELD(NamedTimes, idle_ms, "idle time by cause (gpu, other_thread, rest), in ms");
  STEPCAST_FIELD(NamedTimes, busy_by_op_ms,
                 "busy time by outermost framework operator or annotation, in ms, longest first; empty key: "
                 "outside any of them");
};

// Ranks that do the same work. Times in milliseconds; computation_ms + exposed_comm_ms + exposed_memcpy_ms +
// the sum of idle_ms = window_ms.
struct ForecastClass {
  STEPCAST_FIELDS(ForecastClass, "rank_class");
  STEPCAST_FIELD(std::string, name, "name of the rank class, such as `rank 3` or `pipeline stage 0`");
  STEPCAST_FIELD(std::optional<std::int64_t>, rank, "number of the rank if the class is one recorded rank");
  // Recorded ranks have one class each. A described step has one class per pipeline stage.
  STEPCAST_FIELD(std::uint64_t, n_ranks, "number of equal ranks in the class", 1);
  STEPCAST_FIELD(double, window_ms,
                 "step time of these ranks, in ms: computation_ms + exposed_comm_ms + exposed_memcpy_ms + "
                 "the sum of idle_ms");
  STEPCAST_FIELD(double, start_offset_ms, "start of these ranks after the start of the first rank, in ms");
  // At each moment the first of these states that applies is counted: computation, exposed communication,
  // exposed copies, idle. That is why they sum to the window even if streams overlap.
  STEPCAST_FIELD(double, computation_ms,
                 "time in which some stream runs a kernel that is not communication, in ms");
  STEPCAST_FIELD(NamedTimes, computation_by_class_ms,
                 "computation_ms by class of kernel; the time of concurrent kernels is divided among them");
  STEPCAST_FIELD(double, exposed_comm_ms,
                 "exposed communication: time in which a collective transfers and nothing computes, in ms");
  STEPCAST_FIELD(NamedTimes, exposed_comm_by_group_ms,
                 "exposed_comm_ms by process group; the time of concurrent transfers is divided among them");
  STEPCAST_FIELD(
      double, exposed_memcpy_ms,
      "exposed copies: time in which a copy or fill runs and nothing computes or transfers, in ms");
  STEPCAST_FIELD(NamedTimes, idle_ms,
                 "idle time by cause, in ms: cpu (not launched yet), other_stream, other_rank (waits in a "
                 "collective), pipeline (waits for another stage), between_steps, rest");
  // The times from here on overlap each other and do not sum to the window.
  STEPCAST_FIELD(double, gpu_active_ms, "time in which any stream computes, transfers or copies, in ms");
  STEPCAST_FIELD(double, transfer_ms, "time in which any collective transfers (union over streams), in ms");
  STEPCAST_FIELD(double, overlap_ms, "transfer time that computation overlaps, in ms");
  STEPCAST_FIELD(
      double, collective_wait_ms,
      "time in which any collective waits for ranks (union over streams), hidden or exposed, in ms");
  STEPCAST_FIELD(NamedTimes, kernels_ms, "computation time by class of kernel, summed over streams, in ms");
  STEPCAST_FIELD(double, baseline_ms,
                 "published baseline: work of the busiest stream, without CPU and waiting, in ms");
  STEPCAST_FIELD(std::vector<ForecastStream>, streams, "GPU streams of one rank");
  STEPCAST_FIELD(std::vector<ForecastThread>, threads, "CPU threads of one rank");

  // The parts that sum to the window, with keys such as "computation: gemm", "exposed communication: tensor",
  // "exposed copies", "idle: pipeline". Parts of no length are left out.
  [[nodiscard]] NamedTimes parts() const;
};

// One member of a collective. Times in microseconds on the clock of the timeline.
struct ForecastMember {
  STEPCAST_FIELDS(ForecastMember, "collective_member");
  STEPCAST_FIELD(std::uint32_t, rank_class, "index into rank_classes");
  STEPCAST_FIELD(double, arrival_us, "arrival of the member on the clock of the timeline, in us");
  STEPCAST_FIELD(double, wait_us, "time from its arrival to that of the last member it depends on, in us");
  STEPCAST_FIELD(double, transfer_us, "time from the end of the waiting to the end of the collective, in us");
  STEPCAST_FIELD(double, exposed_us, "transfer time while no stream of the rank computes, in us");
};

// The members of one collective: a vector with room for two members inside the object. Collectives between
// pipeline stages have two members, and a forecast lists hundreds of them, so this saves most allocations.
class ForecastMembers {
 public:
  using value_type = ForecastMember;
  ForecastMembers() = default;
  ForecastMembers(std::initializer_list<ForecastMember> members) {
    for (const ForecastMember& member : members) push_back(member);
  }
  [[nodiscard]] std::size_t size() const { return many_.empty() ? n_few_ : many_.size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] const ForecastMember* begin() const { return many_.empty() ? few_.data() : many_.data(); }
  [[nodiscard]] const ForecastMember* end() const { return begin() + size(); }
  [[nodiscard]] ForecastMember* begin() { return many_.empty() ? few_.data() : many_.data(); }
  [[nodiscard]] ForecastMember* end() { return begin() + size(); }
  [[nodiscard]] const ForecastMember& front() const { return *begin(); }
  [[nodiscard]] const ForecastMember& operator[](std::size_t i) const { return begin()[i]; }
  [[nodiscard]] ForecastMember& operator[](std::size_t i) { return begin()[i]; }
  void reserve(std::size_t n) {
    if (n > few_.size()) many_.reserve(n);
  }
  ForecastMember& emplace_back() {
    if (many_.empty() && n_few_ < few_.size()) return few_[n_few_++] = {};
    if (many_.empty()) many_.assign(few_.begin(), few_.end());
    return many_.emplace_back();
  }
  void push_back(const ForecastMember& member) { emplace_back() = member; }
  friend bool operator==(const ForecastMembers& a, const ForecastMembers& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<ForecastMember, 2> few_{};  // the members while `many_` is empty
  std::uint32_t n_few_ = 0;
  std::vector<ForecastMember> many_;
};

// One collective of the step. Comparisons identify it by name and ordinal.
struct ForecastCollective {
  STEPCAST_FIELDS(ForecastCollective, "collective");
  STEPCAST_FIELD(std::string, name, "name of the collective; with ordinal it is the key");
  // Numbers start at 0. Name and ordinal identify a collective across two forecasts of the same job.
  STEPCAST_FIELD(std::uint32_t, ordinal,
                 "number of the collective among those with the same name, by first arrival");
  // Sizes follow nccl-tests, so bus bandwidths can be compared with its output.
  STEPCAST_FIELD(std::string, operation, "kind of collective: all_reduce, all_to_all, send_receive, ...");
  STEPCAST_FIELD(std::string, group, "label of the process group");
  STEPCAST_FIELD(std::optional<double>, message_bytes,
                 "message size in bytes, as nccl-tests counts it; null: unknown");
  // The rank class that the other members waited for.
  STEPCAST_FIELD(std::uint32_t, came_last,
                 "index into rank_classes of the class that arrives last (on ties, the first)");
  STEPCAST_FIELD(double, transfer_us, "shortest transfer time of any member, in us");
  STEPCAST_FIELD(double, total_wait_us, "waiting time summed over members, in us");
  STEPCAST_FIELD(double, longest_wait_us, "longest waiting time of any member, in us");
  STEPCAST_FIELD(ForecastMembers, members, "rank classes that take part");
};

// A part of the critical path: the time and number of its steps of one kind.
struct ForecastShare {
  STEPCAST_FIELDS(ForecastShare, "path_share");
  // The key by which two forecasts are compared; it contains no numbers of tasks.
  STEPCAST_FIELD(std::string, what,
                 "kernel class, rank, or framework operator and task, depending on the list");
  STEPCAST_FIELD(double, time_ms, "time on the critical path, in ms");
  STEPCAST_FIELD(std::uint64_t, steps, "number of tasks and delays on the critical path");
};

// One step of the critical path.
struct ForecastPathStep {
  STEPCAST_FIELDS(ForecastPathStep, "path_step");
  STEPCAST_FIELD(std::uint32_t, rank_class, "index into rank_classes");
  STEPCAST_FIELD(std::string, what, "task or delay, named as in by_name");
  STEPCAST_FIELD(double, start_ms, "start on the clock of the timeline, in ms");
  STEPCAST_FIELD(double, time_ms, "time on the critical path, in ms");
};

// The critical path: the chain of tasks and delays without gaps that sets the step time. The lists by class
// and by rank sum to its length. All lists are sorted by time, longest first.
struct ForecastPath {
  STEPCAST_FIELDS(ForecastPath, "critical_path");
  STEPCAST_FIELD(double, length_ms,
                 "length of the path in ms, from the earliest start of a rank to the end of the step");
  STEPCAST_FIELD(std::optional<std::uint32_t>, ends_on,
                 "index into rank_classes of the class on which the path ends");
  // n_steps counts the whole path; `steps` is filled only if it was asked for.
  STEPCAST_FIELD(std::uint64_t, n_steps, "number of tasks and delays on the path");
  STEPCAST_FIELD(std::vector<ForecastShare>, by_class,
                 "all time of the path by class of kernel or delay, longest first");
  STEPCAST_FIELD(std::vector<ForecastShare>, by_rank, "all time of the path by rank, longest first");
  STEPCAST_FIELD(std::vector<ForecastShare>, by_name, "longest contributors by operator and task");
  STEPCAST_FIELD(std::vector<ForecastPathStep>, steps,
                 "tasks and delays of the path in order of time; only on request");
};

// Work that no cost model describes, and the time that the forecast assumes for it.
struct ForecastUnmodelled {
  STEPCAST_FIELDS(ForecastUnmodelled, "unmodelled_work");
  STEPCAST_FIELD(std::string, name, "name of the operation");
  STEPCAST_FIELD(std::uint64_t, n, "number of tasks of the operation");
  STEPCAST_FIELD(double, time_ms, "time of these tasks in the forecast, in ms");
};

// How the predicted time of GPU work and communication was estimated: shares of the time by the kind of
// source. The shares sum to 1, or to 0 if nothing was priced.
struct ForecastCoverage {
  STEPCAST_FIELDS(ForecastCoverage, "coverage");
  // From the most to the least reliable: a measurement of the same work, a model fitted to measurements, a
  // formula, an assumption.
  STEPCAST_FIELD(double, measured, "fraction of the time that comes from measured figures");
  STEPCAST_FIELD(double, fitted, "fraction of the time that comes from models fitted to measurements");
  STEPCAST_FIELD(double, analytic, "fraction of the time that comes from formulas");
  STEPCAST_FIELD(double, assumed, "fraction of the time that is assumed");
  STEPCAST_FIELD(std::vector<ForecastUnmodelled>, unmodelled, "operations without a model, longest first");

  [[nodiscard]] double sum() const { return measured + fitted + analytic + assumed; }
};

// The memory of one GPU of a pipeline stage, in GiB.
struct ForecastStageMemory {
  STEPCAST_FIELDS(ForecastStageMemory, "stage_memory");
  // The parts up to reserve_GiB sum to total_GiB.
  STEPCAST_FIELD(double, weights_GiB, "weights in the computation type and fp32 copies, in GiB");
  STEPCAST_FIELD(double, gradients_GiB, "gradients, in GiB");
  STEPCAST_FIELD(double, optimizer_GiB, "optimizer moments, in GiB");
  STEPCAST_FIELD(double, activations_GiB, "activations kept for pending backward passes, in GiB");
  STEPCAST_FIELD(double, working_GiB, "working memory of one layer or of the head while it runs, in GiB");
  STEPCAST_FIELD(double, communication_GiB, "buffers of the collective library, in GiB");
  STEPCAST_FIELD(double, reserve_GiB, "device context and memory that the allocator cannot use, in GiB");
  STEPCAST_FIELD(double, total_GiB, "sum of the parts above, in GiB");
  STEPCAST_FIELD(double, dispatched_GiB, "part of the activations: tokens dispatched to experts, in GiB");
  STEPCAST_FIELD(std::string, verdict,
                 "`fits`, `tight` or `does not fit`, for this stage; empty for recorded steps");
  STEPCAST_FIELD(std::optional<double>, allocated_GiB,
                 "part of the total that PyTorch's allocator reports as peak allocated (Megatron-LM's "
                 "mem-max-allocated-bytes), in GiB; null for recorded steps");
  STEPCAST_FIELD(std::optional<double>, reserved_GiB,
                 "part of the total that PyTorch's allocator reports as peak reserved (TorchTitan's "
                 "max_reserved), in GiB; null for recorded steps");
  STEPCAST_FIELD(std::optional<double>, worst_imbalance_GiB,
                 "total if all tokens of an expert-parallel group went to one rank, in GiB; null if tokens "
                 "are dropped or there are no experts");
};

// Whether the job fits into memory. The stage with the least free memory decides.
struct ForecastMemory {
  STEPCAST_FIELDS(ForecastMemory, "memory");
  // The verdict, peak and margin are those of worst_stage.
  STEPCAST_FIELD(std::string, verdict, "`fits`, `tight` or `does not fit`");
  STEPCAST_FIELD(double, peak_memory_GiB, "peak memory of a GPU of the fullest stage, in GiB");
  STEPCAST_FIELD(double, available_GiB, "memory of the GPU, in GiB");
  // available_GiB - peak_memory_GiB.
  STEPCAST_FIELD(double, margin_GiB, "headroom of the fullest stage in GiB; negative: missing memory");
  STEPCAST_FIELD(std::uint32_t, worst_stage, "index of the fullest stage");
  STEPCAST_FIELD(std::vector<ForecastStageMemory>, stages, "memory of each pipeline stage");
  // For experts that drop no tokens: the imbalance of expert load that the memory can take.
  STEPCAST_FIELD(std::optional<double>, worst_imbalance,
                 "load of the busiest rank over the mean if all tokens of its group go to it");
  STEPCAST_FIELD(std::optional<double>, fits_to_imbalance,
                 "largest load of the busiest rank, over the mean, with which every stage fits; 0: none");
};

// The work of one step, as far as it is known, and the rates that follow from it and the step time.
struct ForecastThroughput {
  STEPCAST_FIELDS(ForecastThroughput, "throughput");
  // Rates are missing if the amount of work per step is unknown.
  STEPCAST_FIELD(std::optional<double>, samples_per_step, "samples (global batch) of a step; null: unknown");
  STEPCAST_FIELD(std::optional<double>, tokens_per_step,
                 "tokens of a step; null: unknown, or the samples are images");
  STEPCAST_FIELD(std::string, sample, "unit of a sample: sequence, image or sample", "sample");
  // FLOPs of all GPUs together. Utilizations (MFU, HFU) are fractions of the dense peak.
  STEPCAST_FIELD(std::optional<double>, model_flops,
                 "FLOPs of forward and backward on all GPUs, without the masked half of causal attention");
  STEPCAST_FIELD(std::optional<double>, hardware_flops, "model_flops plus the FLOPs of recomputation");
  STEPCAST_FIELD(std::optional<double>, peak_tflops_per_gpu,
                 "dense peak of a GPU in the type of the GEMMs, in TFLOP/s");
  STEPCAST_FIELD(std::optional<double>, samples_per_s, "samples per second on all GPUs");
  STEPCAST_FIELD(std::optional<double>, tokens_per_s, "tokens per second on all GPUs");
  STEPCAST_FIELD(std::optional<double>, tokens_per_s_per_gpu, "tokens per second and GPU");
  STEPCAST_FIELD(std::optional<double>, tflops_per_gpu, "model FLOPs per second and GPU, in TFLOP/s");
  STEPCAST_FIELD(std::optional<double>, hardware_tflops_per_gpu,
                 "hardware FLOPs per second and GPU, in TFLOP/s");
  STEPCAST_FIELD(std::optional<double>, mfu,
                 "model FLOPs utilization: tflops_per_gpu over the peak, as a fraction");
  STEPCAST_FIELD(std::optional<double>, hfu,
                 "hardware FLOPs utilization: hardware_tflops_per_gpu over the peak, as a fraction");
};

// The cost of an uneven load of experts.
struct ForecastExpertLoad {
  STEPCAST_FIELDS(ForecastExpertLoad, "expert_load");
  STEPCAST_FIELD(std::string, load, "expert load that you asked for");
  STEPCAST_FIELD(double, busiest_over_mean, "token visits of the busiest rank over the mean", 1);
  // cost_ms = step time - balanced_step_ms.
  STEPCAST_FIELD(double, balanced_step_ms, "step time with balanced experts, in ms");
  STEPCAST_FIELD(double, cost_ms, "step time minus balanced_step_ms, in ms");
};

// A measured step, with the forecast of the same step.
struct ForecastMeasured {
  STEPCAST_FIELDS(ForecastMeasured, "measured_step");
  STEPCAST_FIELD(std::string, layout, "GPUs, parallel degrees and batch of the measured step");
  STEPCAST_FIELD(double, measured_ms, "measured step time that you gave, in ms");
  STEPCAST_FIELD(double, forecast_ms, "forecast without this measurement, in ms");
  // The part of measured / forecast that the shared factors of the anchor do not explain.
  STEPCAST_FIELD(double, own_factor, "remaining factor on the time that applies to this run only", 1);
};
// The effect of measured steps on this forecast (predict/anchor.h). All factors multiply times.
// step_time_ms and its interval are those of the forecast before it was anchored.
struct ForecastAnchor {
  STEPCAST_FIELDS(ForecastAnchor, "anchor");
  STEPCAST_FIELD(double, step_time_ms, "forecast step time without the anchor, in ms");
  STEPCAST_FIELD(double, step_time_p10_ms, "10th percentile of the step time without the anchor, in ms");
  STEPCAST_FIELD(double, step_time_p90_ms, "90th percentile of the step time without the anchor, in ms");
  // The anchored step time is step_time_ms * factor.
  STEPCAST_FIELD(double, factor,
                 "anchored step time over that without the anchor: the factors below, weighted by their "
                 "shares of the step",
                 1);
  STEPCAST_FIELD(double, compute_factor, "factor on the time of all computation", 1);
  STEPCAST_FIELD(double, communication_factor, "factor on the time of all exposed communication", 1);
  STEPCAST_FIELD(double, host_factor, "factor on host time", 1);
  STEPCAST_FIELD(double, alike_factor, "factor on the time of steps of the same group", 1);
  STEPCAST_FIELD(std::vector<ForecastMeasured>, measured, "measured steps of the anchor");
};

// One cause that could explain why a measured step is not normal (analyze/measured_check.h).
struct MeasuredCause {
  STEPCAST_FIELDS(MeasuredCause, "measured_cause");
  STEPCAST_COLUMN(std::string, what, "change of the description that would explain the measured time",
                  "what would explain it<");
  STEPCAST_COLUMN(double, step_time_ms, "forecast step time with this change, in ms", "step\nms", 1);
  // A posterior probability by Bayes' rule, as a fraction; "by chance" is one of the causes.
  STEPCAST_COLUMN(double, likelihood, "probability among all causes that were tried, chance included",
                  "likely\n%", 0, 100);
  STEPCAST_COLUMN(std::string, look_at, "how to check the cause", "look at<");
  // The measured number then was not the time of one step.
  STEPCAST_FIELD(bool, is_other_unit, "the measured time may be of several steps or of a part of one");
};

// Published runs of one model, GPU, precision and framework, compared with our forecasts of them.
struct PublishedRuns {
  STEPCAST_FIELDS(PublishedRuns, "published_runs");
  STEPCAST_FIELD(std::string, source, "publisher of the runs");
  STEPCAST_FIELD(std::string, model, "name of the model");
  STEPCAST_FIELD(std::string, gpu, "name of the GPU");
  STEPCAST_FIELD(std::string, precision, "precision of the GEMMs");
  STEPCAST_FIELD(std::string, framework, "training framework");
  STEPCAST_FIELD(std::int64_t, min_gpus, "number of GPUs of the smallest run");
  STEPCAST_FIELD(std::int64_t, max_gpus, "number of GPUs of the largest run");
  STEPCAST_FIELD(std::int64_t, runs, "number of runs");
  // The ratio of measured to forecast step time over these runs: median, minimum and maximum.
  STEPCAST_FIELD(double, measured_over_forecast, "measured over forecast step time, median of the runs", 1);
  STEPCAST_FIELD(double, min_measured_over_forecast, "measured over forecast step time, minimum of the runs",
                 1);
  STEPCAST_FIELD(double, max_measured_over_forecast, "measured over forecast step time, maximum of the runs",
                 1);
  // See nearest_published() in analyze/published_runs.h for the terms of the distance.
  STEPCAST_FIELD(double, distance,
                 "distance from this job; 0: same model, GPU, precision, framework and number of GPUs", 1);
  // A list such as "GPU (NVIDIA A100), framework (megatron-lm)", for the reader to judge the comparison.
  STEPCAST_FIELD(std::string, differs, "differences from this job; empty: none");
};

// The answer to "is this measured step normal?": within the interval p10 to p90 of the forecast, or not.
struct MeasuredCheck {
  STEPCAST_FIELDS(MeasuredCheck, "measured_check");
  STEPCAST_FIELD(std::string, verdict, "normal (within the band of the forecast), slow or fast");
  // The forecast and its interval ignore the measured step, so that it cannot confirm itself.
  STEPCAST_FIELD(std::string, sentence, "verdict in one sentence, with its numbers");
  STEPCAST_FIELD(double, measured_ms, "measured step time that you gave, in ms");
  STEPCAST_FIELD(double, forecast_ms, "forecast step time without the measurement, in ms");
  STEPCAST_FIELD(double, forecast_p10_ms, "10th percentile of the forecast, in ms");
  STEPCAST_FIELD(double, forecast_p90_ms, "90th percentile of the forecast, in ms");
  STEPCAST_FIELD(double, measured_over_forecast, "measured_ms over forecast_ms", 1);
  STEPCAST_FIELD(std::vector<MeasuredCause>, causes,
                 "possible causes of a slow or fast step, likeliest first");
  STEPCAST_FIELD(std::optional<PublishedRuns>, nearest_published,
                 "published runs that are most similar to this job");
};

// The length of the training, and the price and power of a GPU. At most one of samples, tokens and iterations
// is set.
struct TrainingBudget {
  std::optional<double> samples{}, tokens{}, iterations{};  // the requested amount
  std::optional<double> price_per_gpu_hour{};               // in `currency`
  std::string currency{};                                   // printed behind amounts; empty: any
  // Power of a GPU with its share of the host, in W. Nothing: Forecast::power is used.
  std::optional<double> power_per_gpu_W{};
  std::optional<double> carbon_g_per_kWh{};  // carbon intensity of the electricity
  // For described steps only: what interrupts the training, "default" or a log of interruptions
  // (run/failures.h), empty for none; and how it recovers (run/recovery.h), as "mode=async".
  std::string failures{};
  std::vector<std::string> recovery{};
  // Whether a training was asked for at all.
  [[nodiscard]] bool asked() const { return samples || tokens || iterations; }
};

// A whole training at the expected step time. With `run`, the time, GPU-hours and costs include the losses by
// interruptions.
struct ForecastTraining {
  STEPCAST_FIELDS(ForecastTraining, "training");
  STEPCAST_FIELD(std::optional<double>, samples, "samples of the training, if you gave them");
  STEPCAST_FIELD(std::optional<double>, tokens, "tokens of the training, if you gave them");
  STEPCAST_FIELD(double, iterations, "iterations of the training: given, or computed from samples or tokens");
  // Wall-clock time of the whole training.
  STEPCAST_FIELD(double, time_s, "training time in s, at the expected step (promised_step_time_ms)");
  STEPCAST_FIELD(double, gpu_hours, "GPU-hours of all GPUs");
  STEPCAST_FIELD(std::optional<double>, price, "price of the training, in the currency of --gpu-hour-price");
  STEPCAST_FIELD(std::optional<std::string>, currency, "currency of the price, if you gave it");
  // Energy in MWh and emissions in tonnes of CO2. Missing if the power, or the carbon intensity, is unknown.
  STEPCAST_FIELD(std::optional<double>, energy_MWh,
                 "energy in MWh, at the power you gave or that of the nodes and switches");
  STEPCAST_FIELD(std::optional<double>, co2_t,
                 "carbon emissions in tonnes of CO2, at the carbon intensity you gave");
  STEPCAST_FIELD(
      std::vector<RegularStop>, stops,
      "evaluation and checkpoints between steps, if the job or its interruptions give their interval");
  // The spread of single steps of this training, including such stops (run/step_spread.h).
  STEPCAST_FIELD(double, step_p50_ms,
                 "median time from the start of a step to the start of the next one, in ms");
  STEPCAST_FIELD(double, step_p90_ms,
                 "90th percentile of that time in ms, with jitter, host pauses and stops");
  STEPCAST_FIELD(double, step_p99_ms, "99th percentile of that time, in ms");
  STEPCAST_FIELD(std::optional<RunForecast>, run,
                 "the run with interruptions; its losses are part of time_s, gpu_hours, price and energy");
};

// The power of the step (cost/node_power.h) in W. Only cluster_W includes the switches.
struct ForecastPower {
  STEPCAST_FIELDS(ForecastPower);
  // The interval p10 to p90 is that of the power model.
  STEPCAST_FIELD(double, node_W, "power of a node, mean over the step, in W");
  STEPCAST_FIELD(double, node_p10_W, "10th percentile of the power of a node, in W");
  STEPCAST_FIELD(double, node_p90_W, "90th percentile of the power of a node, in W");
  STEPCAST_FIELD(double, gpu_W, "power of a GPU, mean over the step, in W");
  STEPCAST_FIELD(double, waiting_share,
                 "fraction of the step that is idle or exposed communication between nodes");
  STEPCAST_FIELD(double, cluster_W, "power of all nodes and of the switches between them, in W");
  STEPCAST_FIELD(std::optional<double>, joules_per_token, "energy of the cluster per token, in J");
  STEPCAST_FIELD(std::optional<double>, limit_W, "power limit of each GPU, if you gave one, in W");
};

// The slowdown of one kind of groups on links between nodes that other traffic shares
// (predict/network_sharing.h).
struct ForecastSharedKind {
  STEPCAST_FIELDS(ForecastSharedKind);
  STEPCAST_FIELD(std::string, group, "kind of process group");
  // Factors on the transfer time.
  STEPCAST_FIELD(double, alone,
                 "slowdown of these groups without the other groups of the job: own uplink load and other "
                 "jobs; 1: NIC-bound",
                 1);
  STEPCAST_FIELD(double, slowdown,
                 "slowdown of these groups together with the other groups of the job; 1: NIC-bound", 1);
};
// One level of switches of the network between nodes.
struct ForecastTier {
  STEPCAST_FIELDS(ForecastTier);
  STEPCAST_FIELD(std::uint64_t, nodes, "number of nodes below one switch", 1);
  STEPCAST_FIELD(double, oversubscription,
                 "bandwidth of the nodes below a switch over the bandwidth of its uplinks", 1);
  STEPCAST_FIELD(double, load,
                 "load of the uplinks by the kind of group that uses them most; above 1: transfers wait");
};
// The contention on the network: levels of switches, and the slowdown of each kind of groups. The schedule
// and the rates depend on each other, so they are computed in turns (`sweeps`) until the rates stop changing
// (`residual`).
struct ForecastNetwork {
  STEPCAST_FIELDS(ForecastNetwork);
  STEPCAST_FIELD(double, background_load,
                 "load of the uplinks by other jobs, as a fraction of their bandwidth");
  STEPCAST_FIELD(std::vector<ForecastTier>, tiers, "tiers of switches, from the nodes upwards");
  STEPCAST_FIELD(std::vector<ForecastSharedKind>, kinds, "process groups that span nodes");
  STEPCAST_FIELD(std::uint64_t, sweeps, "iterations of the schedule until slowdowns converged");
  STEPCAST_FIELD(double, residual, "relative change of the slowdowns in the last iteration");
};

// One of several pools of GPUs that a job runs on.
struct ForecastPool {
  STEPCAST_FIELDS(ForecastPool);
  STEPCAST_FIELD(std::string, platform, "name of the platform");
  STEPCAST_FIELD(std::string, gpu, "name of the device");
  STEPCAST_FIELD(std::string, zone, "zone of the pool; empty: not given");
  STEPCAST_FIELD(std::uint64_t, n_gpus, "number of GPUs of the pool");
  // A pool runs either whole pipeline stages (`layers`) or whole replicas of the model (`micro_batches`).
  STEPCAST_FIELD(std::string, holds, "the pool's part of the job: stages or replicas");
  STEPCAST_FIELD(std::vector<std::int64_t>, layers, "number of layers of each stage of the pool");
  STEPCAST_FIELD(std::optional<std::int64_t>, micro_batches, "micro-batches of each replica of the pool");
  STEPCAST_FIELD(double, busy_share, "fraction of the step in which the pool does not wait for other pools");
  STEPCAST_FIELD(double, peak_memory_GiB, "peak memory of a GPU of the pool, in GiB");
  STEPCAST_FIELD(double, available_GiB, "memory of a GPU of the pool, in GiB");
  STEPCAST_FIELD(std::optional<double>, price_per_gpu_hour, "price of a GPU-hour in the zone of the pool");
};

// One layout over several pools of GPUs that `plan` evaluated.
struct ForecastPoolLayout {
  STEPCAST_FIELDS(ForecastPoolLayout);
  STEPCAST_FIELD(std::string, layout, "parallel degrees, micro-batch and recomputation");
  STEPCAST_FIELD(std::string, flags, "Megatron-LM flags of the layout");
  STEPCAST_FIELD(std::string, over, "what is divided among the pools: stages or replicas");
  // One entry per pool, in the order of the pools.
  STEPCAST_FIELD(std::string, shares,
                 "share of each pool: layers of its stages, or micro-batches of each of its replicas");
  STEPCAST_FIELD(double, step_time_ms, "forecast step time, in ms");
  STEPCAST_FIELD(double, step_time_p10_ms, "10th percentile of the step time, in ms");
  STEPCAST_FIELD(double, step_time_p90_ms, "90th percentile of the step time, in ms");
  STEPCAST_FIELD(double, tokens_per_s, "tokens per second of all pools");
  STEPCAST_FIELD(double, spare_GiB, "smallest headroom of any GPU in GiB; negative: does not fit");
};

// One operation or transfer of one micro-batch on one rank, with all its repetitions, and its price. Times in
// microseconds.
struct ForecastItem {
  STEPCAST_FIELDS(ForecastItem, "item");
  STEPCAST_FIELD(std::string, name, "role of the operation in the layer");
  STEPCAST_FIELD(std::string, what, "operation with its shapes, or transfer with its process group");
  STEPCAST_FIELD(double, n, "number of repetitions; times are sums over all of them", 1);
  STEPCAST_FIELD(double, start_us, "start after the start of the list, in us");
  STEPCAST_FIELD(double, time_us, "time with overlapping work, in us");
  // A kernel that overlaps a transfer runs longer than alone, because both compete for the GPU.
  STEPCAST_FIELD(double, alone_us, "time without overlapping work, in us");
  STEPCAST_FIELD(double, alone_p10_us, "10th percentile of alone_us");
  STEPCAST_FIELD(double, alone_p90_us, "90th percentile of alone_us");
  STEPCAST_FIELD(double, hidden_us, "time of a transfer that computation hides, in us");
  STEPCAST_FIELD(double, exposed_us, "time of a transfer that is exposed, in us");
  STEPCAST_FIELD(double, flops, "FLOPs of one repetition");
  STEPCAST_FIELD(double, bytes, "bytes of one repetition: read and written, or the message");
  STEPCAST_FIELD(bool, overlapped, "whether a transfer overlaps the next operation");
  STEPCAST_FIELD(EstimateSource, source, "source of the time", EstimateSource::assumed);
  STEPCAST_FIELD(std::string, record, "kernel model that gave the time");
};

// The operations of one pass of a layer or of the head.
struct ForecastItemList {
  STEPCAST_FIELDS(ForecastItemList, "item_list");
  STEPCAST_FIELD(std::string, name,
                 "part of the model and pass, such as `layer, forward` or `head, backward`");
  // The time of the pass is gpu_us + host_us.
  STEPCAST_FIELD(double, gpu_us, "sum of all time that nothing hides, in us");
  STEPCAST_FIELD(double, host_us, "launch time that GPU work does not hide, in us");
  STEPCAST_FIELD(std::vector<ForecastItem>, items, "operations and transfers in the order in which they run");
};

// The same prices combined by the published method (docs/published-method.md).
struct ForecastPublished {
  STEPCAST_FIELDS(ForecastPublished, "published");
  STEPCAST_FIELD(double, step_time_ms, "step time by the published method, from the same prices, in ms");
  // The terms of the published formula; docs/published-method.md derives them.
  STEPCAST_FIELD(double, longest_forward_ms, "longest forward pass of any stage, with transfers, in ms");
  STEPCAST_FIELD(double, longest_backward_ms, "longest backward pass of any stage, with transfers, in ms");
  STEPCAST_FIELD(double, passes_ms, "time of all micro-batches, in ms");
  STEPCAST_FIELD(double, all_reduce_ms, "all-reduce of the gradients of the first stage, in ms");
  STEPCAST_FIELD(double, update_ms, "optimizer step and all-gather, in ms");
};

// Statistics of several times. Quantiles are values that occurred (nearest rank), not interpolated.
struct ForecastQuantiles {
  STEPCAST_FIELDS(ForecastQuantiles, "quantiles");
  STEPCAST_FIELD(std::uint64_t, n, "number of times");
  STEPCAST_FIELD(double, mean_ms, "mean, in ms");
  STEPCAST_FIELD(double, p50_ms, "median (nearest rank), in ms");
  STEPCAST_FIELD(double, p90_ms, "90th percentile, in ms");
  STEPCAST_FIELD(double, p99_ms, "99th percentile, in ms");
  STEPCAST_FIELD(double, max_ms, "maximum, in ms");
};

// One of several recorded steps.
struct ForecastSeriesStep {
  STEPCAST_FIELDS(ForecastSeriesStep, "series_step");
  STEPCAST_FIELD(std::int64_t, step, "number of the recorded step");
  STEPCAST_FIELD(double, step_time_ms, "simulated step time, longest of all ranks, in ms");
  STEPCAST_FIELD(double, measured_ms, "recorded step time, longest of all ranks, in ms; 0: unknown");
  // Partial steps, warm-up steps and steps without GPU work would distort the statistics.
  STEPCAST_FIELD(std::string, left_out, "why the statistics omit the step; empty: included");
};

// One rank over the steps that are included in the statistics. Work times are means per step.
struct ForecastSeriesRank {
  STEPCAST_FIELDS(ForecastSeriesRank, "series_rank");
  STEPCAST_FIELD(std::optional<std::int64_t>, rank, "number of the rank");
  STEPCAST_FIELD(ForecastQuantiles, step,
                 "simulated step times of the rank, over the steps that are included");
  STEPCAST_FIELD(ForecastQuantiles, measured,
                 "recorded step times of the rank, over the steps that are included; n is 0 if unknown");
  STEPCAST_FIELD(double, host_ms, "CPU time of a step, mean, in ms");
  STEPCAST_FIELD(double, gpu_ms, "time of kernels, copies and fills of a step, mean, in ms");
  // The difference of a rank from the mean rank, split into more work and slower work.
  STEPCAST_FIELD(double, data_skew_ms,
                 "GPU time above the mean rank because its operators have more work, in ms");
  STEPCAST_FIELD(double, hardware_ms,
                 "GPU time above the mean rank because the same work takes longer, in ms");
};

// The share of one part ("host", "gpu", ...) in the variance of step times. Shares sum to 1, or to 0
// if all steps are equal. A negative share means that the part is shorter in longer steps.
struct ForecastSpreadShare {
  STEPCAST_FIELDS(ForecastSpreadShare, "spread_share");
  STEPCAST_FIELD(std::string, what,
                 "activity of the rank: host, gpu, network, pcie, other_rank (waiting), rest");
  STEPCAST_FIELD(double, over_steps, "share of the variance of a rank's step time over the steps");
  STEPCAST_FIELD(double, over_ranks, "share of the variance of the mean step times over the ranks");
};

// Several recorded steps, each analysed separately, and the sources of their spread.
struct ForecastSeries {
  STEPCAST_FIELDS(ForecastSeries, "series");
  STEPCAST_FIELD(std::vector<ForecastSeriesStep>, steps, "recorded steps in their order");
  STEPCAST_FIELD(ForecastQuantiles, step,
                 "simulated step time of the longest rank, over the steps that are included");
  // The replayed and the recorded times of the same steps.
  STEPCAST_FIELD(ForecastQuantiles, measured,
                 "recorded step time of the longest rank, over the steps that are included");
  STEPCAST_FIELD(std::vector<ForecastSeriesRank>, ranks,
                 "statistics of each rank, in the order of rank_classes");
  // Two sources of spread: one rank differs from step to step, and ranks differ from each other.
  STEPCAST_FIELD(double, deviation_over_steps_ms,
                 "standard deviation of a rank's step time over the steps, in ms");
  STEPCAST_FIELD(double, deviation_over_ranks_ms,
                 "standard deviation of the mean step times over the ranks, in ms");
  STEPCAST_FIELD(std::vector<ForecastSpreadShare>, spread, "causes of both variances; their shares sum to 1");
};

// A cause of slow scenarios: one resource of one rank.
struct ForecastTailCause {
  STEPCAST_FIELDS(ForecastTailCause, "tail_cause");
  STEPCAST_FIELD(std::optional<std::int64_t>, rank, "number of the rank; null: no single rank");
  STEPCAST_FIELD(std::string, what, "host, gpu or network; none: nothing slow is on the critical path");
  STEPCAST_COLUMN(std::uint64_t, scenarios,
                  "slow scenarios in which this cause lengthens the critical path most", "scenarios");
  STEPCAST_COLUMN(double, share, "fraction of the slow scenarios", "share\n%", 1, 100);
  STEPCAST_COLUMN(double, mean_excess_ms, "mean extra time on the critical path against mean factors, in ms",
                  "mean excess on the\ncritical path ms", 3);
};

// Straggler scenarios: in each scenario, random factors multiply the times of every rank.
struct ForecastScenarios {
  STEPCAST_FIELDS(ForecastScenarios, "scenarios");
  STEPCAST_FIELD(std::uint64_t, seed, "random seed; the same seed gives the same scenarios");
  // The measured spread over steps or over ranks, or the --jitter that was given.
  STEPCAST_FIELD(std::string, drawn_from, "source of the random factors on the times of ranks");
  STEPCAST_FIELD(ForecastQuantiles, step, "step time of the scenarios, longest of all ranks");
  STEPCAST_FIELD(std::vector<ForecastQuantiles>, ranks,
                 "step times of each rank, in the order of rank_classes");
  // The scenarios at or above this step time are analysed for their causes.
  STEPCAST_FIELD(double, tail_from_ms, "step time from which a scenario is slow, in ms");
  STEPCAST_FIELD(std::uint64_t, n_tail, "number of slow scenarios");
  STEPCAST_FIELD(std::vector<ForecastTailCause>, tail, "causes of slow scenarios, most frequent first");
};

// A change of the job that `--advice` suggests. Savings compare expected steps (promised_step_time_ms), the
// same number that the command of the change prints.
struct ForecastAction {
  STEPCAST_FIELDS(ForecastAction, "action");
  STEPCAST_COLUMN(std::string, change, "flags to add; they replace flags of the same setting", "change<");
  STEPCAST_FIELD(std::string, reason,
                 "cost that the change removes from the step, and how; empty: the flags explain it");
  STEPCAST_FIELD(double, step_time_ms, "forecast step time of the changed job, in ms");
  STEPCAST_COLUMN(double, promised_step_time_ms, "expected step time of the changed job, in ms", "step\nms",
                  1);
  STEPCAST_COLUMN(double, saved_ms,
                  "time saved per step against your job, in ms; negative if your job does not fit",
                  "saves\nms", 1);
  STEPCAST_COLUMN(double, saved_percent,
                  "time saved per step against your job, in percent; with interruptions, of the training",
                  "saves\n%", 1);
  STEPCAST_COLUMN(
      double, saved_p10_ms,
      "10th percentile of the time saved in ms; 80 % of measured differences should lie between p10 and p90",
      "p10\nms", 1);
  STEPCAST_COLUMN(double, saved_p90_ms, "90th percentile of the time saved, in ms", "p90\nms", 1);
  STEPCAST_COLUMN(std::string, certainty,
                  "clear: the whole band is a gain; uncertain: the band includes a loss; fits: your job does "
                  "not fit, this one does",
                  "gain is<");
  STEPCAST_COLUMN(std::optional<double>, peak_memory_GiB,
                  "peak memory of a GPU of the fullest stage, in GiB; null: unknown", "memory\nGiB", 1);
  STEPCAST_FIELD(std::optional<double>, memory_change_GiB, "change of peak memory against your job, in GiB");
  STEPCAST_COLUMN(std::uint64_t, n_gpus,
                  "number of GPUs; more than in your job only if nothing fits on those", "GPUs");
  STEPCAST_COLUMN(std::optional<double>, saved_days,
                  "days saved over the whole training, if you asked for one", "saves\ndays", 2);
  // Ready to be pasted into a shell.
  STEPCAST_FIELD(std::string, command,
                 "complete command line; batch, model and precision are those of your job");
};

// The suggested changes, and a sentence about the first one.
struct ForecastAdvice {
  STEPCAST_FIELDS(ForecastAdvice);
  STEPCAST_FIELD(std::string, sentence, "gain of the first action, or that no action helps");
  STEPCAST_FIELD(std::vector<ForecastAction>, actions,
                 "actions that save at least 1 %, largest saving first");
};

// Members that are empty are not known or were not asked for; fields() lists the keys of the JSON in this
// order.
struct Forecast {
  STEPCAST_FIELDS(Forecast);
  STEPCAST_FIELD(std::string, kind,
                 "transformer, trace, dlrm: forecast; replay: recorded work with simulated waiting; "
                 "measurement: as recorded");
  // What was forecast. Members that do not apply to `kind` are empty.
  STEPCAST_FIELD(std::optional<std::string>, model, "name of the model");
  STEPCAST_FIELD(std::optional<std::string>, traces, "path of the traces");
  STEPCAST_FIELD(std::optional<std::uint64_t>, parameters, "number of parameters of the model");
  STEPCAST_FIELD(std::optional<std::int64_t>, step, "number of the recorded step");
  STEPCAST_FIELD(std::optional<std::string>, platform, "name of the platform");
  STEPCAST_FIELD(std::optional<std::string>, gpu, "name of the device");
  STEPCAST_FIELD(std::uint64_t, n_gpus, "total number of GPUs");
  STEPCAST_FIELD(std::vector<Setting>, layout,
                 "settings by name: degrees, batches, sharding, recomputation, ...");
  // The forecast, with its interval p10 to p90.
  STEPCAST_FIELD(double, step_time_ms, "step time of the slowest rank, in ms");
  STEPCAST_FIELD(
      double, step_time_p10_ms,
      "10th percentile of the step time in ms; 80 % of measurements should lie between p10 and p90");
  STEPCAST_FIELD(double, step_time_p90_ms, "90th percentile of the step time, in ms");
  // The expected step time. It differs from step_time_ms for layouts chosen by a search, because the minimum
  // of many forecasts is optimistic.
  STEPCAST_FIELD(
      std::optional<double>, promised_step_time_ms,
      "expected step time of a described step, in ms: step_time_ms. For a mixture of experts in a layout "
      "found by search, multiplied by the median of published runs over forecasts. Days and prices use it.");
  STEPCAST_FIELD(std::optional<double>, promised_step_time_p10_ms,
                 "10th percentile of the expected step time, in ms");
  STEPCAST_FIELD(std::optional<double>, promised_step_time_p90_ms,
                 "90th percentile of the expected step time, in ms");
  STEPCAST_FIELD(EstimateSource, source, "source of most of the time", EstimateSource::assumed);
  STEPCAST_FIELD(ForecastThroughput, throughput, "work of a step and rates");
  // Where the step time goes: by rank class, by collective and along the critical path.
  STEPCAST_FIELD(std::uint32_t, critical_class,
                 "index into rank_classes of the class that ends last (on ties, the busiest)");
  STEPCAST_FIELD_AS("rank_classes", std::vector<ForecastClass>, classes,
                    "classes of equal ranks, with the parts of their step");
  // The list may be shorter than n_collectives, see ForecastOptions::collectives.
  STEPCAST_FIELD(std::uint64_t, n_collectives, "number of collectives of the step, listed or not");
  STEPCAST_FIELD(std::vector<ForecastCollective>, collectives,
                 "collectives by first arrival; if there are too many, the most expensive ones");
  STEPCAST_FIELD(ForecastPath, critical_path, "the chain of tasks that sets the step time");
  STEPCAST_FIELD(ForecastCoverage, coverage, "sources of the predicted time of GPU work and communication");
  STEPCAST_FIELD(std::optional<ForecastMemory>, memory, "memory of one GPU, if known");
  STEPCAST_FIELD(std::optional<ForecastExpertLoad>, expert_load,
                 "cost of unbalanced experts, if you gave a load");
  STEPCAST_FIELD(std::optional<ForecastAnchor>, anchor, "correction by measured steps, if you gave any");
  STEPCAST_FIELD(std::optional<MeasuredCheck>, measured_check,
                 "check of a measured step of this job, if you gave one");
  STEPCAST_FIELD(std::optional<ForecastPower>, power, "power of nodes and GPUs, if the platform is known");
  STEPCAST_FIELD(std::optional<ForecastNetwork>, network,
                 "network links that several process groups share, if the platform gives them");
  STEPCAST_FIELD(std::vector<ForecastPool>, pools, "pools of GPUs, if the job has several");
  STEPCAST_FIELD(std::vector<ForecastPoolLayout>, pool_layouts,
                 "layouts that `plan` tried on several pools, best first");
  // Parts of the answer that only some flags ask for.
  STEPCAST_FIELD(std::optional<ForecastTraining>, training,
                 "whole training at this step time, if you asked for one");
  STEPCAST_FIELD(std::vector<ForecastItemList>, explained,
                 "operations of a layer with their prices, if you asked for them");
  STEPCAST_FIELD(std::optional<ForecastPublished>, published,
                 "step composed by the published method, if you asked for it");
  STEPCAST_FIELD(std::optional<ForecastSeries>, series,
                 "statistics of several recorded steps, if you asked for them");
  STEPCAST_FIELD(std::optional<ForecastScenarios>, scenarios, "straggler scenarios, if you asked for them");
  // Sentences for the reader of the forecast, one per entry.
  STEPCAST_FIELD(std::vector<std::string>, notes, "assumptions, and effects that are not modelled");
  STEPCAST_FIELD(std::optional<ForecastAdvice>, what_to_change,
                 "advice; null without --advice, which is on by default for described and recorded steps on "
                 "the command line");

  // The expected step time in milliseconds; the forecast if there is no separate expectation. And its
  // interval.
  [[nodiscard]] double promised_ms() const { return promised_step_time_ms.value_or(step_time_ms); }
  [[nodiscard]] double promised_p10_ms() const {
    return promised_step_time_p10_ms.value_or(step_time_p10_ms);
  }
  [[nodiscard]] double promised_p90_ms() const {
    return promised_step_time_p90_ms.value_or(step_time_p90_ms);
  }

  // Whether the job fits into memory; true if the memory is unknown.
  [[nodiscard]] bool fits() const { return !memory || memory->margin_GiB >= 0; }

  // The class that explains the step time. Requires at least one class.
  [[nodiscard]] const ForecastClass& critical() const { return classes[critical_class]; }
};

// The gain in step time from faster resources, computed by analyze/sensitivity.h.
struct ResourceSensitivity {
  STEPCAST_FIELDS(ResourceSensitivity);
  // nvlink: links inside nodes. network: links between nodes.
  STEPCAST_COLUMN(std::string, resource, "resource: class of kernel, copies, nvlink, network, host or batch",
                  "which 10 % saves most<");
  STEPCAST_COLUMN(double, path_ms, "time of the resource on the critical path, in ms", "on the path ms", 3);
  // 1: the step scales with the resource's times. 0: the resource is not on the critical path.
  STEPCAST_COLUMN(double, elasticity,
                  "relative change of the step time over the relative change of the resource's times",
                  "elasticity", 3);
  STEPCAST_COLUMN_AS("saved_ms_if_10_percent_faster", double, saved_ms,
                     "time saved if the resource is 10 % faster, in ms", "saves ms", 3);
  // True if another path becomes critical within such a speed-up. The step then saves less than path_ms
  // suggests.
  STEPCAST_FIELD_AS("path_switches_within_0.1_percent", bool, switches_at_once,
                    "another path becomes critical before the resource is 0.1 % faster");
  STEPCAST_FIELD_AS("path_switches_within_10_percent", bool, switches,
                    "another path becomes critical before the resource is 10 % faster");
};

// The sensitivity of the simulated step to each resource.
struct Sensitivity {
  STEPCAST_FIELDS(Sensitivity);
  // The step as simulated, which can differ from the anchored or expected step time.
  STEPCAST_FIELD(double, step_time_ms, "simulated step time that the shares refer to, in ms");
  STEPCAST_FIELD(std::vector<ResourceSensitivity>, resources, "resources, largest saving first");
};

}  // namespace stepcast
