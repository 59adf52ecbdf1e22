#include "stepcast/analyze/make_forecast.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/analyze/baseline.h"
#include "stepcast/analyze/binding.h"
#include "stepcast/analyze/breakdown.h"
#include "stepcast/analyze/collectives.h"
#include "stepcast/base/parallel.h"
#include "stepcast/base/stop.h"
#include "stepcast/base/units.h"
#include "stepcast/operation/operation.h"
#include "stepcast/run/recovery.h"

namespace stepcast {
namespace {

constexpr std::string_view kUnknownGroup = "unknown";

constexpr IdleCause kGpuCauses[] = {IdleCause::cpu,      IdleCause::other_stream,  IdleCause::other_rank,
                                    IdleCause::pipeline, IdleCause::between_steps, IdleCause::rest};
constexpr IdleCause kCpuCauses[] = {IdleCause::gpu, IdleCause::other_thread, IdleCause::rest};

NamedTimes by_class(const ClassTimes& times_us) {
  NamedTimes times;
  for (std::size_t k = 0; k < times_us.size(); ++k) {
    if (times_us[k] <= 0) continue;
    times.push_back({std::string{to_string(static_cast<KernelClass>(k))}, times_us[k] * kMsPerUs});
  }
  return times;
}

NamedTimes by_cause(const IdleTime& idle, std::span<const IdleCause> causes) {
  NamedTimes times;
  for (const IdleCause cause : causes) {
    times.push_back({std::string{to_string(cause)}, idle.of(cause) * kMsPerUs});
  }
  return times;
}

std::string_view group_label(const Program& program, std::size_t group_plus_one) {
  return group_plus_one == 0 ? kUnknownGroup : std::string_view{program.groups()[group_plus_one - 1].label};
}

// Groups with one label are one row: the data-parallel groups of several stages.
NamedTimes by_group(const Program& program, std::span<const double> times_us) {
  NamedTimes times;
  for (std::size_t g = 0; g < times_us.size(); ++g) {
    if (times_us[g] <= 0) continue;
    const std::string_view label = group_label(program, g);
    const auto same =
        std::find_if(times.begin(), times.end(), [&](const NamedTime& t) { return t.key == label; });
    if (same != times.end()) {
      same->time_ms += times_us[g] * kMsPerUs;
    } else {
      times.push_back({std::string{label}, times_us[g] * kMsPerUs});
    }
  }
  return times;
}

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
  const auto add = [&](const char* key, double us) { stream.parts_ms.push_back({key, us * kMsPerUs}); };
  add("embedding", of(KernelClass::embedding));
  add("gemm", of(KernelClass::gemm));
  add("attention", of(KernelClass::attention));
  add("memory", of(KernelClass::memory) + s.memcpy_us);
  add("other", std::max(0.0, s.computation_us - named));
  add("communication_transfer", s.transfer_us);
  add("communication_waiting", waiting);
  add("idle", std::max(0.0, s.idle.total_us() - waiting));
  return stream;
}

ForecastThread thread_of(const ThreadBreakdown& t) {
  ForecastThread thread{.name = t.name,
                        .busy_ms = t.busy_us * kMsPerUs,
                        .idle_ms = by_cause(t.idle, kCpuCauses),
                        .busy_by_op_ms = {}};
  for (const OpTime& op : t.busy_by_op) thread.busy_by_op_ms.push_back({op.name, op.time_us * kMsPerUs});
  return thread;
}

ForecastClass class_of(const ForecastInput& input, const RankBreakdown& b) {
  const Program& program = input.flat.program();
  const RankClass& rank_class = program.rank_class(b.rank_class);
  const std::vector<double> starts(input.rank_start_us.begin(), input.rank_start_us.end());
  const double first = starts.empty() ? 0 : *std::min_element(starts.begin(), starts.end());
  ForecastClass c;
  c.name = rank_class.name;
  if (rank_class.recorded_rank >= 0) c.rank = rank_class.recorded_rank;
  c.n_ranks = rank_class.multiplicity;
  c.window_ms = b.window.length_us() * kMsPerUs;
  c.start_offset_ms = (starts.empty() ? 0 : starts[b.rank_class.index()] - first) * kMsPerUs;
  c.computation_ms = b.computation_us * kMsPerUs;
  c.computation_by_class_ms = by_class(b.class_us);
  c.exposed_comm_ms = b.exposed_comm_us * kMsPerUs;
  c.exposed_comm_by_group_ms = by_group(program, b.exposed_by_group_us);
  c.exposed_memcpy_ms = b.exposed_memcpy_us * kMsPerUs;
  c.idle_ms = by_cause(b.idle, kGpuCauses);
  c.gpu_active_ms = b.gpu_active_us * kMsPerUs;
  c.transfer_ms = b.transfer_us * kMsPerUs;
  c.overlap_ms = b.overlap_us * kMsPerUs;
  c.collective_wait_ms = b.collective_wait_us * kMsPerUs;
  c.kernels_ms = by_class(b.kernels_us);
  const LeftOutRounds& left_out = input.rounds != nullptr ? input.rounds->left_out : LeftOutRounds{};
  c.baseline_ms = stream_baseline(program, input.costs, b.rank_class, left_out).time_us * kMsPerUs;
  for (const StreamBreakdown& s : b.streams) {
    // A described rank has the streams of every layout; of a recorded one each had work.
    if (s.tasks > 0 || c.rank) c.streams.push_back(stream_of(s));
  }
  for (const ThreadBreakdown& t : b.threads) c.threads.push_back(thread_of(t));
  return c;
}

std::string_view name_of(const Program& program, const CollectiveOccurrence& occurrence) {
  const std::string_view name = program.names.text(occurrence.name);
  return name.empty() ? to_string(occurrence.op) : name;
}

// An occurrence of a collective, or the same in a later round of the pipeline.
struct Meeting {
  const CollectiveOccurrence* of = nullptr;
  double later_us = 0, start_us = 0;
  std::uint32_t ordinal = 0;
};

ForecastCollective collective_of(const FlatProgram& flat, const Meeting& meeting) {
  const CollectiveOccurrence& o = *meeting.of;
  const Program& program = flat.program();
  ForecastCollective c;
  c.name = name_of(program, o);
  c.ordinal = meeting.ordinal;
  c.operation = to_string(o.op);
  const CollectiveArrival& any = o.members.front();
  const CollectiveWork* work = program.works.collective(flat.info(any.rank_class, any.task).work);
  c.group = work != nullptr && work->group.valid() ? program.groups()[work->group.index()].label
                                                   : std::string{kUnknownGroup};
  if (o.message_bytes >= 0) c.message_bytes = o.message_bytes;
  c.came_last = o.members[o.last].rank_class.index();
  c.transfer_us = o.transfer_us;
  c.total_wait_us = o.total_wait_us;
  c.longest_wait_us = o.longest_wait_us;
  for (const CollectiveArrival& m : o.members) {
    c.members.push_back({.rank_class = m.rank_class.index(),
                         .arrival_us = m.arrival_us + meeting.later_us,
                         .wait_us = m.wait_us,
                         .transfer_us = m.transfer_us,
                         .exposed_us = m.exposed_us});
  }
  return c;
}

// In the order of their first arrivals, in all rounds.
std::vector<Meeting> meetings_of(const ForecastInput& input,
                                 const std::vector<CollectiveOccurrence>& occurrences) {
  std::vector<Meeting> all;
  all.reserve(occurrences.size());
  for (const CollectiveOccurrence& o : occurrences) {
    SteadyRounds::Copies copies;
    if (input.rounds != nullptr) {
      const CollectiveMember& root = input.flat.program().collectives()[o.collective.index()].members.front();
      copies = input.rounds->copies_of(root.rank_class, root.instance);
    }
    for (std::uint64_t copy = copies.first; copy <= copies.last; ++copy) {
      const double later_us = copy == 0 ? 0 : static_cast<double>(copy) * input.rounds->period_us;
      all.push_back({&o, later_us, o.start_us() + later_us, 0});
    }
  }
  if (input.rounds != nullptr) {
    std::stable_sort(all.begin(), all.end(),
                     [](const Meeting& a, const Meeting& b) { return a.start_us < b.start_us; });
  }
  std::map<std::string_view, std::uint32_t> seen;
  for (Meeting& meeting : all) meeting.ordinal = seen[name_of(input.flat.program(), *meeting.of)]++;
  return all;
}

void add_collectives(const ForecastInput& input, const ForecastOptions& options, Forecast& forecast) {
  const std::vector<CollectiveOccurrence> occurrences = collective_occurrences(input.flat, input.times);
  const std::vector<Meeting> all = meetings_of(input, occurrences);
  forecast.n_collectives = all.size();
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].of->members.empty()) shown.push_back(i);
  }
  if (options.collectives != 0 && shown.size() > options.collectives) {
    const auto middle = shown.begin() + static_cast<std::ptrdiff_t>(options.collectives);
    const auto cost = [&](std::size_t i) { return all[i].of->total_wait_us + all[i].of->transfer_us; };
    std::nth_element(shown.begin(), middle, shown.end(), [&](std::size_t a, std::size_t b) {
      return cost(a) != cost(b) ? cost(a) > cost(b) : a < b;
    });
    shown.erase(middle, shown.end());
    std::sort(shown.begin(), shown.end());
  }
  for (const std::size_t i : shown) {
    forecast.collectives.push_back(collective_of(input.flat, all[i]));
  }
}

