// A Forecast: the one result, of a step that was predicted from a description, predicted from traces, replayed
// or measured. Values only: it refers to nothing, can be kept, sent, written as JSON (report/forecast_json.h)
// and compared.
//
//   Forecast f = ...;
//   f.step_time_ms, f.step_time_p10_ms, f.source
//   f.critical().computation_by_class_ms      {"gemm", 5111.4}, {"attention", 668.8}, ...
//   f.critical().part_ms("idle: pipeline")
//
// Names and units of the members are those of the JSON keys. Everything that a comparison joins two forecasts
// by is a text that does not depend on numbering: class of kernel, label of a group, cause, name of an
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

#include "stepcast/operation/estimate.h"
#include "stepcast/run/run_forecast.h"

namespace stepcast {

// One choice of a layout or a job: "tensor_parallel" 8, "recompute" "full".
struct Setting {
  std::string name{};
  std::variant<bool, double, std::string> value;
  friend bool operator==(const Setting&, const Setting&) = default;
};

// A time under a stable key.
struct NamedTime {
  std::string key{};
  double time_ms = 0;
  friend bool operator==(const NamedTime&, const NamedTime&) = default;
};
using NamedTimes = std::vector<NamedTime>;
[[nodiscard]] double sum_ms(const NamedTimes& times);
// 0 for a key that is not there.
[[nodiscard]] double time_ms(const NamedTimes& times, std::string_view key);

// What one GPU stream does. All but the exposed times sum to the window of its class.
struct ForecastStream {
  std::string name{};
  std::uint64_t tasks = 0;       // that touch the window
  NamedTimes kernels_ms{};       // computation by class of kernel
  double transfer_ms = 0;        // collectives, without waiting for other ranks
  double exposed_comm_ms = 0;    // of it while no stream of the rank computes
  double memcpy_ms = 0;          // copies and fills
  double exposed_memcpy_ms = 0;  // of it while no stream of the rank computes
  NamedTimes idle_ms{};          // by cause; "other_rank" and "pipeline" are waiting inside transfers
  // The same in the parts that are compared most: embedding, gemm, attention, memory (with copies), other,
  // communication_transfer, communication_waiting, idle. They sum to the window.
  NamedTimes parts_ms{};
  friend bool operator==(const ForecastStream&, const ForecastStream&) = default;
};

struct ForecastThread {
  std::string name{};
  double busy_ms = 0;
  NamedTimes idle_ms{};        // gpu, other_thread, rest
  NamedTimes busy_by_op_ms{};  // by outermost framework op or annotation, longest first; "" is outside any
  friend bool operator==(const ForecastThread&, const ForecastThread&) = default;
};

// Ranks that do the same. computation_ms + exposed_comm_ms + exposed_memcpy_ms + all of idle_ms = window_ms.
struct ForecastClass {
  std::string name{};                  // "rank 3", "pipeline stage 2"
  std::optional<std::int64_t> rank{};  // its number, where the class is one recorded rank
  std::uint64_t n_ranks = 1;
  double window_ms = 0;                   // the step of these ranks
  double start_offset_ms = 0;             // how much later they began than the first rank
  double computation_ms = 0;              // some stream runs a kernel that is not communication
  NamedTimes computation_by_class_ms{};   // sums to it; kernels that run at the same time share that time
  double exposed_comm_ms = 0;             // nothing computes, and a collective transfers
  NamedTimes exposed_comm_by_group_ms{};  // sums to it
  double exposed_memcpy_ms = 0;           // nothing computes or transfers, and a copy or fill runs
  NamedTimes idle_ms{};                   // by cause (IdleCause)
  double gpu_active_ms = 0;               // computation, transfer or copy on any stream
  double transfer_ms = 0;                 // union of all transfers
  double overlap_ms = 0;                  // of it under computation
  double collective_wait_ms = 0;          // union of all waiting inside collectives, hidden or not
  NamedTimes kernels_ms{};                // by class, summed over streams
  double baseline_ms = 0;                 // of the published method: the busiest stream, no CPU, no waiting
  std::vector<ForecastStream> streams{};
  std::vector<ForecastThread> threads{};

