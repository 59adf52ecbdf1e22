#include "calibrate/overhead_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "stepcast/base/statistics.h"
#include "stepcast/operation/overhead_name.h"
#include "stepcast/platform/host_spread_kind.h"

#include "calibrate/job_speeds.h"

namespace stepcast {
namespace {

// Rounds to a tenth of a nanosecond, the resolution of the finest traces, so that files contain no meaningless digits.
double stored(double us) { return std::round(us * 1e4) / 1e4; }

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// How much the mean depends on values far beyond the others. `sorted` ascends.
double mean_of_outliers(const std::vector<double>& sorted) {
  const Fences fences = outlier_fences(sorted);
  std::vector<double> inside;
  for (const double us : sorted)
    if (us >= fences.low_us && us <= fences.high_us) inside.push_back(us);
  return mean(sorted) - mean(inside);
}

using Key = std::pair<OverheadType, std::string>;

OverheadRecord record_of(const Key& key, const std::vector<OverheadSample>& samples,
                         const OverheadFitOptions& options) {
  std::vector<double> times;
  double events = 0;
  for (const OverheadSample& sample : samples) {
    times.push_back(std::max(0.0, sample.duration_us - options.profiler_cost_us * sample.profiler_events));
    events += sample.profiler_events;
  }
  std::ranges::sort(times);
  OverheadRecord record{.type = key.first, .op = key.second, .n = times.size()};
  record.mean_us = stored(mean(times));
  double squares = 0;
  for (const double us : times) squares += (us - record.mean_us) * (us - record.mean_us);
  record.std_us = stored(std::sqrt(squares / static_cast<double>(times.size())));
  record.p10_us = stored(quantile(times, 0.1));
  record.p50_us = stored(quantile(times, 0.5));
  record.p90_us = stored(quantile(times, 0.9));
  record.outlier_us = stored(mean_of_outliers(times));
  if (options.profiler_cost_us == 0 && !options.published_rules)
    record.profiler_events = stored(events / static_cast<double>(times.size()));
  return record;
}

OpLaunches launches_of(const std::map<std::vector<std::string>, std::uint64_t>& sequences, bool longest) {
  OpLaunches op;
  std::uint64_t most = 0;
  double calls = 0;
  for (const auto& [sequence, n] : sequences) {
    op.n += n;
    calls += static_cast<double>(n) * static_cast<double>(sequence.size());
    if (longest ? sequence.size() > op.calls.size() : n > most) {
      most = n;
      op.calls = sequence;
    }
  }
  op.mean_calls = stored(calls / static_cast<double>(op.n));
  return op;
}

}  // namespace

OverheadFit fit_overheads(const OverheadSamples& samples, const OverheadFitOptions& options) {
  OverheadFit fit;
  std::map<Key, std::vector<OverheadSample>> pooled;
  for (const auto& [key, of_op] : samples.of) {
    fit.records.push_back(record_of(key, of_op, options));
    for (const OverheadSample& sample : of_op) {
      fit.sum_us += sample.duration_us;
      fit.profiler_cost_us += std::min(sample.duration_us, options.profiler_cost_us * sample.profiler_events);
    }
    const auto& [type, op] = key;
    if (op.starts_with('(') || options.published_rules) continue;
    std::vector<std::string_view> names{overhead_family(type, op), {}};
    if (names_both_sides(op)) names.push_back(overhead_name(less_special(op)));
    for (const std::string_view name : names) {
      std::vector<OverheadSample>& pool = pooled[{type, std::string{name}}];
      pool.insert(pool.end(), of_op.begin(), of_op.end());
    }
  }
  for (const auto& [key, pool] : pooled) fit.records.push_back(record_of(key, pool, options));
  std::ranges::sort(fit.records, [](const OverheadRecord& a, const OverheadRecord& b) {
    return std::pair{a.type, a.op} < std::pair{b.type, b.op};
  });
  for (const auto& [op, sequences] : samples.launches)
    fit.launches.emplace(op, launches_of(sequences, options.published_rules));
  return fit;
}

namespace {

// `speed`: divisor of the times of each job; empty: unchanged times.
OverheadSamples pooled(std::span<const OverheadSamples> jobs, std::span<const double> speed) {
  OverheadSamples pool;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    OverheadSamples job = jobs[j];
    if (!speed.empty()) job.multiply(1 / speed[j]);
    pool.add(job);
  }
  return pool;
}

// With two jobs it is unknown which one is unusual.
constexpr std::size_t kLeastLevelled = 3;

std::vector<double> levels(std::span<const OverheadSamples> jobs, const OverheadFitOptions& options) {
  return options.levels_jobs && jobs.size() >= kLeastLevelled ? job_speeds(jobs) : std::vector<double>{};
}

// The host time of a job by `host`, summed over operators. Data loaders are left out, because their time is an input.
double host_time_us(const OverheadSamples& job, const HostOverheads* host) {
  double us = 0;
  for (const auto& [key, samples] : job.of) {
    if (is_in_data_loader(key.second)) continue;
    if (host != nullptr) {
      us += static_cast<double>(samples.size()) * host->time(key.first, key.second).mean_us;
      continue;
    }
    for (const OverheadSample& sample : samples) us += sample.duration_us;
  }
  return us;
}

// More jobs than this hardly change the band.
constexpr std::size_t kMostLeftOut = 16;

double band_of(std::span<const OverheadSamples> jobs, const OverheadFitOptions& options) {
  std::vector<double> left_out_us, recorded_us;
  for (std::size_t j = 0; j < std::min(jobs.size(), kMostLeftOut); ++j) {
    std::vector<OverheadSamples> others;
    for (std::size_t o = 0; o < jobs.size(); ++o)
      if (o != j) others.push_back(jobs[o]);
    const HostOverheads host = fit_overheads(pooled(others, levels(others, options))).host();
    left_out_us.push_back(host_time_us(jobs[j], &host));
    recorded_us.push_back(host_time_us(jobs[j], nullptr));
  }
  return job_band(left_out_us, recorded_us);
}

}  // namespace

OverheadFit fit_overheads(std::span<const OverheadSamples> jobs, const OverheadFitOptions& options) {
  if (jobs.size() == 1) return fit_overheads(jobs.front(), options);
  std::vector<double> speed = levels(jobs, options);
  OverheadFit fit = fit_overheads(pooled(jobs, speed), options);
  fit.jobs = jobs.size();
  fit.job_speed = std::move(speed);
  fit.band = band_of(jobs, options);
  return fit;
}

void OverheadFit::write_to(Platform& platform, const Provenance& provenance) const {
  for (OverheadRecord record : records) {
    record.provenance = provenance;
    platform.set(std::move(record));
  }
  const auto set_model = [&](std::string_view kind, JsonValue parameters) {
    ModelRecord model;
    model.name = model.kind = kind;
    model.parameters = std::move(parameters);
    model.provenance = provenance;
    platform.set(std::move(model));
  };
  if (!launches.empty()) set_model(kHostLaunchesKind, write_launches(launches));
  set_model(kHostSpreadKind,
            write_host_band(band, jobs));  // replaces the band that the platform has from other jobs
}

HostOverheads OverheadFit::host() const {
  Platform holder;
  write_to(holder, {});
  return HostOverheads::of(holder).value();  // written by write_launches(), so that it can be read
}

}  // namespace stepcast