std::vector<ForecastShare> shares_of(std::vector<PathShare> list, std::size_t most) {
  std::vector<ForecastShare> shares;
  for (PathShare& share : list) {
    if (most != 0 && shares.size() == most) break;
    shares.push_back({std::move(share.what), share.time_us * kMsPerUs, share.steps});
  }
  return shares;
}

void add_path(const ForecastInput& input, const ForecastOptions& options, Forecast& forecast) {
  const SteadyRounds* rounds = input.rounds;
  CriticalPath own;
  if (rounds == nullptr) {
    own = critical_path(input.flat, input.times, input.costs, input.rank_start_us, input.path);
  }
  const CriticalPath& path = rounds != nullptr ? rounds->path : own;
  ForecastPath& out = forecast.critical_path;
  out.length_ms = (path.time.length_us() + (rounds != nullptr ? rounds->left_out_us() : 0)) * kMsPerUs;
  if (path.last_rank.valid()) out.ends_on = path.last_rank.index();
  out.n_steps = path.steps.size();
  if (rounds != nullptr) {
    out.n_steps += static_cast<std::uint64_t>(rounds->left_out.count) * rounds->round_of_path.steps.size();
  }
  const auto shares = [&](const auto& by, std::size_t most) {
    std::vector<PathShare> list = by(input.flat, path);
    if (rounds != nullptr) {
      list = with_rounds(std::move(list), by(input.flat, rounds->round_of_path), rounds->left_out.count);
    }
    return shares_of(std::move(list), most);
  };
  out.by_class = shares(path_by_class, 0);
  out.by_rank = shares(path_by_rank, 0);
  out.by_name = shares(path_by_name, options.path_names);
  if (!options.path_steps) return;
  for (const PathStep& step : path.steps) {
    out.steps.push_back({.rank_class = step.rank_class.index(),
                         .what = path_step_name(input.flat, step),
                         .start_ms = step.time.start_us * kMsPerUs,
                         .time_ms = step.time.length_us() * kMsPerUs});
  }
}

