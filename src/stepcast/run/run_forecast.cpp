#include "stepcast/run/run_forecast.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/run/goodput.h"
#include "stepcast/run/recovery.h"

namespace stepcast {
namespace {

// Storage bandwidth per GPU: 2 TB/s of the file system behind 16,384 GPUs.
constexpr double kStorageBytesPerS = 2e12 / 16384;
// Spread of failure rates between clusters, in ln: GPU-hours per interruption of published jobs differ by a factor of 8.
constexpr double kRateSpread = 0.6;
// GPUs per switch and per host of the published job, for rates of switches and hosts. Larger nodes (racks, slices) contain
// several hosts.
constexpr double kGpusPerSwitch = 16, kGpusPerHost = 8;
// The 90th percentile of the standard normal distribution.
constexpr double kNormalP90 = 1.2815515655446004;
// Jobs with a smaller share of kept training time are rejected.
constexpr double kLeastShare = 1e-3;

// Interruptions per second of the whole job by one cause, and the downtime of each.
struct CauseNow {
  double per_s = 0, down_s = 0;
};

// Number of units of the job that can fail by this cause.
double units_of(const FailureCause& cause, const RunJob& job) {
  const double gpus = job.n_gpus * cause.of_gpus;
  switch (cause.unit) {
    case FailureUnit::gpu: return gpus;
    case FailureUnit::node:
      return gpus / std::min(kGpusPerHost, cause.gpus_per_node > 0 ? cause.gpus_per_node : job.gpus_per_node);
    case FailureUnit::rack_switch: return gpus / kGpusPerSwitch;
  }
  return gpus;
}

// Rates and downtimes of all causes for this job. `reload_s`: time to read a checkpoint.
std::vector<CauseNow> causes_of(const RunAssumptions& a, const RunJob& job, double reload_s) {
  std::vector<CauseNow> now;
  for (const FailureCause& cause : a.failures.causes)
    now.push_back({units_of(cause, job) / (cause.mean_time_h * 3600),
                   cause.downtime_s.value_or(a.recovery.restart_s + reload_s)});
  return now;
}

// The goodput model for these causes. The restart chance is the mean of exp(-R / M) weighted by the rates.
CheckpointedJob job_under(const std::vector<CauseNow>& causes, const CheckpointTimes& checkpoint) {
  double rate = 0, restarted = 0;
  for (const CauseNow& cause : causes) rate += cause.per_s;
  if (!(rate > 0)) return {std::numeric_limits<double>::infinity(), checkpoint.stops_s, checkpoint.lag_s, 1};
  for (const CauseNow& cause : causes) restarted += cause.per_s / rate * std::exp(-cause.down_s * rate);
  return {1 / rate, checkpoint.stops_s, checkpoint.lag_s, restarted};
}

// Checkpoint interval in s: given, else that of the job, else the best one.
double interval_of(const Recovery& how, const RunJob& job, const CheckpointedJob& now) {
  if (how.interval_s) return *how.interval_s;
  if (job.save_interval > 0) return job.save_interval * job.step_s;
  return best_interval_s(now, std::max(job.step_s, now.lag_s));
}

// Checkpoint mode: given, else that of the job.
CheckpointMode mode_of(const Recovery& how, const RunJob& job) {
  return how.mode.value_or(job.saves_asynchronously ? CheckpointMode::async : CheckpointMode::sync);
}

// Time of one evaluation, in s.
double evaluation_s(const RunJob& job) {
  return job.evaluation_interval > 0 ? job.evaluation_batches * job.forward_s : 0;
}

// Adds the evaluations between the steps to the compute time.
ComputeTime with_evaluation(const RunJob& job, const ComputeTime& time) {
  const double s = evaluation_s(job);
  const double factor = s > 0 ? 1 + s / (job.evaluation_interval * job.step_s) : 1;
  return {time.s * factor, time.p10_s * factor, time.p90_s * factor};
}

// Share of the time, or of the replicas, that trains with the given spare nodes. The number of nodes in repair is Poisson
// distributed for any distribution of repair times (Palm 1943).
double capacity_of(const RunAssumptions& a, const RunJob& job, const std::vector<CauseNow>& causes) {
  const Recovery& how = a.recovery;
  if (!how.spare_nodes) return 1;
  double lost_per_s = 0;
  for (std::size_t i = 0; i < causes.size(); ++i)
    lost_per_s += causes[i].per_s * a.failures.causes[i].nodes_lost;
  const double mean = lost_per_s * how.repair_s, replica_gpus = job.n_gpus / job.replicas;
  const auto spares = static_cast<double>(*how.spare_nodes);
  // Sum over twelve standard deviations to either side. If even the fewest nodes in repair exceed the spares, nothing trains.
  const double least = std::max(0.0, std::floor(mean - 12 * std::sqrt(mean) - 40));
  const double most = mean + 12 * std::sqrt(mean) + 40;
  if (least > spares + (how.elastic ? job.replicas : 0)) return 0;
  double capacity = 0;
  for (double n = least; n <= most; ++n) {
    const double chance = mean > 0 ? std::exp(n * std::log(mean) - mean - std::lgamma(n + 1))
                          : n == 0 ? 1
                                   : 0;
    const double missing = std::max(0.0, n - spares);
    double left = missing > 0 ? 0 : 1;
    // A failed node belongs to one replica, or contains several whole ones.
    if (how.elastic) left = 1 - missing * std::max(1.0, job.gpus_per_node / replica_gpus) / job.replicas;
    capacity += chance * std::max(0.0, left);
  }
  return std::min(1.0, capacity);
}

// Goodput on `n_gpus` GPUs with the same work per GPU and the best interval.
double share_on(const RunAssumptions& a, RunJob job, double n_gpus) {
  job.writers *= n_gpus / job.n_gpus;
  job.n_gpus = n_gpus;
  const CheckpointTimes checkpoint = checkpoint_times(a.recovery, job);
  const CheckpointedJob now = job_under(causes_of(a, job, checkpoint.reload_s), checkpoint);
  return effective_share(now, interval_of(a.recovery, job, now));
}

// Adds the forecasts on other numbers of GPUs, and the number with the most training per day by ternary search.
void add_scale(const RunAssumptions& a, const RunJob& job, double days, RunForecast& out) {
  for (const double factor : {0.25, 0.5, 1.0, 2.0, 4.0, 8.0}) {
    const double n = job.n_gpus * factor;
    if (n < 1 || n != std::floor(n)) continue;
    const double share = share_on(a, job, n);
    if (share < kLeastShare) continue;
    out.scale.push_back({static_cast<std::uint64_t>(n), 100 * share, days / factor / share});
  }
  double low = 0, high = std::log(1e9);
  constexpr int kThirds = 80;
  const auto trained = [&](double ln) { return std::exp(ln) * share_on(a, job, std::exp(ln)); };
  for (int i = 0; i < kThirds; ++i) {
    const double left = low + (high - low) / 3, right = high - (high - low) / 3;
    (trained(left) < trained(right) ? low : high) = trained(left) < trained(right) ? left : right;
  }
  out.most_useful_gpus = std::exp(low);
}

// One random draw of rates and downtimes, within the uncertainty of the log or between clusters.
std::vector<CauseNow> drawn(const FailureRates& rates, const std::vector<CauseNow>& causes,
                            std::mt19937_64& random) {
  // Without a log, all rates share one factor; with a log, each rate has its Gamma posterior.
  std::normal_distribution<double> normal;
  std::vector<CauseNow> out = causes;
  // Downtimes of all causes share one error, because they share one log.
  const double down = normal(random);
  const double all = std::exp(kRateSpread * normal(random));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const FailureCause& cause = rates.causes[i];
    if (cause.downtime_s) out[i].down_s *= std::exp(cause.downtime_error * down);
    const double events = cause.events + cause.prior_events;
    out[i].per_s *= cause.gpu_hours > 0 ? std::gamma_distribution<double>{events, 1 / events}(random) : all;
  }
  return out;
}

// Samples of all draws.
struct Bands {
  std::vector<double> shares, seconds;
  std::vector<std::vector<double>> mean_times_s;  // [cause]
};

// Draws rates and chance for the bands. The interval is fixed: it is chosen before the true rates are known.
Bands draw_bands(const RunAssumptions& a, const std::vector<CauseNow>& causes,
                 const CheckpointTimes& checkpoint, double interval_s, double capacity,
                 const ComputeTime& time, std::size_t draws) {
  std::mt19937_64 random{1};
  std::normal_distribution<double> normal;
  Bands out;
  out.mean_times_s.resize(causes.size());
  for (std::size_t i = 0; i < draws; ++i) {
    const std::vector<CauseNow> now = drawn(a.failures, causes, random);
    const CheckpointedJob job = job_under(now, checkpoint);
    const double share = std::max(1e-6, effective_share(job, interval_s) * capacity);
    const double z = normal(random), chance = normal(random);
    const double step =
        time.s * std::pow((z > 0 ? time.p90_s : time.p10_s) / time.s, std::abs(z) / kNormalP90);
    double down_s = 0;
    for (std::size_t c = 0; c < now.size(); ++c) {
      out.mean_times_s[c].push_back(1 / now[c].per_s);
      down_s += now[c].per_s * job.mean_time_s * now[c].down_s;
    }
    // Every interruption costs its downtime and up to one whole interval.
    const double piece_s = interval_s + checkpoint.stops_s, all_s = step / share;
    const double lost_s = down_s + piece_s / 2 + checkpoint.lag_s;
    const double scatter =
        std::isinf(job.mean_time_s)
            ? 0
            : std::sqrt((lost_s * lost_s + piece_s * piece_s / 12) / (job.mean_time_s * all_s));
    out.shares.push_back(100 * share);
    out.seconds.push_back(std::max(step, all_s * (1 + chance * scatter)));
  }
  return out;
}

// Adds the losses of each cause. `again`: share of the time that is trained but not kept.
void add_losses(const FailureRates& rates, const std::vector<CauseNow>& causes, const CheckpointedJob& job,
                double capacity, double again, const Bands& bands, RunForecast& out) {
  const double seconds = out.days * 86400;
  for (std::size_t c = 0; c < causes.size(); ++c) {
    const double of_all = causes[c].per_s * job.mean_time_s;
    out.losses.push_back(
        {.cause = rates.causes[c].name,
         .interruptions = causes[c].per_s * seconds,
         .mean_time_h = 1 / causes[c].per_s / 3600,
         .mean_time_p10_h = quantile(bands.mean_times_s[c], 0.1) / 3600,
         .mean_time_p90_h = quantile(bands.mean_times_s[c], 0.9) / 3600,
         .down_percent = -100 * capacity * of_all * std::expm1(-causes[c].down_s / job.mean_time_s),
         .again_percent = 100 * capacity * of_all * again});
  }
}

}  // namespace

