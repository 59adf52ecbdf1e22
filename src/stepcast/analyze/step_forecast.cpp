#include "stepcast/analyze/step_forecast.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/analyze/body_profiles.h"
#include "stepcast/analyze/flat_program.h"
#include "stepcast/analyze/steady_rounds.h"
#include "stepcast/analyze/step_analysis.h"
#include "stepcast/analyze/task_times.h"
#include "stepcast/base/recent.h"
#include "stepcast/base/units.h"
#include "stepcast/predict/price_program.h"
#include "stepcast/workload/network.h"

namespace stepcast {
namespace {

// The work of a step, and the peak of the GPU.
ForecastThroughput work_of_step(const StepPrediction& step, const Layout& layout, const Transformer& model) {
  ForecastThroughput work;
  work.samples_per_step = static_cast<double>(layout.batch.global_batch_sequences);
  // Samples of such networks have two lengths (pairs of texts), so tokens do not measure the work.
  if (!model.network) work.tokens_per_step = step.tokens_per_step;
  work.sample = sample_name(model.network.get());
  work.model_flops = step.model_flops;
  work.hardware_flops = step.hardware_flops;
  if (step.peak) work.peak_tflops_per_gpu = step.peak->value() * 1e-12;
  return work;
}

// The contention on shared links between nodes. Nothing if no links are shared.
std::optional<ForecastNetwork> network_of(const StepForecastInput& input, const PricedStep& parts) {
  const NetworkUse& use = parts.network;
  const std::optional<Network>& network = input.platform.node.network;
  if (use.sweeps == 0 || !network || network->tiers.empty()) return std::nullopt;
  ForecastNetwork out{.background_load = input.steps.assumptions().background_load,
                      .sweeps = use.sweeps,
                      .residual = use.residual};
  for (std::size_t i = 0; i < network->tiers.size(); ++i)
    out.tiers.push_back({network->tiers[i].nodes, network->tiers[i].oversubscription, use.tier_loads[i]});
  for (int k = 0; k < kGroupKindCount; ++k) {
    const auto kind = static_cast<GroupKind>(k);
    if (group_of(kind, parts.placement).n_nodes < 2) continue;
    const auto at = static_cast<std::size_t>(k);
    out.kinds.push_back({std::string{to_string(kind)}, use.alone[at], use.slowdown[at]});
  }
  return out;
}

}  // namespace

// Times are in microseconds already; only names and types change.
std::vector<ForecastItemList> explained_items(const std::vector<ExplainedList>& lists) {
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

ForecastCoverage forecast_coverage(const Coverage& coverage) {
  ForecastCoverage shares{.measured = coverage.gpu_share(EstimateSource::measured),
                          .fitted = coverage.gpu_share(EstimateSource::fitted),
                          .analytic = coverage.gpu_share(EstimateSource::analytic),
                          .assumed = coverage.gpu_share(EstimateSource::assumed),
                          .unmodelled = {}};
  for (const Coverage::Unmodelled& work : coverage.unmodelled)
    shares.unmodelled.push_back({.name = work.name, .n = work.tasks, .time_ms = work.time_us * 1e-3});
  return shares;
}

// At most 20 settings; the names are keys of the JSON.
std::vector<Setting> settings_of(const Layout& layout, const Transformer& model) {
  std::vector<Setting> settings;
  settings.reserve(20);
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
  if (!model.network || has_attention_kernels(*model.network))
    word("attention", to_string(layout.layer.attention));
  word("framework", to_string(layout.software.framework));
  if (!layout.software.date.empty()) word("framework_date", layout.software.date);
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
  out.stages.reserve(memory.stages.size());
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
                          .verdict = std::string{to_string(memory.verdict_of(s.total()))},
                          .allocated_GiB = gib(s.allocated()),
                          .reserved_GiB = gib(s.in_allocator())});
    if (memory.dropless) out.stages.back().worst_imbalance_GiB = gib(memory.dropless->totals[i]);
  }
  return out;
}