  // The parts that sum to the window, with keys such as "computation: gemm", "exposed communication: tensor",
  // "exposed copies", "idle: pipeline"; without those of no length.
  [[nodiscard]] NamedTimes parts() const;
  friend bool operator==(const ForecastClass&, const ForecastClass&) = default;
};

struct ForecastMember {
  std::uint32_t rank_class = 0;  // position in Forecast::classes
  double arrival_us = 0;         // on the clock of the timeline
  double wait_us = 0;            // for the last member it depends on
  double transfer_us = 0;
  double exposed_us = 0;  // transfer while no stream of the rank computes
  friend bool operator==(const ForecastMember&, const ForecastMember&) = default;
};

// Those of one collective. Two, as of stages of a pipeline, take no memory of their own: a forecast lists hundreds.
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
  std::array<ForecastMember, 2> few_{};  // all of them while `many_` is empty
  std::uint32_t n_few_ = 0;
  std::vector<ForecastMember> many_;
};

struct ForecastCollective {
  std::string name{};         // of the kernel, of the process group's operation, or the operation
  std::uint32_t ordinal = 0;  // which of that name, in the order of the first arrivals
  std::string operation{}, group{};
  std::optional<double> message_bytes{};
  std::uint32_t came_last = 0;  // class that arrived last; the first of several
  double transfer_us = 0;       // shortest of the members'
  double total_wait_us = 0;     // over members
  double longest_wait_us = 0;
  ForecastMembers members{};
  friend bool operator==(const ForecastCollective&, const ForecastCollective&) = default;
};

// Part of the critical path.
struct ForecastShare {
  std::string what{};
  double time_ms = 0;
  std::uint64_t steps = 0;
  friend bool operator==(const ForecastShare&, const ForecastShare&) = default;
};

struct ForecastPathStep {
  std::uint32_t rank_class = 0;
  std::string what{};  // as in by_name
  double start_ms = 0, time_ms = 0;
  friend bool operator==(const ForecastPathStep&, const ForecastPathStep&) = default;
};

// The chain of work and delays, without a hole, that the end of the step hangs on. The lists by class and by
// rank sum to its length; all are sorted by time, longest first.
struct ForecastPath {
  double length_ms = 0;
  std::optional<std::uint32_t> ends_on{};  // class
  std::uint64_t n_steps = 0;
  std::vector<ForecastShare> by_class{}, by_rank{};
  std::vector<ForecastShare> by_name{};   // the longest
  std::vector<ForecastPathStep> steps{};  // in the order of time, where asked for
  friend bool operator==(const ForecastPath&, const ForecastPath&) = default;
};

struct ForecastUnmodelled {
  std::string name{};
  std::uint64_t n = 0;  // tasks
  double time_ms = 0;   // that the forecast counts for them
  friend bool operator==(const ForecastUnmodelled&, const ForecastUnmodelled&) = default;
};

// What the predicted time of GPU work and communication rests on: shares of their sum, 1 in all (0 in all
// where nothing was priced).
struct ForecastCoverage {
  double measured = 0, fitted = 0, analytic = 0, assumed = 0;
  std::vector<ForecastUnmodelled> unmodelled{};  // priced without a model, most time first
  [[nodiscard]] double sum() const { return measured + fitted + analytic + assumed; }
  friend bool operator==(const ForecastCoverage&, const ForecastCoverage&) = default;
};

struct ForecastStageMemory {
  double weights_GiB = 0, gradients_GiB = 0, optimizer_GiB = 0, activations_GiB = 0, working_GiB = 0,
         communication_GiB = 0, reserve_GiB = 0, total_GiB = 0;
  double dispatched_GiB = 0;  // of the activations: tokens at their experts
  std::string verdict{};      // as ForecastMemory::verdict, of this stage
  // The highest that PyTorch's allocator reports, as frameworks print it; nothing: of recorded steps.
  std::optional<double> allocated_GiB{}, reserved_GiB{};
  // Memory in all, if all tokens of an expert-parallel group went to one rank.
  std::optional<double> worst_imbalance_GiB{};
  friend bool operator==(const ForecastStageMemory&, const ForecastStageMemory&) = default;
};

struct ForecastMemory {
  std::string verdict{};  // fits, tight, does not fit
  double peak_memory_GiB = 0, available_GiB = 0, margin_GiB = 0;
  std::uint32_t worst_stage = 0;
  std::vector<ForecastStageMemory> stages{};
  // Experts that drop no token: visits of the busiest rank over the mean if it got all tokens of its group, and up to
  // which every stage fits.
  std::optional<double> worst_imbalance{}, fits_to_imbalance{};
  friend bool operator==(const ForecastMemory&, const ForecastMemory&) = default;
};

