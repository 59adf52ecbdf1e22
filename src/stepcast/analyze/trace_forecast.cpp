#include "stepcast/analyze/trace_forecast.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/analyze/step_forecast.h"

namespace stepcast {
namespace {

std::vector<Setting> settings_of(const TracePredictionOptions& options) {
  std::vector<Setting> settings;
  settings.push_back({"kernels", std::string{to_string(options.kernels)}});
  settings.push_back({"host", std::string{to_string(options.host)}});
  if (options.recorded_on != nullptr) settings.push_back({"recorded_on", options.recorded_on->name});
  if (options.assumptions.host_factor != 1)
    settings.push_back({"host_factor", options.assumptions.host_factor});
  const WorkChange& change = options.change;
  if (change.batch) settings.push_back({"batch_per_rank", static_cast<double>(change.batch->wanted)});
  if (change.dtype != DType::unknown) settings.push_back({"dtype", std::string{to_string(change.dtype)}});
  if (change.data_parallel_ranks > 0)
    settings.push_back({"data_parallel_ranks", static_cast<double>(change.data_parallel_ranks)});
  if (options.overlap != OverlapChange::as_recorded)
    settings.push_back({"overlap", std::string{to_string(options.overlap)}});
  if (options.recompute != RecomputedPart::none)
    settings.push_back({"recompute", std::string{to_string(options.recompute)}});
  if (options.bucket_mb > 0) settings.push_back({"bucket_size_MiB", options.bucket_mb});
  if (options.links != nullptr) settings.push_back({"links", options.links->name});
  for (const RankPlatform& one : options.rank_platforms)
    settings.push_back({"rank_" + std::to_string(one.rank), one.platform->name});
  if (options.median_ranks) settings.push_back({"median_ranks", true});
  return settings;
}

}  // namespace

Forecast trace_forecast(const TraceForecastInput& input, const FlatProgram& flat, const TaskTimes& times,
                        const ForecastOptions& options) {
  const TracePrediction& p = input.prediction;
  const RecordedProgram& recorded = p.recorded;
  std::vector<Interval> steps;
  double measured_us = 0;
  for (const ReplayedRank& rank : p.ranks) {
    steps.push_back(rank.simulated_step);
    measured_us = std::max(measured_us, rank.step.measured_us);
  }
  Forecast asked;
  asked.kind = "trace";
  asked.traces = input.traces;
  if (!recorded.facts.empty() && recorded.facts.front().step_number >= 0)
    asked.step = recorded.facts.front().step_number;
  if (input.options.platform != nullptr) {
    asked.platform = input.options.platform->name;
    asked.gpu = input.options.platform->device.name;
  } else if (!recorded.files.empty() && !recorded.files.front().device.empty()) {
    asked.gpu = recorded.files.front().device;
  }
  asked.n_gpus = recorded.facts.size();
  asked.layout = settings_of(input.options);
  asked.throughput.samples_per_step = input.samples_per_step;
  asked.throughput.tokens_per_step = input.tokens_per_step;
  asked.coverage = forecast_coverage(p.coverage);
  if (measured_us > 0) {
    // Without a "-0.0".
    const double change = std::round(1e3 * (p.step.time.value() / measured_us - 1)) / 10;
    asked.notes.push_back(fmt::format("recorded step {:.3f} ms; predicted {:+.1f} %", measured_us * 1e-3,
                                      change == 0 ? 0.0 : change));
  }
  asked.notes.insert(asked.notes.end(), p.notes.begin(), p.notes.end());
  asked.notes.insert(asked.notes.end(), recorded.notes.begin(), recorded.notes.end());
  return make_forecast({.flat = flat,
                        .costs = p.costs,
                        .times = times,
                        .windows = steps,
                        .rank_start_us = recorded.start_offset_us,
                        .path = to_end_of_step(recorded, flat, steps)},
                       p.step, std::move(asked), options);
}

}  // namespace stepcast