namespace {

// A note about the source of the host's times, if the GPU waits for an eager host for more than kWorthSaying
// of the step. Empty otherwise.
std::string note_of_host(const StepForecastInput& input, const PricedStep& parts,
                         const StepPrediction& summary) {
  constexpr double kWorthSaying = 0.02;  // fraction of the step
  if (summary.shares.host_us <= kWorthSaying * summary.step.time.value() || parts.operator_launches <= 1 ||
      input.layout.layer.operator_launches)
    return {};
  const std::vector<OverheadRecord>& hosts = *input.platform.overheads;
  const std::string_view from = hosts.empty() ? std::string_view{} : hosts.front().provenance.document;
  return fmt::format(
      "the GPU waits for the CPU, which takes {:.0f} us per kernel ({}). To measure this on a machine: "
      "`stepcast calibrate overheads`",
      parts.launch_us, from.empty() ? "host times of the platform" : from);
}

// The members of the forecast that do not follow from its times: the question, work, memory, notes. Error:
// the memory cannot be computed.
Result<Forecast> asked_of(const StepForecastInput& input, const PricedStep& parts,
                          const StepPrediction& summary, const StepForecastOptions& options) {
  if (options.shares != nullptr) *options.shares = summary.shares;
  Forecast asked;
  asked.kind = "transformer";
  asked.model = input.model.name;
  asked.parameters = static_cast<std::uint64_t>(parameter_count(input.model).total());
  asked.platform = input.platform.name;
  asked.gpu = input.platform.device.name;
  asked.n_gpus = static_cast<std::uint64_t>(summary.n_gpus);
  asked.layout = settings_of(input.layout, input.model);
  asked.throughput = work_of_step(summary, input.layout, input.model);
  // Replicas on other pools take more or fewer samples, and FLOPs and tokens change in proportion.
  asked.throughput.samples_per_step = *asked.throughput.samples_per_step * options.work_share;
  for (std::optional<double>* work :
       {&asked.throughput.tokens_per_step, &asked.throughput.model_flops, &asked.throughput.hardware_flops})
    if (*work) **work *= options.work_share;
  if (options.peak_tflops_per_gpu) asked.throughput.peak_tflops_per_gpu = options.peak_tflops_per_gpu;
  asked.network = network_of(input, parts);
  asked.notes = summary.notes;
  if (std::string host = note_of_host(input, parts, summary); !host.empty())
    asked.notes.push_back(std::move(host));
  STEPCAST_ASSIGN(const MemoryForecast memory,
                  memory_forecast(parts.work, input.model, input.layout, input.platform.device.memory_size));
  asked.memory = memory_of(memory);
  if (options.explained) {
    STEPCAST_ASSIGN(const std::vector<ExplainedList> lists,
                    explain(parts, input.steps.worker(parts).pricer()));
    asked.explained = explained_items(lists);
  }
  return asked;
}

// With only_critical, the analysis covers the critical stage alone.
AnalysisOptions analysis_options(const ForecastOptions& options, std::uint32_t critical_stage) {
  AnalysisOptions analysis{.collectives = options.collectives, .path_steps = options.path_steps, .only = {}};
  if (options.only_critical) analysis.only = RankClassId{std::size_t{critical_stage}};
  return analysis;
}

// Analyses a simulated step: all ranks start at 0 and have the whole step as their window.
StepAnalysis analysis_of(const PredictedStep& step, const FlatProgram& flat, const TaskTimes& times,
                         const SteadyRounds* rounds, const AnalysisOptions& options) {
  const std::vector<Interval> windows(flat.class_count(), Interval{0, step.timeline.end_us()});
  const std::vector<double> starts(flat.class_count(), 0.0);
  return analyse({.flat = flat,
                  .costs = step.prices.costs,
                  .times = times,
                  .windows = windows,
                  .rank_start_us = starts,
                  .path = {},
                  .rounds = rounds},
                 options);
}

// Prices a step like StepModel::price(), but into `parts` that may contain another step, to reuse its memory.
Status price(const StepForecastInput& input, PricedStep& parts) {
  parts.layers.clear();
  parts.embedding = parts.head = {};
  const Layout layout = with_software_choices(input.layout, input.platform.device);
  StepWorker worker = input.steps.worker();
  STEPCAST_TRY(worker.begin(input.model, layout, parts));
  return worker.finish(input.model, layout, parts);
}

// The profiles of the step's bodies; nothing if the step has none.
std::optional<BodyProfiles> bodies_of(const PredictedStep& step) {
  if (!step.bodies) return std::nullopt;
  return std::optional<BodyProfiles>{std::in_place, *step.bodies};
}

// The coverage of one round: by how often each block runs in it.
Coverage coverage_of_round(const PredictedStep& step) {
  std::vector<double> runs(step.program.blocks().size(), 0.0);
  for (std::size_t c = 0; c < step.rounds.of_class.size(); ++c) {
    const RankClass& ranks = step.program.rank_classes()[c];
    for (std::uint32_t i = step.rounds.of_class[c].begin; i < step.rounds.of_class[c].end; ++i)
      runs[ranks.instances[i].block.index()] += ranks.multiplicity;
  }
  return coverage_of(step.program, step.prices, runs, step.bodies ? &*step.bodies : nullptr);
}

// The forecast of a step that was simulated with all micro-batches.
Result<Forecast> forecast_of(const StepForecastInput& input, const PredictedStep& step,
                             const StepForecastOptions& options) {
  STEPCAST_ASSIGN(Forecast asked, asked_of(input, step.parts, step.summary, options));
  asked.coverage = forecast_coverage(step.prices.coverage);
  const std::uint32_t critical = step.summary.times.critical_stage;
  const std::optional<BodyProfiles> bodies = bodies_of(step);
  const FlatProgram flat{step.program, bodies ? &*bodies : nullptr};
  const StepAnalysis analysis = analysis_of(step, flat, TaskTimes::simulated(flat, step.timeline), nullptr,
                                            analysis_options(options.forecast, critical));
  return make_forecast(
      {.analysis = analysis, .step = step.summary.step, .critical = RankClassId{std::size_t{critical}}},
      std::move(asked), options.forecast);
}

}  // namespace