// Work of one step, as far as it is known, and what follows from it and the step time.
struct ForecastThroughput {
  std::optional<double> samples_per_step{}, tokens_per_step{};
  std::optional<double> model_flops{};          // forward and backward, all GPUs; causal attention as it is
  std::optional<double> hardware_flops{};       // with what recomputation repeats
  std::optional<double> peak_tflops_per_gpu{};  // dense, in the type of the products
  std::optional<double> samples_per_s{}, tokens_per_s{}, tokens_per_s_per_gpu{};
  std::optional<double> tflops_per_gpu{};           // of the model
  std::optional<double> hardware_tflops_per_gpu{};  // of what runs
  std::optional<double> mfu{}, hfu{};               // fractions
  friend bool operator==(const ForecastThroughput&, const ForecastThroughput&) = default;
};

// What uneven experts cost.
struct ForecastExpertLoad {
  std::string load{};            // as it was asked for
  double busiest_over_mean = 1;  // visits of the rank that all wait for
  double balanced_step_ms = 0;   // the step with balanced experts
  double cost_ms = 0;            // the step less that
  friend bool operator==(const ForecastExpertLoad&, const ForecastExpertLoad&) = default;
};

// What somebody wants to train, and what a GPU costs.
struct TrainingBudget {
  std::optional<double> samples{}, tokens{}, iterations{};  // at most one of them
  std::optional<double> price_per_gpu_hour{};               // in any currency
  std::optional<double> power_per_gpu_W{};   // of a GPU with its share of the host; nothing: Forecast::power
  std::optional<double> carbon_g_per_kWh{};  // of the electricity
  // What interrupts it, of a described step alone: "default" or a log (run/failures.h); empty: nothing. And how it goes on
  // (run/recovery.h): "mode=async".
  std::string failures{};
  std::vector<std::string> recovery{};
  [[nodiscard]] bool asked() const { return samples || tokens || iterations; }
};

// A whole training at this step time; with `run` time, GPU-hours and what they cost are those with its losses.
struct ForecastTraining {
  std::optional<double> samples{}, tokens{};
  double iterations = 0, time_s = 0, gpu_hours = 0;
  std::optional<double> price{}, energy_MWh{}, co2_t{};
  std::vector<RegularStop> stops{};  // evaluation and checkpoints, where somebody says how often
  // Of its single steps with these (run/step_spread.h): the typical one, and what one in ten and one in a hundred exceed.
  double step_p50_ms = 0, step_p90_ms = 0, step_p99_ms = 0;
  std::optional<RunForecast> run{};
  friend bool operator==(const ForecastTraining&, const ForecastTraining&) = default;
};

// What the step draws (cost/node_power.h). Switches are in cluster_W alone.
struct ForecastPower {
  double node_W = 0, node_p10_W = 0, node_p90_W = 0;
  double gpu_W = 0;          // mean over the step
  double waiting_share = 0;  // of the step: idle, or exposed transfers between nodes
  double cluster_W = 0;      // all nodes, and the switches between them
  std::optional<double> joules_per_token{}, limit_W{};
  friend bool operator==(const ForecastPower&, const ForecastPower&) = default;
};

// Groups of one kind on links between nodes that others pass, too (predict/network_sharing.h).
struct ForecastSharedKind {
  std::string group{};  // "data", "expert", ...
  double alone =
      1;  // times as long as with nothing behind the adapters: its own load, and that of other jobs
  double slowdown = 1;  // beside other groups of the job as well
  friend bool operator==(const ForecastSharedKind&, const ForecastSharedKind&) = default;
};
struct ForecastTier {
  std::uint64_t nodes = 1;
  double oversubscription = 1;
  double load = 0;  // that the kind which asks most asks of the uplinks, as a share of what they pass
  friend bool operator==(const ForecastTier&, const ForecastTier&) = default;
};
struct ForecastNetwork {
  double background_load = 0;
  std::vector<ForecastTier> tiers{};
  std::vector<ForecastSharedKind> kinds{};  // those over several nodes
  std::uint64_t sweeps = 0;                 // until the schedule and the rates agreed
  double residual = 0;                      // by which slowdowns still changed
  friend bool operator==(const ForecastNetwork&, const ForecastNetwork&) = default;
};