CheckpointTimes checkpoint_times(const Recovery& how, const RunJob& job) {
  const double storage = how.storage_GBps ? *how.storage_GBps * 1e9 : kStorageBytesPerS * job.n_gpus;
  const double stored_s = job.checkpoint_bytes / storage;
  const double of_rank = job.checkpoint_bytes / job.writers;
  const double to_host_s = of_rank / job.host_bytes_per_s, to_peer_s = of_rank / job.network_bytes_per_s;
  switch (mode_of(how, job)) {
    case CheckpointMode::sync: return {stored_s, 0, stored_s};
    case CheckpointMode::async: return {to_host_s, stored_s, stored_s};
    case CheckpointMode::memory: return {to_host_s, to_peer_s, to_peer_s};
  }
  return {};
}

std::vector<RegularStop> regular_stops(const Recovery& how, const RunJob& job, double checkpoint_interval_s) {
  std::vector<RegularStop> stops;
  if (evaluation_s(job) > 0) stops.push_back({"evaluation", job.evaluation_interval, evaluation_s(job)});
  const double every = checkpoint_interval_s > 0 ? checkpoint_interval_s / job.step_s : job.save_interval;
  if (every > 0) stops.push_back({"checkpoint", every, checkpoint_times(how, job).stops_s});
  return stops;
}