// The analysis of a short step, and the round of it that repeats.
struct ShortSteps::Known {
  bool repeats = false;  // the step has a steady state; the members below are valid only then
  bool all = false;      // no round is left out, so there is nothing to add
  double end_us = 0;     // end of the short step
  StepAnalysis analysis;
  Coverage coverage, round_coverage;
};

// Everything that the analysis depends on. The number of sequences in `layout` is ignored, and `parts` are
// those of the short step.
struct ShortSteps::Key {
  StepAssumptions assumptions;
  AnalysisOptions options;
  Layout layout;
  PricedStep parts;
};

struct ShortSteps::Impl {
  // The largest number of entries. Each takes up to half a megabyte.
  static constexpr std::size_t kMost = 48;
  Recent<Key, std::shared_ptr<const Known>> known{kMost};
  PricedStep parts;  // the current step; kept to reuse its memory
};

ShortSteps::ShortSteps() : impl_(std::make_unique<Impl>()) {}
ShortSteps::ShortSteps(ShortSteps&&) noexcept = default;
ShortSteps& ShortSteps::operator=(ShortSteps&&) noexcept = default;
ShortSteps::~ShortSteps() = default;
std::size_t ShortSteps::size() const { return impl_->known.size(); }

Result<std::shared_ptr<const ShortSteps::Known>> ShortSteps::of(PricedStep& parts, const Layout& layout,
                                                                const StepModel& steps,
                                                                std::uint32_t micro_batches,
                                                                const AnalysisOptions& options) {
  const StepAssumptions& assumptions = steps.assumptions();
  const std::uint32_t all = parts.schedule.shape.micro_batches;
  const auto set_micro_batches = [&](PricedStep& step, std::uint32_t n) {
    step.work.micro_batches = step.schedule.shape.micro_batches = n;
  };
  set_micro_batches(parts, micro_batches);
  // The only member that may differ is overwritten before the comparison.
  const std::shared_ptr<const Known>* known = impl_->known.find_if([&](Key& key) {
    key.layout.batch.global_batch_sequences = layout.batch.global_batch_sequences;
    return key.options == options && key.assumptions == assumptions && key.layout == layout &&
           key.parts == parts;
  });
  set_micro_batches(parts, all);
  if (known != nullptr) return *known;
  STEPCAST_ASSIGN(const PredictedStep step, predict_short_step(parts, layout, steps, micro_batches));
  auto made = std::make_shared<Known>();
  made->all = step.rounds.of_class.empty();
  if (!made->all) {
    const std::optional<BodyProfiles> bodies = bodies_of(step);
    const FlatProgram flat{step.program, bodies ? &*bodies : nullptr};
    const TaskTimes times = TaskTimes::simulated(flat, step.timeline);
    if (const std::optional<SteadyRounds> rounds = steady_rounds(step, flat, times, !options.only)) {
      made->repeats = true;
      made->end_us = step.timeline.end_us();
      made->analysis = analysis_of(step, flat, times, &*rounds, options);
      made->coverage = step.prices.coverage;
      made->round_coverage = coverage_of_round(step);
    }
  }
  Key key{assumptions, options, layout, parts};
  set_micro_batches(key.parts, micro_batches);
  return impl_->known.add(std::move(key), std::move(made));
}