// One of several pools of GPUs of a job.
struct ForecastPool {
  std::string platform{}, gpu{}, zone{};
  std::uint64_t n_gpus = 0;
  std::string holds{};                          // "stages 0 to 3", "replicas 0 to 7"
  std::vector<std::int64_t> layers{};           // of each of its stages
  std::optional<std::int64_t> micro_batches{};  // of each of its replicas
  double busy_share =
      0;  // of the step: all but waiting for the others, where stages are spread; else its own step over it
  double peak_memory_GiB = 0, available_GiB = 0;
  std::optional<double> price_per_gpu_hour{};
  friend bool operator==(const ForecastPool&, const ForecastPool&) = default;
};

// One way to lay a job out on pools that was tried.
struct ForecastPoolLayout {
  std::string layout{}, flags{};  // "tp2 pp4 dp16 mbs1"; those of Megatron-LM that say it
  std::string over{};             // what the pools share out: stages, replicas
  std::string shares{};  // "25; 7": layers of the stages, or micro-batches of each replica, of each pool
  double step_time_ms = 0, step_time_p10_ms = 0, step_time_p90_ms = 0, tokens_per_s = 0;
  double spare_GiB = 0;  // that the tightest GPU leaves; below 0: does not fit
  friend bool operator==(const ForecastPoolLayout&, const ForecastPoolLayout&) = default;
};

// An operation or transfer of one micro-batch on one rank with all its repetitions, as it was priced.
struct ForecastItem {
  std::string name{}, what{};  // "qkv"; the operation with its shapes, or the transfer with its group
  double n = 1;                // repetitions
  double start_us = 0;         // from that of its list
  double time_us = 0;          // with the work that overlaps it
  double alone_us = 0, alone_p10_us = 0, alone_p90_us = 0;  // without overlapping work
  double hidden_us = 0, exposed_us = 0;  // of a transfer: behind computation, and waited for
  double flops = 0, bytes = 0;           // of one repetition; bytes read and written, or the message
  bool overlapped = false;               // a transfer that overlaps the next operation
  EstimateSource source = EstimateSource::assumed;
  std::string record{};  // kernel model that answered, "" where none did
  friend bool operator==(const ForecastItem&, const ForecastItem&) = default;
};

struct ForecastItemList {
  std::string name{};              // "layer, forward"
  double gpu_us = 0, host_us = 0;  // what nothing hides, and what launching takes beyond that
  std::vector<ForecastItem> items{};
  friend bool operator==(const ForecastItemList&, const ForecastItemList&) = default;
};

// The same prices put together as the published method does (docs/published-method.md).
struct ForecastPublished {
  double step_time_ms = 0, longest_forward_ms = 0, longest_backward_ms = 0, passes_ms = 0, all_reduce_ms = 0,
         update_ms = 0;
  friend bool operator==(const ForecastPublished&, const ForecastPublished&) = default;
};

// Of several times; quantiles by the nearest rank.
struct ForecastQuantiles {
  std::uint64_t n = 0;
  double mean_ms = 0, p50_ms = 0, p90_ms = 0, p99_ms = 0, max_ms = 0;
  friend bool operator==(const ForecastQuantiles&, const ForecastQuantiles&) = default;
};

// One recorded step of several.
struct ForecastSeriesStep {
  std::int64_t step = 0;
  double step_time_ms = 0;  // longest of all ranks
  double measured_ms = 0;   // 0: not known
  std::string left_out{};   // why the statistics leave it out; empty: they do not
  friend bool operator==(const ForecastSeriesStep&, const ForecastSeriesStep&) = default;
};

// A rank over the steps that count. Work times are means of a step.
struct ForecastSeriesRank {
  std::optional<std::int64_t> rank{};
  ForecastQuantiles step, measured;
  double host_ms = 0;  // CPU time of its threads
  double gpu_ms = 0;   // kernels, copies and fills
  // So much more GPU time than the mean rank because its operators have more work, and because the same work takes
  // longer.
  double data_skew_ms = 0, hardware_ms = 0;
  friend bool operator==(const ForecastSeriesRank&, const ForecastSeriesRank&) = default;
};

// Which share of the variance of step times is this part's: "host", "gpu", ... All sum to 1 (0 where there is no
// spread). Negative: the part is shorter where steps are longer.
struct ForecastSpreadShare {
  std::string what{};
  double over_steps = 0;  // of a rank
  double over_ranks = 0;  // of their means
  friend bool operator==(const ForecastSpreadShare&, const ForecastSpreadShare&) = default;
};