Result<RunForecast> forecast_run(const RunAssumptions& a, const RunJob& job, const ComputeTime& steps,
                                 std::size_t draws) {
  const ComputeTime time = with_evaluation(job, steps);
  const CheckpointTimes checkpoint = checkpoint_times(a.recovery, job);
  const std::vector<CauseNow> causes = causes_of(a, job, checkpoint.reload_s);
  const CheckpointedJob now = job_under(causes, checkpoint);
  const double interval_s = interval_of(a.recovery, job, now);
  // A new checkpoint must not start before the last one is safe.
  if (interval_s < checkpoint.lag_s)
    return Error::at("", "--recovery", "a checkpoint is due before the last one is safe")
        .found(fmt::format("interval={:g}s{}", interval_s,
                           a.recovery.interval_s ? "" : fmt::format(", {:g} steps", job.save_interval)))
        .expected(fmt::format("at least {:.0f}s, or faster storage", std::ceil(checkpoint.lag_s)));
  if (interval_s < job.step_s)
    return Error::at("", "--recovery", "checkpoints are between steps")
        .found(fmt::format("interval={:g}s", interval_s))
        .expected(fmt::format("at least a step: {:.3g}s", job.step_s));
  const double capacity = capacity_of(a, job, causes);
  const double share = effective_share(now, interval_s), held_share = share * capacity;
  if (!(held_share >= kLeastShare))
    return Error{"the run gets nowhere"}
        .found(fmt::format("an interruption every {:.3g} h, {:.2g} % of the time trained",
                           now.mean_time_s / 3600, 100 * held_share))
        .advice("restart faster, write checkpoints more often, keep spare nodes, or use fewer GPUs");
  RunForecast out;
  out.failures = a.failures.source;
  out.effective_share_percent = 100 * held_share;
  out.days_without_losses = time.s / 86400;
  out.days = out.days_without_losses / held_share;
  out.mean_time_to_interruption_h = now.mean_time_s / 3600;
  out.interruptions = out.days * 86400 / now.mean_time_s;
  out.checkpoint_mode = to_string(mode_of(a.recovery, job));
  out.checkpoint_GB = job.checkpoint_bytes * 1e-9;
  out.checkpoint_interval_min = interval_s / 60;
  out.checkpoint_stops_s = checkpoint.stops_s;
  out.checkpoint_safe_after_s = checkpoint.lag_s;
  out.checkpoint_percent = 100 * held_share * checkpoint.stops_s / interval_s;
  out.waiting_percent = 100 * (1 - capacity);
  out.held_gpus = job.n_gpus + static_cast<double>(a.recovery.spare_nodes.value_or(0)) * job.gpus_per_node;
  const Bands bands = draw_bands(a, causes, checkpoint, interval_s, capacity, time, draws);
  out.effective_share_p10_percent = quantile(bands.shares, 0.1);
  out.effective_share_p90_percent = quantile(bands.shares, 0.9);
  out.days_p10 = quantile(bands.seconds, 0.1) / 86400;
  out.days_p90 = quantile(bands.seconds, 0.9) / 86400;
  // Trained but not kept: pieces that were cut short, and checkpoints that were not safe yet.
  const double again = now.restart_chance - share * (1 + checkpoint.stops_s / interval_s);
  add_losses(a.failures, causes, now, capacity, std::max(0.0, again), bands, out);
  add_scale(a, job, out.days_without_losses, out);
  return out;
}

}  // namespace stepcast
