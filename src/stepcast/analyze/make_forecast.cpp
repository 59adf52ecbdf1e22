#include "stepcast/analyze/make_forecast.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/analyze/binding.h"
#include "stepcast/analyze/breakdown.h"
#include "stepcast/analyze/steady_rounds.h"
#include "stepcast/base/units.h"
#include "stepcast/cost/node_power.h"
#include "stepcast/operation/operation.h"
#include "stepcast/run/recovery.h"
#include "stepcast/run/step_spread.h"
#include "stepcast/workload/step_work.h"

namespace stepcast {
namespace {

// The causes of idle time that are listed for GPUs and for CPU threads, in the order of the lists.
constexpr IdleCause kGpuCauses[] = {IdleCause::cpu,      IdleCause::other_stream,  IdleCause::other_rank,
                                    IdleCause::pipeline, IdleCause::between_steps, IdleCause::rest};
constexpr IdleCause kCpuCauses[] = {IdleCause::gpu, IdleCause::other_thread, IdleCause::rest};

// Appends a time, given in microseconds, to a list in milliseconds.
void add(NamedTimes& times, std::string_view key, double us) {
  NamedTime& time = times.emplace_back();
  time.key = key;
  time.time_ms = us * kMsPerUs;
}

// The classes of kernel that take time, in the order of the enumeration.
NamedTimes by_class(const ClassTimes& times_us) {
  NamedTimes times;
  times.reserve(static_cast<std::size_t>(
      std::count_if(times_us.begin(), times_us.end(), [](double us) { return us > 0; })));
  for (std::size_t k = 0; k < times_us.size(); ++k)
    if (times_us[k] > 0) add(times, to_string(static_cast<KernelClass>(k)), times_us[k]);
  return times;
}

// All given causes, including those without time.
NamedTimes by_cause(const IdleTime& idle, std::span<const IdleCause> causes) {
  NamedTimes times;
  times.reserve(causes.size());
  for (const IdleCause cause : causes) add(times, to_string(cause), idle.of(cause));
  return times;
}

// The times by label of the group. Groups with the same label, such as the data-parallel groups of several
// stages, share one entry. `times_us` begins with the time of unknown groups.
NamedTimes by_group(std::span<const std::string> groups, std::span<const double> times_us) {
  NamedTimes times;
  times.reserve(static_cast<std::size_t>(
      std::count_if(times_us.begin(), times_us.end(), [](double us) { return us > 0; })));
  for (std::size_t g = 0; g < times_us.size(); ++g) {
    if (times_us[g] <= 0) continue;
    const std::string_view label = g == 0 ? kUnknownGroup : std::string_view{groups[g - 1]};
    const auto same =
        std::find_if(times.begin(), times.end(), [&](const NamedTime& t) { return t.key == label; });
    if (same != times.end())
      same->time_ms += times_us[g] * kMsPerUs;
    else
      add(times, label, times_us[g]);
  }
  return times;
}

// The stream with its eight parts: classes of kernel, transfers, waiting for others, and other idle time.
ForecastStream stream_of(const StreamBreakdown& s) {
  ForecastStream stream;
  stream.name = s.name;
  stream.tasks = s.tasks;
  stream.kernels_ms = by_class(s.kernels_us);
  stream.transfer_ms = s.transfer_us * kMsPerUs;
  stream.exposed_comm_ms = s.exposed_comm_us * kMsPerUs;
  stream.memcpy_ms = s.memcpy_us * kMsPerUs;
  stream.exposed_memcpy_ms = s.exposed_memcpy_us * kMsPerUs;
  stream.idle_ms = by_cause(s.idle, kGpuCauses);
  const auto of = [&](KernelClass k) { return s.kernels_us[static_cast<std::size_t>(k)]; };
  const double named = of(KernelClass::embedding) + of(KernelClass::gemm) + of(KernelClass::attention) +
                       of(KernelClass::memory);
  const double waiting = s.idle.of(IdleCause::other_rank) + s.idle.of(IdleCause::pipeline);
  constexpr std::size_t kParts = 8;
  NamedTimes& parts = stream.parts_ms;
  parts.reserve(kParts);
  add(parts, "embedding", of(KernelClass::embedding));
  add(parts, "gemm", of(KernelClass::gemm));
  add(parts, "attention", of(KernelClass::attention));
  add(parts, "memory", of(KernelClass::memory) + s.memcpy_us);
  add(parts, "other", std::max(0.0, s.computation_us - named));
  add(parts, "communication_transfer", s.transfer_us);
  add(parts, "communication_waiting", waiting);
  add(parts, "idle", std::max(0.0, s.idle.total_us() - waiting));
  return stream;
}

// The thread of a forecast.
ForecastThread thread_of(const ThreadBreakdown& t) {
  ForecastThread thread{.name = t.name,
                        .busy_ms = t.busy_us * kMsPerUs,
                        .idle_ms = by_cause(t.idle, kCpuCauses),
                        .busy_by_op_ms = {}};
  thread.busy_by_op_ms.reserve(t.busy_by_op.size());
  for (const OpTime& op : t.busy_by_op) add(thread.busy_by_op_ms, op.name, op.time_us);
  return thread;
}

// The published baseline: the time of the busiest stream, with `rounds` more rounds of the pipeline.
double baseline_us(const StepAnalysis::Rank& rank, double rounds) {
  double most_us = 0;
  for (std::size_t lane = 0; lane < rank.stream_us.size(); ++lane) {
    const double round_us = lane < rank.round_stream_us.size() ? rank.round_stream_us[lane] : 0;
    most_us = std::max(most_us, rank.stream_us[lane] + rounds * round_us);
  }
  return most_us;
}

// One class of a forecast. `b` is the breakdown of the rank, including the rounds that were left out.
ForecastClass class_of(const StepAnalysis& analysis, const StepAnalysis::Rank& rank, const RankBreakdown& b,
                       double rounds) {
  ForecastClass c;
  c.name = rank.name;
  c.rank = rank.recorded_rank;
  c.n_ranks = rank.n_ranks;
  c.window_ms = b.window.length_us() * kMsPerUs;
  c.start_offset_ms = rank.start_offset_us * kMsPerUs;
  c.computation_ms = b.computation_us * kMsPerUs;
  c.computation_by_class_ms = by_class(b.class_us);
  c.exposed_comm_ms = b.exposed_comm_us * kMsPerUs;
  c.exposed_comm_by_group_ms = by_group(analysis.groups, b.exposed_by_group_us);
  c.exposed_memcpy_ms = b.exposed_memcpy_us * kMsPerUs;
  c.idle_ms = by_cause(b.idle, kGpuCauses);
  c.gpu_active_ms = b.gpu_active_us * kMsPerUs;
  c.transfer_ms = b.transfer_us * kMsPerUs;
  c.overlap_ms = b.overlap_us * kMsPerUs;
  c.collective_wait_ms = b.collective_wait_us * kMsPerUs;
  c.kernels_ms = by_class(b.kernels_us);
  c.baseline_ms = baseline_us(rank, rounds) * kMsPerUs;
  // Described ranks have a stream for every kind of transfer of any layout, so empty ones are left out. Every
  // recorded stream is shown.
  const auto is_shown = [&](const StreamBreakdown& s) { return s.tasks > 0 || c.rank; };
  c.streams.reserve(static_cast<std::size_t>(std::count_if(b.streams.begin(), b.streams.end(), is_shown)));
  for (const StreamBreakdown& s : b.streams)
    if (is_shown(s)) c.streams.push_back(stream_of(s));
  c.threads.reserve(b.threads.size());
  for (const ThreadBreakdown& t : b.threads) c.threads.push_back(thread_of(t));
  return c;
}

// The parts of the critical path including `rounds` more rounds, longest first, at most `most` of them; 0:
// all.
std::vector<ForecastShare> shares_of(const std::vector<StepAnalysis::PathPart>& parts, double rounds,
                                     std::size_t most) {
  struct Length {
    double us = 0;
    std::size_t part = 0;
  };
  std::vector<Length> lengths;
  lengths.reserve(parts.size());
  for (const StepAnalysis::PathPart& part : parts)
    lengths.push_back({part.us + rounds * part.round_us, lengths.size()});
  // Compared as float: parts that differ only by rounding keep their order.
  std::sort(lengths.begin(), lengths.end(), [](const Length& a, const Length& b) {
    const auto a_us = static_cast<float>(a.us), b_us = static_cast<float>(b.us);
    return a_us != b_us ? a_us > b_us : a.part < b.part;
  });
  if (most != 0 && lengths.size() > most) lengths.resize(most);
  std::vector<ForecastShare> shares;
  shares.reserve(lengths.size());
  for (const Length& length : lengths) {
    const StepAnalysis::PathPart& part = parts[length.part];
    shares.push_back({part.what, length.us * kMsPerUs,
                      part.steps + static_cast<std::uint64_t>(rounds) * part.round_steps});
  }
  return shares;
}

// Fills in the critical path of a forecast.
void add_path(const AnalysedStep& step, const ForecastOptions& options, ForecastPath& out) {
  const StepAnalysis::Path& path = step.analysis.path;
  out.length_ms = (path.length_us + step.left_out_us) * kMsPerUs;
  out.ends_on = path.ends_on;
  out.n_steps = path.n_steps + static_cast<std::uint64_t>(step.rounds) * path.round_steps;
  out.by_class = shares_of(path.by_class, step.rounds, 0);
  out.by_rank = shares_of(path.by_rank, step.rounds, 0);
  out.by_name = shares_of(path.by_name, step.rounds, options.path_names);
  if (options.path_steps) out.steps = path.steps;
}

// The FLOPs of all tasks with a known Operation, summed over all ranks. Cached by work and by block:
// instances share blocks, and tasks share works.
double flops_of(const Program& program) {
  double flops = 0;
  std::vector<double> of_work(program.works.size(), -1.0);
  std::vector<double> of_block(program.blocks().size(), -1.0);
  for (const RankClass& rank_class : program.rank_classes()) {
    for (const BlockInstance& instance : rank_class.instances) {
      double& block_flops = of_block[instance.block.index()];
      if (block_flops < 0) {
        block_flops = 0;
        for (const TaskInfo& info : program.block(instance.block).tasks()) {
          const Operation* operation = program.works.operation(info.work);
          if (operation == nullptr) continue;
          double& cached = of_work[info.work.index()];
          if (cached < 0) cached = work_of(*operation).flops.value();
          block_flops += cached * info.work_times;
        }
      }
      flops += block_flops * rank_class.multiplicity;
    }
  }
  return flops;
}

// Fills in the rates that follow from the work and the step time. Rates of unknown work stay empty.
void add_throughput(Forecast& forecast) {
  ForecastThroughput& t = forecast.throughput;
  if (!(forecast.step_time_ms > 0) || forecast.n_gpus == 0) return;
  const double seconds = forecast.step_time_ms * 1e-3;
  const auto gpus = static_cast<double>(forecast.n_gpus);
  if (t.samples_per_step) t.samples_per_s = *t.samples_per_step / seconds;
  if (t.tokens_per_step) {
    t.tokens_per_s = *t.tokens_per_step / seconds;
    t.tokens_per_s_per_gpu = *t.tokens_per_s / gpus;
  }
  const auto tflops = [&](double flops) { return flops / seconds / gpus * 1e-12; };
  if (t.model_flops) t.tflops_per_gpu = tflops(*t.model_flops);
  if (t.hardware_flops) t.hardware_tflops_per_gpu = tflops(*t.hardware_flops);
  if (!t.peak_tflops_per_gpu || !(*t.peak_tflops_per_gpu > 0)) return;
  if (t.tflops_per_gpu) t.mfu = *t.tflops_per_gpu / *t.peak_tflops_per_gpu;
  if (t.hardware_tflops_per_gpu) t.hfu = *t.hardware_tflops_per_gpu / *t.peak_tflops_per_gpu;
}

// The class that ends last; of several within the tolerance, the busiest.
std::uint32_t critical_class(std::span<const StepAnalysis::Rank> ranks) {
  std::size_t critical = 0;
  for (std::size_t c = 1; c < ranks.size(); ++c) {
    const double later = ranks[c].parts.window.end_us - ranks[critical].parts.window.end_us;
    const bool busier = ranks[c].parts.gpu_active_us > ranks[critical].parts.gpu_active_us;
    if (later > kTimeToleranceUs || (later > -kTimeToleranceUs && busier)) critical = c;
  }
  return static_cast<std::uint32_t>(critical);
}

// Sets the step time with its interval. Without an estimate, the step was measured: the longest window,
// without an interval.
void add_step(const AnalysedStep& step, Forecast& forecast) {
  if (step.step) {
    forecast.step_time_ms = step.step->time.value() * kMsPerUs;
    forecast.step_time_p10_ms = step.step->p10.value() * kMsPerUs;
    forecast.step_time_p90_ms = step.step->p90.value() * kMsPerUs;
    forecast.source = step.step->source;
    return;
  }
  double longest_us = 0;
  for (const StepAnalysis::Rank& rank : step.analysis.ranks)
    longest_us = std::max(longest_us, rank.parts.window.length_us());
  forecast.step_time_ms = forecast.step_time_p10_ms = forecast.step_time_p90_ms = longest_us * kMsPerUs;
  forecast.source = EstimateSource::measured;
}

// The number of steps of a training. Errors: more than one amount is given, or the amount per step is
// unknown.
Result<double> iterations_of(const TrainingBudget& budget, const ForecastThroughput& throughput) {
  const int amounts = (budget.samples ? 1 : 0) + (budget.tokens ? 1 : 0) + (budget.iterations ? 1 : 0);
  if (amounts > 1) {
    return Error{"a training needs exactly one length"}
        .found(fmt::format("{} of samples, tokens and iterations", amounts))
        .expected("one of them");
  }
  if (budget.iterations) return *budget.iterations;
  const auto per_step = [&](std::string_view what, double amount,
                            const std::optional<double>& of_step) -> Result<double> {
    if (of_step && *of_step > 0) return amount / *of_step;
    return Error{fmt::format("{} to train on are given, but not the number per step", what)}.advice(
        fmt::format("give it with --{}-per-step, or the number of steps with --train-iterations", what));
  };
  return budget.samples ? per_step("samples", *budget.samples, throughput.samples_per_step)
                        : per_step("tokens", *budget.tokens, throughput.tokens_per_step);
}

}  // namespace

Forecast make_forecast(const AnalysisInput& input, std::optional<Estimate> step, Forecast asked,
                       const ForecastOptions& options) {
  const Program& program = input.flat.program();
  if (asked.n_gpus == 0) asked.n_gpus = program.rank_count();
  if (!asked.throughput.hardware_flops) {
    const double flops = flops_of(program);
    if (flops > 0) asked.throughput.hardware_flops = flops;
  }
  const StepAnalysis analysis =
      analyse(input, {.collectives = options.collectives, .path_steps = options.path_steps});
  return make_forecast({.analysis = analysis, .step = step}, std::move(asked), options);
}

Forecast make_forecast(const AnalysedStep& step, Forecast asked, const ForecastOptions& options) {
  const StepAnalysis& analysis = step.analysis;
  Forecast forecast = std::move(asked);
  forecast.classes.reserve(analysis.ranks.size());
  // Scratch memory, kept between ranks and calls to avoid allocations.
  static thread_local RankBreakdown whole;
  for (const StepAnalysis::Rank& rank : analysis.ranks) {
    if (step.rounds > 0) {
      whole = rank.parts;
      add_rounds(step.rounds, step.left_out_us, rank.round, whole);
    }
    forecast.classes.push_back(class_of(analysis, rank, step.rounds > 0 ? whole : rank.parts, step.rounds));
  }
  if (!options.only_critical || !step.critical) {
    const auto rounds = static_cast<std::uint64_t>(step.rounds);
    forecast.n_collectives = analysis.collectives.count(rounds);
    forecast.collectives =
        analysis.collectives.listed(rounds, rounds > 0 ? step.left_out_us / step.rounds : 0);
    add_path(step, options, forecast.critical_path);
    forecast.critical_class = step.critical ? step.critical->index() : critical_class(analysis.ranks);
  }
  add_step(step, forecast);
  add_throughput(forecast);
  return forecast;
}

Status add_training(Forecast& forecast, const TrainingBudget& budget, const RunJob* job) {
  if (!budget.asked()) return Ok{};
  ForecastTraining training;
  training.samples = budget.samples;
  training.tokens = budget.tokens;
  STEPCAST_ASSIGN(training.iterations, iterations_of(budget, forecast.throughput));
  const auto of_steps = [&](double step_ms) { return training.iterations * step_ms * 1e-3; };
  training.time_s = of_steps(forecast.promised_ms());
  auto gpus = static_cast<double>(forecast.n_gpus);
  if (!budget.failures.empty()) {
    if (job == nullptr) return Error{"interruptions need a described step"};
    STEPCAST_ASSIGN(const RunAssumptions how,
                    read_run_assumptions(budget.failures, budget.recovery, job->pools));
    STEPCAST_ASSIGN(training.run, forecast_run(how, *job,
                                               {.s = training.time_s,
                                                .p10_s = of_steps(forecast.promised_p10_ms()),
                                                .p90_s = of_steps(forecast.promised_p90_ms())}));
    // With interruptions, the time includes lost work and restarts, and spare GPUs count for the price.
    training.time_s = training.run->days * 86400;
    gpus = training.run->held_gpus;
    training.stops = regular_stops(how.recovery, *job, training.run->checkpoint_interval_min * 60);
  } else if (job != nullptr) {
    // Without interruptions, evaluations and checkpoints of the job still add their time.
    training.stops = regular_stops({}, *job);
    for (const RegularStop& stop : training.stops)
      training.time_s += training.iterations * stop.s / stop.every_steps;
  }
  const StepSpread steps = step_spread(forecast.promised_ms() * 1e-3, {}, training.stops);
  training.step_p50_ms = steps.p50_s * 1e3;
  training.step_p90_ms = steps.p90_s * 1e3;
  training.step_p99_ms = steps.p99_s * 1e3;
  training.gpu_hours = training.time_s / 3600 * gpus;
  if (budget.price_per_gpu_hour) training.price = training.gpu_hours * *budget.price_per_gpu_hour;
  if (training.price && !budget.currency.empty()) training.currency = budget.currency;
  if (budget.power_per_gpu_W)
    training.energy_MWh = training.gpu_hours * *budget.power_per_gpu_W * 1e-6;
  else if (forecast.power)
    training.energy_MWh = forecast.power->cluster_W * training.time_s / 3600 * 1e-6;
  // g/kWh = kg/MWh, and 1e-3 converts kilograms to tonnes.
  if (budget.carbon_g_per_kWh && training.energy_MWh)
    training.co2_t = *training.energy_MWh * *budget.carbon_g_per_kWh * 1e-3;
  forecast.training = training;
  return Ok{};
}

namespace {

// The fraction of the step in which the GPU idles or only waits for a transfer between nodes, when it draws
// less power. Tensor-parallel groups are assumed to stay inside a node.
double waiting_share_of(const Forecast& f, bool several_nodes) {
  if (f.classes.empty() || f.critical().window_ms <= 0) return 0;
  const ForecastClass& c = f.critical();
  const double inside = time_ms(c.exposed_comm_by_group_ms, to_string(GroupKind::tensor));
  const double waiting = sum_ms(c.idle_ms) + (several_nodes ? c.exposed_comm_ms - inside : 0);
  return std::clamp(waiting / c.window_ms, 0.0, 1.0);
}

}  // namespace

void add_power(Forecast& forecast, const Platform& platform, std::optional<double> limit_W,
               const StepShares* shares) {
  const std::optional<NodePower> power = NodePower::of(platform);
  if (!power || forecast.n_gpus == 0) return;
  const auto n_gpus = static_cast<double>(forecast.n_gpus);
  const double in_node = platform.node.gpus_per_node;
  const bool several_nodes = n_gpus > in_node;
  ForecastPower out{.waiting_share = shares != nullptr ? shares->waiting_share(several_nodes)
                                                       : waiting_share_of(forecast, several_nodes),
                    .limit_W = limit_W};
  out.gpu_W = power->gpu_watts(out.waiting_share, limit_W);
  out.node_W = power->node_watts(std::min(n_gpus, in_node), out.waiting_share, limit_W);
  out.node_p10_W = out.node_W * std::exp(-power->log_band);
  out.node_p90_W = out.node_W * std::exp(power->log_band);
  out.cluster_W = power->cluster_watts(n_gpus, in_node, out.waiting_share, limit_W);
  if (const std::optional<double>& tokens = forecast.throughput.tokens_per_s; tokens && *tokens > 0)
    out.joules_per_token = out.cluster_W / *tokens;
  forecast.power = out;
}

}  // namespace stepcast