Result<std::optional<Estimate>> step_time(const StepForecastInput& input) {
  PricedStep parts;
  STEPCAST_TRY(price(input, parts));
  // step_forecast() would fail if it had to simulate more micro-batches than this in full.
  if (parts.schedule.shape.micro_batches > kMostMicroBatchesWrittenOut) return std::optional<Estimate>{};
  STEPCAST_TRY(memory_forecast(parts.work, input.model, input.layout, input.platform.device.memory_size));
  return std::optional{input.steps.predict(parts, input.layout).step};
}

Result<Forecast> step_forecast(const StepForecastInput& input, const PredictedStep& step,
                               const StepForecastOptions& options) {
  return forecast_of(input, step, options);
}

Result<Forecast> step_forecast(const Transformer& model, const Layout& layout, const Platform& platform,
                               const StepModel& steps, const StepForecastOptions& options) {
  ShortSteps none;
  return step_forecast({model, layout, platform, steps}, none, options);
}

Result<Forecast> step_forecast(const StepForecastInput& input, ShortSteps& known,
                               const StepForecastOptions& options) {
  const StepModel& steps = input.steps;
  if (options.pools.size() > 1) {
    STEPCAST_ASSIGN(const PredictedStep step, predict_step(input.model, input.layout, options.pools));
    return forecast_of(input, step, options);
  }
  PricedStep& parts = known.impl_->parts;
  STEPCAST_TRY(price(input, parts));
  const PipelineShape shape = parts.schedule.shape;
  // Longer and longer short steps are tried until one has a steady state or the whole step is short enough.
  for (int doubled = 0; !options.forecast.path_steps; ++doubled) {
    const std::uint32_t few = short_step_micro_batches(shape, doubled);
    if (few == shape.micro_batches) break;
    const StepPrediction summary = steps.predict(parts, input.layout);
    const RankClassId critical{std::size_t{summary.times.critical_stage}};
    STEPCAST_ASSIGN(const std::shared_ptr<const ShortSteps::Known> step,
                    known.of(parts, input.layout, steps, few,
                             analysis_options(options.forecast, summary.times.critical_stage)));
    if (step->all) break;
    if (!step->repeats) continue;
    const double rounds = rounds_left_out(shape, few);
    STEPCAST_ASSIGN(Forecast asked, asked_of(input, parts, summary, options));
    Coverage coverage = step->coverage;
    coverage.add(step->round_coverage, rounds);
    asked.coverage = forecast_coverage(coverage);
    return make_forecast({.analysis = step->analysis,
                          .step = summary.step,
                          .critical = critical,
                          .rounds = rounds,
                          .left_out_us = summary.times.step_us - step->end_us},
                         std::move(asked), options.forecast);
  }
  // No steady state was found, or all steps of the path are listed: simulate everything.
  STEPCAST_ASSIGN(const PredictedStep step,
                  predict_short_step(std::move(parts), input.layout, steps, shape.micro_batches,
                                     !options.forecast.path_steps));
  parts = {};
  return forecast_of(input, step, options);
}

}  // namespace stepcast