// FLOPs of every task that is a known Operation, on all ranks.
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

void add_throughput(const Program& program, Forecast& forecast) {
  ForecastThroughput& t = forecast.throughput;
  if (!t.hardware_flops) {
    const double flops = flops_of(program);
    if (flops > 0) t.hardware_flops = flops;
  }
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

// The last to end, of several the busiest.
std::uint32_t critical_class(std::span<const Interval> windows, const std::vector<RankBreakdown>& ranks) {
  std::size_t critical = 0;
  for (std::size_t c = 1; c < ranks.size(); ++c) {
    const double later = windows[c].end_us - windows[critical].end_us;
    const bool busier = ranks[c].gpu_active_us > ranks[critical].gpu_active_us;
    if (later > kTimeToleranceUs || (later > -kTimeToleranceUs && busier)) critical = c;
  }
  return static_cast<std::uint32_t>(critical);
}

}  // namespace

Forecast make_forecast(const ForecastInput& input, Forecast asked, const ForecastOptions& options) {
  const Program& program = input.flat.program();
  Forecast forecast = std::move(asked);
  std::vector<RankBreakdown> ranks;
  // Two parts that need nothing of each other. They are short: nobody stops one of them.
  const StopScope to_the_end{std::stop_token{}};
  const std::optional<RankClassId> only = options.only_critical ? input.critical : std::nullopt;
  const Status done = parallel_for(only ? 1 : 2, input.flat.threads(), [&](std::size_t part) -> Status {
    if (part == 0) {
      const auto broken_down = [&](std::span<const Interval> windows) {
        return break_down(input.flat, input.times, input.costs, windows, input.rank_start_us, only);
      };
      ranks = broken_down(input.windows);
      if (input.rounds != nullptr) {
        const std::vector<RankBreakdown> round = broken_down(input.rounds->windows);
        for (std::size_t i = 0; i < ranks.size(); ++i) {
          add_rounds(*input.rounds, program, round[i], ranks[i]);
        }
      }
      for (const RankBreakdown& rank : ranks) forecast.classes.push_back(class_of(input, rank));
    } else {
      add_collectives(input, options, forecast);
      add_path(input, options, forecast);
    }
    return Ok{};
  });
  static_cast<void>(done);  // nothing above fails
  if (!only) {
    forecast.critical_class = input.critical ? input.critical->index() : critical_class(input.windows, ranks);
  }
  if (forecast.n_gpus == 0) forecast.n_gpus = program.rank_count();
  if (input.step) {
    forecast.step_time_ms = input.step->time.value() * kMsPerUs;
    forecast.step_time_p10_ms = input.step->p10.value() * kMsPerUs;
    forecast.step_time_p90_ms = input.step->p90.value() * kMsPerUs;
    forecast.source = input.step->source;
  } else {
    double longest_us = 0;
    for (const Interval& window : input.windows) longest_us = std::max(longest_us, window.length_us());
    forecast.step_time_ms = forecast.step_time_p10_ms = forecast.step_time_p90_ms = longest_us * kMsPerUs;
    forecast.source = EstimateSource::measured;
  }
  add_throughput(program, forecast);
  return forecast;
}