// Several recorded steps, each by itself.
struct ForecastSeries {
  std::vector<ForecastSeriesStep> steps{};
  ForecastQuantiles step, measured;  // longest of all ranks, of the steps that count
  std::vector<ForecastSeriesRank> ranks{};
  double deviation_over_steps_ms = 0;  // standard deviations of the step of a rank
  double deviation_over_ranks_ms = 0;
  std::vector<ForecastSpreadShare> spread{};
  friend bool operator==(const ForecastSeries&, const ForecastSeries&) = default;
};

// What makes slow scenarios slow.
struct ForecastTailCause {
  std::optional<std::int64_t> rank{};  // none: all of them, or nothing
  std::string what{};                  // "host", "gpu", "network", "none"
  std::uint64_t scenarios = 0;         // in which nothing lengthens the critical path more
  double share = 0;                    // of the slow ones
  double mean_excess_ms = 0;           // on the critical path, against the mean factors
  friend bool operator==(const ForecastTailCause&, const ForecastTailCause&) = default;
};

// Straggler scenarios: factors on the times of ranks are drawn.
struct ForecastScenarios {
  std::uint64_t seed = 0;
  std::string drawn_from{};
  ForecastQuantiles step;                  // longest of all ranks
  std::vector<ForecastQuantiles> ranks{};  // [rank class]
  double tail_from_ms = 0;                 // slow are scenarios from here on
  std::uint64_t n_tail = 0;
  std::vector<ForecastTailCause> tail{};  // most scenarios first
  friend bool operator==(const ForecastScenarios&, const ForecastScenarios&) = default;
};

struct Forecast {
  // What was asked. `kind`: "transformer", "trace", "dlrm" are predictions; "replay" is recorded work with
  // simulated waiting, "measurement" what a trace recorded.
  std::string kind{};
  std::optional<std::string> model{}, traces{};
  std::optional<std::uint64_t> parameters{};
  std::optional<std::int64_t> step{};  // number of the recorded step
  std::optional<std::string> platform{}, gpu{};
  std::uint64_t n_gpus = 0;
  std::vector<Setting> layout{};

  double step_time_ms = 0, step_time_p10_ms = 0, step_time_p90_ms = 0;
  EstimateSource source = EstimateSource::assumed;
  std::uint32_t critical_class = 0;  // position in `classes`: the last to end, of several the busiest

  std::vector<ForecastClass> classes{};
  std::uint64_t n_collectives = 0;
  std::vector<ForecastCollective> collectives{};  // by first arrival; of many, those that cost most
  ForecastPath critical_path;
  ForecastCoverage coverage;
  std::optional<ForecastMemory> memory{};
  std::optional<ForecastExpertLoad> expert_load{};  // where one was asked for
  ForecastThroughput throughput;
  std::optional<ForecastPower> power{};      // where the platform is known, and states a power limit
  std::optional<ForecastNetwork> network{};  // where its links are shared
  std::vector<ForecastPool> pools{};         // where there are several
  // The fastest of those that were tried on several pools, where they are asked for.
  std::vector<ForecastPoolLayout> pool_layouts{};
  std::optional<ForecastTraining> training{};
  std::vector<ForecastItemList> explained{};  // where asked for
  std::optional<ForecastPublished> published{};
  std::optional<ForecastSeries> series{};        // where asked for
  std::optional<ForecastScenarios> scenarios{};  // where asked for
  std::vector<std::string> notes{};

  // Of unknown memory, true.
  [[nodiscard]] bool fits() const { return !memory || memory->margin_GiB >= 0; }
  // The class whose parts explain the step; there must be one.
  [[nodiscard]] const ForecastClass& critical() const { return classes[critical_class]; }
  friend bool operator==(const Forecast&, const Forecast&) = default;
};

// What a step would gain from faster resources: analyze/sensitivity.h finds it.
struct ResourceSensitivity {
  // Class of kernels, or "copies", "nvlink" (inside nodes), "network" (between), "host", "batch".
  std::string resource;
  double path_ms = 0;             // of its work on the critical path
  double elasticity = 0;          // relative change of the step over that of the times of the resource
  double saved_ms = 0;            // of the step if the resource is 10 % faster
  bool switches_at_once = false;  // a 0.1 % faster resource already leaves another path to wait for
  bool switches = false;          // a 10 % faster one does: it saves less than its path says
};

struct Sensitivity {
  double step_time_ms = 0;
  std::vector<ResourceSensitivity> resources;  // that save most first
};

}  // namespace stepcast
