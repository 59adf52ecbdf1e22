#include "stepcast/analyze/step_forecast.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/base/units.h"
#include "stepcast/predict/step_explanation.h"

namespace stepcast {
namespace {

ForecastThroughput work_of_step(const StepPrediction& step, const Layout& layout) {
  ForecastThroughput work;
  work.samples_per_step = static_cast<double>(layout.batch.global_batch_sequences);
  work.tokens_per_step = step.tokens_per_step;
  work.model_flops = step.model_flops;
  work.hardware_flops = step.hardware_flops;
  if (step.peak) work.peak_tflops_per_gpu = step.peak->value() * 1e-12;
  return work;
}

// Nothing where no links are shared.
std::optional<ForecastNetwork> network_of(const StepForecastInput& input) {
  const NetworkUse& use = input.step.parts.network;
  const std::optional<Network>& network = input.platform.node.network;
  if (use.sweeps == 0 || !network || network->tiers.empty()) return std::nullopt;
  ForecastNetwork out{.background_load = input.prices.assumptions().background_load,
                      .sweeps = use.sweeps,
                      .residual = use.residual};
  for (std::size_t i = 0; i < network->tiers.size(); ++i) {
    out.tiers.push_back({network->tiers[i].nodes, network->tiers[i].oversubscription, use.tier_loads[i]});
  }
  for (int k = 0; k < kGroupKindCount; ++k) {
    const auto kind = static_cast<GroupKind>(k);
    if (group_of(kind, input.step.parts.placement).n_nodes < 2) continue;
    const auto at = static_cast<std::size_t>(k);
    out.kinds.push_back({std::string{to_string(kind)}, use.alone[at], use.slowdown[at]});
  }
  return out;
}

std::vector<ForecastItemList> explained(const std::vector<ExplainedList>& lists) {
  std::vector<ForecastItemList> all;
  for (const ExplainedList& list : lists) {
    ForecastItemList& out = all.emplace_back();
    out.name = list.title;
    out.gpu_us = list.gpu_us;
    out.host_us = list.host_us;
    for (const ExplainedItem& item : list.items) {
      out.items.push_back({.name = item.name,
                           .what = item.what,
                           .n = static_cast<double>(item.count),
                           .start_us = item.start_us,
                           .time_us = item.duration_us,
                           .alone_us = item.alone.time.value(),
                           .alone_p10_us = item.alone.p10.value(),
                           .alone_p90_us = item.alone.p90.value(),
                           .hidden_us = item.hidden_us,
                           .exposed_us = item.exposed_us,
                           .flops = item.flops,
                           .bytes = item.bytes,
                           .overlapped = item.beside,
                           .source = item.alone.source,
                           .record = item.record});
    }
  }
  return all;
}

}  // namespace

ForecastCoverage forecast_coverage(const Coverage& coverage) {
  ForecastCoverage shares{.measured = coverage.gpu_share(EstimateSource::measured),
                          .fitted = coverage.gpu_share(EstimateSource::fitted),
                          .analytic = coverage.gpu_share(EstimateSource::analytic),
                          .assumed = coverage.gpu_share(EstimateSource::assumed),
                          .unmodelled = {}};
  for (const Coverage::Unmodelled& work : coverage.unmodelled) {
    shares.unmodelled.push_back({.name = work.name, .n = work.tasks, .time_ms = work.time_us * 1e-3});
  }
  return shares;
}

std::vector<Setting> settings_of(const Layout& layout) {
  std::vector<Setting> settings;
  const auto number = [&](const char* name, std::int64_t value) {
    settings.push_back({name, static_cast<double>(value)});
  };
  const auto word = [&](const char* name, std::string_view value) {
    settings.push_back({name, std::string{value}});
  };
  const auto truth = [&](const char* name, bool value) { settings.push_back({name, value}); };
  number("tensor_parallel", layout.degrees.tensor);
  number("pipeline_parallel", layout.degrees.pipeline);
  number("virtual_stages", layout.degrees.virtual_stages);
  number("context_parallel", layout.degrees.context);
  number("expert_parallel", layout.degrees.expert);
  number("data_parallel", layout.degrees.data);
  word("pipeline_schedule", to_string(layout.pipeline.schedule));
  word("sharding", to_string(layout.sharding.kind));
  truth("sequence_parallel", layout.layer.sequence_parallel);
  number("micro_batch_sequences", layout.batch.micro_batch_sequences);
  number("global_batch_sequences", layout.batch.global_batch_sequences);
  number("seq_len_tokens", layout.batch.seq_len_tokens);
  word("dtype", to_string(layout.layer.precision.compute));
  word("recompute", to_string(layout.layer.recompute.kind));
  truth("overlap_gradient_reduce", layout.sharding.overlap_gradient_reduce);
  truth("overlap_parameter_gather", layout.sharding.overlap_parameter_gather);
  truth("overlap_tensor_parallel", layout.layer.overlap.tensor_parallel);
  word("attention", to_string(layout.layer.attention));
  word("framework", to_string(layout.software.framework));
  return settings;
}

ForecastMemory memory_of(const MemoryForecast& memory) {
  const auto gib = [](Bytes bytes) { return bytes.value() / kGiB; };
  ForecastMemory out;
  out.verdict = to_string(memory.verdict);
  out.peak_memory_GiB = gib(memory.peak());
  out.available_GiB = gib(memory.available);
  out.margin_GiB = gib(memory.margin());
  out.worst_stage = memory.worst_stage;
  if (memory.dropless) {
    out.worst_imbalance = memory.dropless->worst_imbalance;
    out.fits_to_imbalance = memory.dropless->fits_to_imbalance;
  }
  for (std::size_t i = 0; i < memory.stages.size(); ++i) {
    const StageMemory& s = memory.stages[i];
    out.stages.push_back({.weights_GiB = gib(s.weights),
                          .gradients_GiB = gib(s.gradients),
                          .optimizer_GiB = gib(s.optimizer),
                          .activations_GiB = gib(s.activations),
                          .working_GiB = gib(s.working),
                          .communication_GiB = gib(s.communication),
                          .reserve_GiB = gib(s.context + s.reserve),
                          .total_GiB = gib(s.total()),
                          .dispatched_GiB = gib(s.dispatched),
                          .verdict = std::string{to_string(memory.verdict_of(s.total()))}});
    if (memory.dropless) out.stages.back().worst_imbalance_GiB = gib(memory.dropless->totals[i]);
  }
  return out;
}

namespace {

// `rounds`: of a step that leaves some out; the others are whole.
Result<Forecast> forecast_of(const StepForecastInput& input, const StepForecastOptions& options,
                             const FlatProgram& flat, const TaskTimes& times, const SteadyRounds* rounds) {
  const PredictedStep& step = input.step;
  Forecast asked;
  asked.kind = "transformer";
  asked.model = input.model.name;
  asked.parameters = static_cast<std::uint64_t>(parameter_count(input.model).total());
  asked.platform = input.platform.name;
  asked.gpu = input.platform.device.name;
  asked.n_gpus = static_cast<std::uint64_t>(step.summary.n_gpus);
  asked.layout = settings_of(input.layout);
  asked.coverage = forecast_coverage(step.prices.coverage);
  asked.throughput = work_of_step(step.summary, input.layout);
  asked.throughput.samples_per_step = *asked.throughput.samples_per_step * options.work_share;
  for (std::optional<double>* work :
       {&asked.throughput.tokens_per_step, &asked.throughput.model_flops, &asked.throughput.hardware_flops})
    if (*work) **work *= options.work_share;
  if (options.peak_tflops_per_gpu) asked.throughput.peak_tflops_per_gpu = options.peak_tflops_per_gpu;
  asked.network = network_of(input);
  asked.notes = step.summary.notes;
  STEPCAST_ASSIGN(const MemoryForecast memory, memory_forecast(step.parts.work, input.model, input.layout,
                                                               input.platform.device.memory_size));
  asked.memory = memory_of(memory);
  if (options.explained) {
    STEPCAST_ASSIGN(const std::vector<ExplainedList> lists, explain(step.parts, input.prices));
    asked.explained = explained(lists);
  }
  const std::vector<Interval> windows(flat.class_count(), Interval{0, step.timeline.end_us()});
  const std::vector<double> starts(flat.class_count(), 0.0);
  return make_forecast({.flat = flat,
                        .costs = step.prices.costs,
                        .times = times,
                        .windows = windows,
                        .rank_start_us = starts,
                        .step = step.summary.step,
                        .critical = RankClassId{std::size_t{step.summary.times.critical_stage}},
                        .rounds = rounds},
                       std::move(asked), options.forecast);
}

}  // namespace

Result<Forecast> step_forecast(const StepForecastInput& input, const StepForecastOptions& options) {
  const FlatProgram flat{input.step.program};
  return forecast_of(input, options, flat, TaskTimes::simulated(flat, input.step.timeline), nullptr);
}

Result<Forecast> step_forecast(const Transformer& model, const Layout& layout, const Platform& platform,
                               StepModel& steps, const StepForecastOptions& options) {
  const std::array whole{StagePool{static_cast<std::uint32_t>(layout.degrees.pipeline), &steps}};
  const std::span<const StagePool> pools = options.pools.empty() ? whole : options.pools;
  for (int doubled = 0;; ++doubled) {
    STEPCAST_ASSIGN(const PredictedStep step, options.forecast.path_steps
                                                  ? predict_step(model, layout, pools)
                                                  : predict_short_step(model, layout, pools, doubled));
    const StepForecastInput input{model, layout, platform, step, steps.pricer()};
    const FlatProgram flat{step.program};
    const TaskTimes times = TaskTimes::simulated(flat, step.timeline);
    if (step.rounds.of_class.empty()) return forecast_of(input, options, flat, times, nullptr);
    if (const std::optional<SteadyRounds> rounds =
            steady_rounds(step, flat, times, !options.forecast.only_critical)) {
      return forecast_of(input, options, flat, times, &*rounds);
    }
  }
}

}  // namespace stepcast