Status add_training(Forecast& forecast, const TrainingBudget& budget, const RunJob* job) {
  if (!budget.asked()) return Ok{};
  const int amounts = (budget.samples ? 1 : 0) + (budget.tokens ? 1 : 0) + (budget.iterations ? 1 : 0);
  if (amounts > 1) {
    return Error{"a training has one length"}
        .found(fmt::format("{} of samples, tokens and iterations", amounts))
        .expected("one of them");
  }
  ForecastTraining training;
  training.samples = budget.samples;
  training.tokens = budget.tokens;
  const auto per_step = [&](std::string_view what, double amount,
                            const std::optional<double>& of_step) -> Result<double> {
    if (of_step && *of_step > 0) return amount / *of_step;
    return Error{fmt::format("{} to train on are given, but not how many a step takes", what)}.advice(
        fmt::format("say so (--{}-per-step), or how many steps (--train-iterations)", what));
  };
  if (budget.iterations) {
    training.iterations = *budget.iterations;
  } else if (budget.samples) {
    STEPCAST_ASSIGN(training.iterations,
                    per_step("samples", *budget.samples, forecast.throughput.samples_per_step));
  } else {
    STEPCAST_ASSIGN(training.iterations,
                    per_step("tokens", *budget.tokens, forecast.throughput.tokens_per_step));
  }
  const auto of_steps = [&](double step_ms) { return training.iterations * step_ms * 1e-3; };
  training.time_s = of_steps(forecast.step_time_ms);
  auto gpus = static_cast<double>(forecast.n_gpus);
  if (!budget.failures.empty()) {
    if (job == nullptr) return Error{"interruptions are those of a described step"};
    STEPCAST_ASSIGN(const RunAssumptions how, read_run_assumptions(budget.failures, budget.recovery));
    STEPCAST_ASSIGN(training.run, forecast_run(how, *job,
                                               {.s = training.time_s,
                                                .p10_s = of_steps(forecast.step_time_p10_ms),
                                                .p90_s = of_steps(forecast.step_time_p90_ms)}));
    training.time_s = training.run->days * 86400;
    gpus = training.run->held_gpus;
  }
  training.gpu_hours = training.time_s / 3600 * gpus;
  if (budget.price_per_gpu_hour) training.price = training.gpu_hours * *budget.price_per_gpu_hour;
  if (budget.power_per_gpu_W)
    training.energy_MWh = training.gpu_hours * *budget.power_per_gpu_W * 1e-6;
  else if (forecast.power)
    training.energy_MWh = forecast.power->cluster_W * training.time_s / 3600 * 1e-6;
  // Grams per kilowatt-hour are kilograms per megawatt-hour.
  if (budget.carbon_g_per_kWh && training.energy_MWh)
    training.co2_t = *training.energy_MWh * *budget.carbon_g_per_kWh * 1e-3;
  forecast.training = training;
  return Ok{};
}

}  // namespace stepcast
