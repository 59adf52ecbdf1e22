// Predictions of described steps, and the caches of a session. predict() has two parts: lay_out() resolves the job,
// chooses an open layout and fixes the assumptions; forecast() prices the step and adds notes, memory, power and cost.
#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stepcast/analyze/critical_path.h"
#include "stepcast/analyze/make_forecast.h"
#include "stepcast/analyze/make_step_picture.h"
#include "stepcast/analyze/measured_check.h"
#include "stepcast/analyze/sensitivity.h"
#include "stepcast/analyze/step_forecast.h"
#include "stepcast/analyze/step_series.h"
#include "stepcast/api/detail/open_layout.h"
#include "stepcast/api/detail/session_impl.h"
#include "stepcast/api/detail/session_inputs.h"
#include "stepcast/api/stepcast.h"
#include "stepcast/base/duration_text.h"
#include "stepcast/base/output_file.h"
#include "stepcast/base/parallel.h"
#include "stepcast/base/stop.h"
#include "stepcast/base/text.h"
#include "stepcast/base/units.h"
#include "stepcast/describe/gpu_pools.h"
#include "stepcast/describe/ignored_settings.h"
#include "stepcast/formats/layout_choice.h"
#include "stepcast/formats/resolve_job.h"
#include "stepcast/plan/layout_flags.h"
#include "stepcast/plan/layout_plan.h"
#include "stepcast/plan/nearby_layouts.h"
#include "stepcast/plan/why_slower.h"
#include "stepcast/platform/changed_figures.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/predict/predicted_step.h"
#include "stepcast/predict/routine_job.h"
#include "stepcast/predict/step_model.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/report/chakra_export.h"
#include "stepcast/report/perfetto.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/trace/readers.h"
#include "stepcast/workload/framework_rule.h"
#include "stepcast/workload/memory.h"

namespace stepcast {

using detail::output_at;

namespace {

constexpr std::int64_t kUsualTensorParallel = 8;  // the usual maximum, even if a node is a rack of 72 GPUs
// Origin of a layout that the search of `plan` found.
constexpr const char* kOfPlan = "what `stepcast plan` chooses";

// Memory use of a layout, for notes.
std::string filling(const MemoryForecast& memory) {
  return fmt::format("{:.1f} of {:.1f} GiB", memory.peak().value() / kGiB, memory.available.value() / kGiB);
}

// The search space of usual layouts for a job on a platform.
LayoutSearch layouts_of(const Job& asked, const ResolvedJob& job, const Platform& platform) {
  Job with_gpus = asked;
  with_gpus.n_gpus = job.n_gpus.value_or(job.layout.world_size());
  const std::int64_t in_node = platform.node.gpus_per_node;
  return {std::move(with_gpus),
          {.memory = platform.device.memory_size, .gpus_per_node = std::min(in_node, kUsualTensorParallel)}};
}

// Whether the settings that an almost complete layout omits are simply off. True if the user gave the main
// degrees and batches and did not ask for a search.
bool is_taken_as_said(const PredictRequest& request) {
  if (request.open_layout != OpenLayout::usual || !leaves_part_open(request.job)) return false;
  JobSettings settings = request.job.settings;
  if (request.largest == LargestBatch::micro) settings.micro_batch_sequences = 1;  // it is treated as given
  return says_whole_layout(settings);
}

// Whether some part of the layout is searched.
bool searches_layout(const PredictRequest& request) {
  if (request.open_layout == OpenLayout::as_said || request.open_layout == OpenLayout::as_planned)
    return leaves_layout_open(request.job);
  return leaves_part_open(request.job) && !is_taken_as_said(request);
}

// The resolved job. If it fails because the GPUs do not divide the global batch, and the layout is searched,
// resolves it without the batch: other layouts than the default may fit the batch. `needs_layout` is then true.
Result<ResolvedJob> resolved_if_open(const PredictRequest& request, bool& needs_layout) {
  const Job& asked = request.job;
  Result<ResolvedJob> job = resolve(asked);
  if (job || !searches_layout(request) || !asked.settings.global_batch_sequences) return job;
  Job without = asked;
  without.settings.global_batch_sequences.reset();
  // Only if the job is valid without the batch can another layout help; else the first error is the right one.
  Result<ResolvedJob> usual = resolve(without);
  needs_layout = usual.ok();
  return usual ? std::move(usual) : std::move(job);
}

// Searches a layout: detail::planned_layout() with the platform and assumptions bound.
using Planned = std::function<std::optional<LayoutChoice>(const Job& asked, const ResolvedJob& usual)>;

// Adds the defaults to the settings and flags of a usual layout: a batch if none was given, and degrees of 1.
// The flags then reproduce the layout.
LayoutChoice spelled_out(LayoutChoice choice, const Job& asked, const Job& with_batch) {
  JobSettings& chosen = choice.settings;
  const JobSettings& said = asked.settings;
  std::string before;
  // Degrees of 1 are written out, because a command with only a batch would be searched again.
  if (!said.tensor && !chosen.tensor) before += "--tp 1 ";
  if (!said.pipeline && !chosen.pipeline) before += "--pp 1 ";
  if (!said.micro_batch_sequences) {
    chosen.micro_batch_sequences = choice.job.layout.batch.micro_batch_sequences;
    before += fmt::format("--mbs {} ", *chosen.micro_batch_sequences);
  }
  if (!said.global_batch_sequences)
    before += fmt::format("--gbs {} ", *with_batch.settings.global_batch_sequences);
  if (!said.tensor) chosen.tensor = chosen.tensor.value_or(1);
  if (!said.pipeline) chosen.pipeline = chosen.pipeline.value_or(1);
  chosen.global_batch_sequences = with_batch.settings.global_batch_sequences;
  choice.flags = before + choice.flags;
  if (choice.flags.ends_with(' ')) choice.flags.pop_back();
  return choice;
}

// Completes the layout of `job`: as `plan` would, or, if that fails or least memory is requested, the
// simplest usual layout that fits. `planned` runs the search of `plan`, given the usual layout.
// `chosen_settings` gets the settings that complete the layout. Returns the origin of the layout for display;
// empty if nothing was chosen.
std::string fill_in_layout(const PredictRequest& request, const Job& asked, const Platform& platform,
                           const Planned& planned, ResolvedJob& job, JobSettings* chosen_settings) {
  const bool nothing_said = leaves_layout_open(asked);
  Job with_batch = asked;
  UsualBatch batch;
  if (!asked.settings.global_batch_sequences) {
    // Without a global batch, a usual one is chosen for the model and the GPUs, and a note says which.
    const auto& micro_batch = asked.settings.micro_batch_sequences;
    batch = usual_batch(job.model, job.layout, platform.device.memory_size,
                        job.n_gpus.value_or(job.layout.world_size()),
                        micro_batch ? std::vector{*micro_batch} : std::vector<std::int64_t>{});
    with_batch.settings.global_batch_sequences = batch.sequences;
  }
  // The usual layout comes first: it is the fallback, and its number of GPUs is the input of the search.
  const LayoutSearch layouts = layouts_of(with_batch, job, platform);
  std::optional<LayoutChoice> chosen = layouts.usual();
  const char* why = chosen ? "the least that fits" : "no usual layout fits, this one needs least";
  if (!chosen) chosen = layouts.smallest();
  if (chosen) chosen = spelled_out(std::move(*chosen), asked, with_batch);
  if (request.open_layout != OpenLayout::least_memory) {
    if (std::optional<LayoutChoice> fastest = planned(asked, chosen ? chosen->job : job)) {
      chosen = std::move(fastest);
      why = kOfPlan;
    }
  }
  if (!chosen) {
    // The given settings contradict all layouts that are searched. The batch is still the usual one.
    Result<ResolvedJob> bare = resolve(with_batch);
    if (!bare || asked.settings.global_batch_sequences) return {};
    job = std::move(*bare);
    job.notes.push_back(std::move(batch.note));
    job.notes.emplace_back("no layout of the search has all given options: the others are off");
    return {};
  }
  *chosen_settings = chosen->settings;
  job = std::move(chosen->job);
  if (!asked.settings.global_batch_sequences) {
    std::erase_if(job.notes, [](const std::string& note) { return note.starts_with("global batch"); });
    job.notes.push_back(std::move(batch.note));
  }
  if (chosen->flags.empty()) return why;
  // Models with experts have an expected step above the forecast if the layout was searched, so repeating the
  // flags needs --layout as-planned for the same result.
  const bool has_factor = why == kOfPlan && job.model.moe;
  job.notes.push_back(fmt::format("{} not given: {}{} ({}, {} of memory)",
                                  nothing_said ? "layout" : "the rest of the layout", chosen->flags,
                                  has_factor ? " --layout as-planned" : "", why, filling(chosen->memory)));
  return why;
}

// The job with the largest micro-batch for which some layout fits. Each candidate is searched as if it were
// given. Doubling, then binary search, over all numbers or over the divisors of the global batch. Errors: no
// layout fits one sequence.
Result<Job> with_largest_micro_batch(const PredictRequest& request, const ResolvedJob& job,
                                     const Planned& planned, std::string& note) {
  constexpr std::int64_t kMostSequences = 65'536;  // search limit, far above real batches
  const std::optional<std::int64_t>& batch = request.job.settings.global_batch_sequences;
  const auto with = [&](std::int64_t sequences) {
    Job one = request.job;
    one.settings.micro_batch_sequences = sequences;
    return one;
  };
  const auto fits = [&](std::int64_t sequences) {
    const std::optional<LayoutChoice> found = planned(with(sequences), job);
    return found && found->memory.verdict != MemoryVerdict::does_not_fit;
  };
  std::vector<std::int64_t> tried;  // divisors of the global batch, ascending; empty without a batch
  for (std::int64_t n = 1; batch && n <= *batch; ++n)
    if (*batch % n == 0) tried.push_back(n);
  const std::int64_t most = batch ? static_cast<std::int64_t>(tried.size()) : kMostSequences;
  // The i-th candidate, from 1: a divisor of the batch, or the number itself.
  const auto nth = [&](std::int64_t i) { return batch ? tried[static_cast<std::size_t>(i - 1)] : i; };
  std::int64_t best = 0, next = most + 1;
  for (std::int64_t i = 1; i <= most && next > most; i = best < most ? std::min(most, 2 * i) : most + 1)
    (fits(nth(i)) ? best : next) = i;
  // Invariant: candidate `best` fits (0: none yet) and candidate `next` does not.
  while (next <= most && next > best + 1) {
    const std::int64_t middle = best + (next - best) / 2;
    (fits(nth(middle)) ? best : next) = middle;
  }
  if (best == 0)
    return Error{"no micro-batch fits"}.found("no layout that fits one sequence").advice("more GPUs");
  note = fmt::format("largest micro-batch with which a layout fits: {}{}", nth(best),
                     next <= most ? fmt::format("; none fits with {}", nth(next))
                     : batch      ? fmt::format("; larger ones do not divide {} sequences", *batch)
                                  : std::string{});
  return with(nth(best));
}

// Notes about offloading: the memory forecast counts it, the time forecast does not charge the host for it.
void note_offload(const Layout& layout, std::vector<std::string>& notes) {
  if (layout.optimizer.cpu_offload) {
    notes.emplace_back(
        "Optimizer on the CPU: update and copies are modelled one after the other, at an assumed host-memory "
        "bandwidth.");
  }
  if (layout.layer.offloaded != OffloadedModules{})
    notes.emplace_back("offloaded activations: their copies are assumed to overlap with computation");
  if (layout.sharding.parameter_offload) {
    notes.emplace_back(
        "weights on the CPU: their copies in every pass are assumed to overlap with computation. The step is "
        "a lower bound");
  }
}

// A note for GPUs without matrix units for the default type bf16, but with units for fp16.
void note_types(DType compute, const Device& device, std::vector<std::string>& notes) {
  if (compute == DType::fp32 || compute == DType::tf32 || device.peak(compute) || !device.peak(DType::fp16))
    return;
  notes.push_back(
      fmt::format("{} has no matrix units for {}: GEMMs run several times slower than in fp16. "
                  "Use --dtype fp16",
                  device.name, to_string(compute)));
}

// Description of the nearest layout that fits, with its forecast; nothing if none was found. Tries other
// layouts first, then more GPUs.
std::optional<std::string> nearest_that_fits(const Job& asked, const ResolvedJob& job,
                                             const Platform& platform, const StepModel& steps) {
  constexpr std::size_t kMost = 4;  // candidates to forecast until one can run on the platform
  const LayoutSearch layouts = layouts_of(asked, job, platform);
  // Flags, memory and time of a candidate; nothing if it cannot run on the platform.
  const auto described = [&](const LayoutChoice& choice) -> std::optional<std::string> {
    const Result<StepPrediction> step = steps.predict(choice.job.model, choice.job.layout);
    if (!step) return std::nullopt;
    return fmt::format("{} ({}, {})", choice.flags, filling(choice.memory),
                       duration_text(step->step.time.value() / 1e3));
  };
  for (const LayoutChoice& choice : layouts.nearest(kMost))
    if (std::optional<std::string> text = described(choice)) return text;
  const std::optional<LayoutChoice> larger = layouts.on_more_gpus();
  return larger ? described(*larger) : std::nullopt;
}

// Writes Chakra traces of the step, for each rank class or for each rank.
Status write_step_graphs(const PredictRequest& request, const Layout& layout, const PredictedStep& step,
                         const std::vector<std::filesystem::path>& inputs) {
  const FlatProgram flat{step.program};
  if (!request.chakra_per_rank) {
    STEPCAST_TRY(write_chakra(request.chakra, operation_graphs(flat, step.prices.costs), inputs));
    return Ok{};
  }
  STEPCAST_ASSIGN(const RankGroups groups, RankGroups::of(layout));
  STEPCAST_TRY(write_chakra_per_rank(request.chakra, flat, step.prices.costs, {},
                                     RankTable::of_layout(step.program, groups), inputs));
  return Ok{};
}

// Pictures for a report: the passes and the critical path.
StepPictures pictures_of(const PredictedStep& step) {
  const FlatProgram flat{step.program};
  const TaskTimes times = TaskTimes::simulated(flat, step.timeline);
  const std::vector<double> starts(flat.class_count(), 0.0);
  return {.passes = picture_of_passes(flat, times),
          .ranks = {},
          .path = picture_of_path(flat, critical_path(flat, times, step.prices.costs, starts))};
}

// Adds the growth of the step with one more micro-batch per rank. Adds nothing if the layout does not allow it.
void add_batch_sensitivity(const ResolvedJob& job, const StepModel& steps, Sensitivity& sensitive) {
  // One more micro-batch per rank at an unchanged micro-batch size.
  Layout more = job.layout;
  const std::int64_t now = more.micro_batches();
  more.batch.global_batch_sequences += more.batch.global_batch_sequences / std::max<std::int64_t>(1, now);
  const Result<StepPrediction> before = steps.predict(job.model, job.layout);
  const Result<StepPrediction> after = steps.predict(job.model, more);
  if (!before || !after || more.micro_batches() <= now) return;
  add_batch(sensitive, static_cast<double>(now), static_cast<double>(more.micro_batches()),
            before->step.time.value() * 1e-3, after->step.time.value() * 1e-3);
}

// GPUs per node if the request or the job's launcher gives them; nothing otherwise. On platforms with segmented nodes
// (a rack behind one switch) the launcher is ignored: it counts the GPUs of a host, and a node has several hosts.
std::optional<std::int64_t> node_size(const Job& asked, const ResolvedJob& job, const Platform& platform) {
  if (asked.gpus_per_node) return asked.gpus_per_node;
  return platform.node.segment ? std::nullopt : job.gpus_per_node;
}

// Errors: a background load outside 0 to 1, or on a platform without network tiers.
Status check_background(double load, const Platform& platform) {
  if (load == 0) return Ok{};
  if (!(load > 0) || load > 1) {
    return Error::at("", "--background-load")
        .found(fmt::format("{:g}", load))
        .expected(
            "0 to 1: load of the links between switches by other jobs, as a fraction of their bandwidth");
  }
  if (platform.node.network && !platform.node.network->tiers.empty()) return Ok{};
  return Error::at("", "--background-load")
      .found(fmt::format("{}, which does not describe the switches between its nodes", platform.name))
      .expected("a platform file with node.network.tiers")
      .advice("see docs/shared-clusters.md");
}

// Adds the cost of uneven expert load: the difference to a forecast with balanced tokens.
Status add_expert_load(const std::string& load, const ResolvedJob& job, const StepModel& steps,
                       Forecast& forecast) {
  Layout balanced = job.layout;
  balanced.layer.expert_imbalance = 1;
  STEPCAST_ASSIGN(const StepPrediction without, steps.predict(job.model, balanced));
  const double balanced_ms = without.step.time.value() / 1e3;
  forecast.expert_load = {.load = load,
                          .busiest_over_mean = kept_imbalance(job.layout.layer),
                          .balanced_step_ms = balanced_ms,
                          .cost_ms = forecast.step_time_ms - balanced_ms};
  return Ok{};
}

// A note if narrow GEMMs (fp8, fp4) make the step slower than 16 bits, with the reason.
Status note_slow_type(const ResolvedJob& job, const StepModel& steps, std::vector<std::string>& notes) {
  const std::optional<Layout> wide = with_wide_products(job.layout);
  if (!wide) return Ok{};
  STEPCAST_ASSIGN(const StepPrediction narrow_step, steps.predict(job.model, job.layout));
  STEPCAST_ASSIGN(const StepPrediction wide_step, steps.predict(job.model, *wide));
  if (auto why = why_slower(narrow_step, job.layout.layer.precision.compute, wide_step,
                            wide->layer.precision.compute))
    notes.push_back(std::move(*why));
  return Ok{};
}

// Notes on how the figures that a platform file changed affect the step. The first eight are forecast individually.
void note_changed_figures_of(const ResolvedJob& job, const Layout& layout, const StepModel& steps,
                             std::vector<std::string>& notes) {
  const Platform& platform = steps.platform();
  if (platform.changed.empty()) return;
  // Each of these notes needs a forecast.
  constexpr std::size_t kMostPriced = 8;
  const Result<StepPrediction> now = steps.predict(job.model, layout);
  for (std::size_t i = 0; i < platform.changed.size(); ++i) {
    const ChangedFigure& figure = platform.changed[i];
    std::optional<std::pair<double, double>> step_ms;
    if (now && i < kMostPriced) {
      const Platform before = without_change(platform, figure);
      if (const auto was = StepModel{before, steps.assumptions()}.predict(job.model, layout))
        step_ms = {now->step.time.value() * kMsPerUs, was->step.time.value() * kMsPerUs};
    }
    notes.push_back(changed_figure_note(platform, figure, step_ms));
  }
}

// Notes on skipped models of the platforms, number types, offloading and unmodelled settings. `pools`: one
// model for each pool.
void note_job(const ResolvedJob& job, std::span<const StepModel> pools, std::vector<std::string>& notes) {
  for (const StepModel& steps : pools) {
    StepWorker worker = steps.worker();
    for (const std::string& problem : worker.pricer().kernels().model().skipped(/*also_shipped=*/false))
      notes.push_back(fmt::format("left out of the platform: {}", problem));
    note_types(job.layout.layer.precision.compute, steps.platform().device, notes);
  }
  note_offload(job.layout, notes);
  for (const std::string& setting : job.not_modelled)
    notes.push_back(fmt::format("not modelled: {}", setting));
}

// The note for a step that exceeds the memory.
std::string note_no_fit(const Job& asked, const ResolvedJob& job, const Platform& platform,
                        const StepModel& steps) {
  const std::optional<std::string> nearest = nearest_that_fits(asked, job, platform, steps);
  return fmt::format("does not fit in the memory of {}; {}", platform.device.name,
                     nearest ? "nearest that fits: " + *nearest : "no layout that was tried fits");
}

// A request about one pool as a request about its platform. Errors: a price in both the budget and the zone,
// a search that only exists for several pools.
Result<PredictRequest> on_one_pool(PredictRequest request, const Cluster& cluster) {
  request.pools.clear();
  request.zones.clear();
  request.platform = cluster.pools.front().platform;
  request.job.n_gpus = cluster.n_gpus();
  if (cluster.pools.front().power_limit_W) request.power_limit_W = cluster.pools.front().power_limit_W;
  STEPCAST_ASSIGN(request.budget, detail::with_prices_of_zones(request.budget, cluster));
  if (request.pool_space != PoolSpace{})
    return Error{"pool_space is about several pools of GPUs"}.advice("plan_layouts() searches one platform");
  return request;
}

// The point of a series for this step.
ScalingPoint point_of_series(const ResolvedJob& job, const Platform& platform, const Forecast& forecast,
                             std::string layout_source) {
  return {.n_gpus = job.layout.world_size(),
          .global_batch = job.layout.batch.global_batch_sequences,
          .forecast = {},
          .bound_ms = forecast.step_time_ms * forecast.throughput.hfu.value_or(0),
          .layout = to_string(point_of(job.layout, platform.node.gpus_per_node)) +
                    (job.layout.optimizer.cpu_offload ? " optimizer-on-host" : ""),
          .micro_batch = job.layout.batch.micro_batch_sequences,
          .layout_source = std::move(layout_source)};
}

// Adds the expected step time to the forecast. For layouts that a search chose, it is the forecast with the
// factor of promise_prior().
void add_promise(const Transformer& model, LayoutOrigin origin, Forecast& forecast) {
  const Estimate step{Microseconds{forecast.step_time_ms}, Microseconds{forecast.step_time_p10_ms},
                      Microseconds{forecast.step_time_p90_ms}, forecast.source};
  const Estimate promise = promised(step, promise_prior(model.moe.has_value(), origin));
  forecast.promised_step_time_ms = promise.time.value();
  forecast.promised_step_time_p10_ms = promise.p10.value();
  forecast.promised_step_time_p90_ms = promise.p90.value();
}

// Adds a note about the factor between forecast and expected step time, if there is one for this kind of model.
void note_promise(const Transformer& model, LayoutOrigin origin, std::vector<std::string>& notes) {
  const double factor = promise_prior(model.moe.has_value(), LayoutOrigin::searched).median;
  if (factor == 1) return;
  notes.push_back(origin == LayoutOrigin::searched
                      ? fmt::format("expected step: the forecast x {:.2f}, the median of published runs with "
                                    "experts over forecasts of searched layouts",
                                    factor)
                      : fmt::format("expected step: the forecast, assuming a tuned layout. For a searched "
                                    "layout (--layout as-planned) it is the forecast x {:.2f}",
                                    factor));
}

// Adds the duration and cost of the whole training, if the budget asks for them.
Status add_run(const ResolvedJob& job, const TrainingBudget& budget, std::vector<RunPool> pools,
               const Layout& layout, const StepModel& steps, Forecast& forecast) {
  std::optional<RunJob> run_job;
  if (budget.asked()) {
    STEPCAST_ASSIGN(run_job,
                    routine_job(job.routine, job.model, layout, steps, forecast.promised_ms() * 1e-3));
    run_job->pools = std::move(pools);
  }
  return add_training(forecast, budget, run_job ? &*run_job : nullptr);
}

}  // namespace

Status PredictRequest::set_open_layout(std::string_view word) {
  constexpr std::pair<std::string_view, OpenLayout> kWords[] = {{"fastest", OpenLayout::fastest},
                                                                {"least-memory", OpenLayout::least_memory},
                                                                {"replanned", OpenLayout::replanned},
                                                                {"as-said", OpenLayout::as_said},
                                                                {"as-planned", OpenLayout::as_planned}};
  const auto found = std::ranges::find(kWords, word, &std::pair<std::string_view, OpenLayout>::first);
  if (found != std::end(kWords)) {
    open_layout = found->second;
    return Ok{};
  }
  return Error::at("", "--layout")
      .found(fmt::format("`{}`", word.substr(0, 40)))
      .expected("fastest, least-memory, replanned, as-said or as-planned");
}

// See the header. The limit catches global batches in tokens.
Status detail::check_micro_batches(const Layout& layout) {
  constexpr std::int64_t kMost = 65'536;
  if (layout.micro_batches() <= kMost) return Ok{};
  return Error{fmt::format("{} micro-batches per step", layout.micro_batches())}
      .expected(fmt::format("at most {}", kMost))
      .advice(
          "global_batch_sequences (--gbs) counts sequences, not tokens; or raise the micro-batch size or the "
          "GPUs");
}

Result<StepAssumptions> detail::assumptions_on(const Platform& platform, const PredictRequest& request,
                                               const std::vector<std::string>& what_if,
                                               std::optional<double> limit_W) {
  StepAssumptions assumptions;
  STEPCAST_TRY(apply_what_if(what_if, assumptions));
  STEPCAST_TRY(check_background(request.background_load, platform));
  if (limit_W) STEPCAST_TRY(apply_power_limit(platform, *limit_W, assumptions));
  assumptions.background_load = request.background_load;
  return assumptions;
}

// The widths add in quadrature, as for independent errors.
StepAssumptions detail::widened_for(std::size_t n_unpriced, StepAssumptions assumptions) {
  constexpr double kBandPerUnpricedSetting = 0.02;  // of the step, to either side
  const double more = kBandPerUnpricedSetting * std::sqrt(static_cast<double>(n_unpriced));
  assumptions.structure_low = std::hypot(assumptions.structure_low, more);
  assumptions.structure_high = std::hypot(assumptions.structure_high, more);
  return assumptions;
}

// The search runs without the lock. Two threads may search the same layout at the same time; both find the same.
std::optional<LayoutChoice> Session::Impl::planned_layout(LayoutQuestion question, const ResolvedJob& usual) {
  constexpr std::size_t kMostKept = 32;
  {
    const std::scoped_lock lock{mutex};
    if (const auto found = std::ranges::find(layouts, question, &decltype(layouts)::value_type::first);
        found != layouts.end())
      return found->second;
  }
  std::optional<LayoutChoice> found = detail::planned_layout(
      question.job, usual, *question.platform, question.assumptions, searched_steps(question.platform).get());
  if (is_stop_requested()) return found;  // incomplete, so it is not cached
  const std::scoped_lock lock{mutex};
  layouts.emplace_front(std::move(question), found);
  if (layouts.size() > kMostKept) layouts.pop_back();
  return found;
}

Session::Session() : impl_(std::make_unique<Impl>()) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<SearchedPlatform> Session::searched_platform(const std::string& name,
                                                    std::optional<std::int64_t> gpus_per_node,
                                                    std::int64_t n_gpus) const {
  STEPCAST_ASSIGN(const MeantPlatform meant, impl_->meant_platform(name, n_gpus));
  STEPCAST_ASSIGN(const Impl::Lease priced, impl_->lease(meant.name, gpus_per_node));
  return SearchedPlatform{meant.name, priced->platform, impl_->searched_steps(priced->platform)};
}

Result<Forecast> Session::predict(const PredictRequest& request) const { return predict(request, Extras{}); }

Result<CompletingSettings> Session::completing_settings(const PredictRequest& request) const {
  JobSettings chosen;
  const Result<Impl::LaidOut> step = impl_->lay_out(request, Extras{.chosen = &chosen});
  if (!step) return step.error();
  const bool has_factor = promise_prior(step->job.model.moe.has_value(), step->layout_origin).median != 1;
  return CompletingSettings{settings_beyond(request.job, std::move(chosen)),
                            has_factor ? OpenLayout::as_planned : OpenLayout::as_said};
}

Result<Forecast> Session::predict(const PredictTraceRequest& request) const {
  return predict(request, Extras{});
}

Result<Sensitive> Session::sensitivity(const PredictRequest& request) const {
  return detailed(request, false);
}
Result<Sensitive> Session::sensitivity(const PredictTraceRequest& request) const {
  return detailed(request, false);
}
Result<Report> Session::report(const PredictRequest& request) const { return detailed(request, true); }
Result<Report> Session::report(const PredictTraceRequest& request) const { return detailed(request, true); }

// Requests with further outputs or more expensive parts get nothing, see the header.
Result<std::optional<StepTime>> Session::step_time(const PredictRequest& request) const {
  if (!request.pools.empty() || request.job.settings.expert_load || request.budget.asked() ||
      request.explained || !request.timeline.empty() || !request.chakra.empty())
    return std::optional<StepTime>{};
  STEPCAST_ASSIGN(const Impl::LaidOut step, impl_->lay_out(request, Extras{}));
  STEPCAST_ASSIGN(const std::optional<Estimate> time,
                  stepcast::step_time({step.job.model, step.layout, step.platform(), step.steps}));
  if (!time) return std::optional<StepTime>{};
  return std::optional{
      StepTime{time->time.value() * kMsPerUs, time->p10.value() * kMsPerUs, time->p90.value() * kMsPerUs}};
}

Result<Session::Impl::LaidOut> Session::Impl::lay_out(const PredictRequest& request, const Extras& extras) {
  bool needs_layout = false;
  STEPCAST_ASSIGN(ResolvedJob job, resolved_if_open(request, needs_layout));
  std::vector<std::string> notes;
  STEPCAST_ASSIGN(const MeantPlatform meant,
                  meant_platform(request.platform, job.n_gpus.value_or(job.layout.world_size())));
  if (!meant.note.empty()) notes.push_back(meant.note);
  STEPCAST_ASSIGN(Lease priced, lease(meant.name, node_size(request.job, job, *meant.platform)));
  const Platform& platform = *priced->platform;
  STEPCAST_ASSIGN(
      std::optional<OutputFile> timeline,
      output_at(request.timeline, request.timeline.empty() ? std::vector<std::filesystem::path>{}
                                                           : detail::files_of(request.job, platform)));
  STEPCAST_ASSIGN(const StepAssumptions assumptions,
                  detail::assumptions_on(platform, request, request.what_if, request.power_limit_W));
  std::string layout_source;
  LargestBatch largest = request.largest;
  PredictRequest settled = request;
  // The layout is chosen without the what-ifs, for the unchanged machine, unless the request says `replanned`.
  if (searches_layout(request)) {
    STEPCAST_ASSIGN(const StepAssumptions as_it_is,
                    detail::assumptions_on(platform, request, {}, request.power_limit_W));
    const Planned planned = [&](const Job& asked, const ResolvedJob& usual) {
      return planned_layout({asked, usual.model, usual.layout, priced->platform,
                             request.open_layout == OpenLayout::replanned ? assumptions : as_it_is},
                            usual);
    };
    Job asked = request.job;
    std::string note;
    if (largest == LargestBatch::micro) {
      STEPCAST_ASSIGN(asked, with_largest_micro_batch(request, job, planned, note));
      largest = LargestBatch::none;
    }
    JobSettings chosen;
    layout_source = fill_in_layout(request, asked, platform, planned, job, &chosen);
    // Measured steps refer to the completed layout.
    if (!leaves_layout_open(request.job))
      settled.job.settings = over(asked.settings, settings_beyond(asked, chosen));
    if (extras.chosen != nullptr) *extras.chosen = std::move(chosen);
    if (!note.empty()) job.notes.push_back(std::move(note));
  }
  // The search found no layout for the given batch, so the error of the plain layout is returned.
  if (needs_layout && job.layout.batch.global_batch_sequences != *request.job.settings.global_batch_sequences)
    return resolve(request.job).error();
  // Logs also contain settings without effect.
  if (extras.job == nullptr) STEPCAST_TRY(refuse_ignored_settings(request.job.settings, job));
  STEPCAST_TRY(detail::take_largest_batch(largest, request.job.settings, platform.device.memory_size, job));
  STEPCAST_TRY(detail::check_micro_batches(job.layout));
  // anchor_on_measured() replaces `wanted`, so the model without an anchor is made before.
  StepAssumptions wanted = detail::widened_for(job.not_modelled.size(), assumptions);
  const StepModel unanchored = priced->steps.with(wanted);
  STEPCAST_ASSIGN(detail::OnMeasured measured,
                  detail::anchor_on_measured(settled, job, priced->steps, wanted));
  notes.insert(notes.end(), measured.notes.begin(), measured.notes.end());
  if (extras.measured_ms) {
    STEPCAST_ASSIGN(measured.check, check_measured(unanchored, job.model, job.layout, *extras.measured_ms));
  }
  const StepModel steps = priced->steps.with(wanted);
  Layout layout = job.layout;
  LaidOut step{std::move(job), std::move(layout), steps, {}};
  step.sites.push_back(std::move(priced));
  step.options.forecast.only_critical = request.only_critical;
  if (layout_source == kOfPlan || request.open_layout == OpenLayout::as_planned)
    step.layout_origin = LayoutOrigin::searched;
  step.layout_source = std::move(layout_source);
  if (is_taken_as_said(request))
    notes.emplace_back(
        "layout as given by --tp, --pp, --mbs and --gbs; other options are off. --layout fastest searches "
        "them");
  step.notes = std::move(notes);
  // The job or its launcher gave another node size.
  if (meant.platform->node.gpus_per_node != platform.node.gpus_per_node) {
    step.site_notes.push_back(fmt::format("nodes of {} GPUs as described, but {} has {}",
                                          platform.node.gpus_per_node, meant.name,
                                          meant.platform->node.gpus_per_node));
  }
  step.timeline = std::move(timeline);
  step.budget = request.budget;
  step.anchor = std::move(measured.anchor);
  step.measured_check = std::move(measured.check);
  return step;
}

Result<Forecast> Session::Impl::forecast(const PredictRequest& request, LaidOut step, const Extras& extras) {
  const ResolvedJob& job = step.job;
  const StepModel& steps = step.steps;
  // Options that only affect the output, not the time.
  step.options.explained = request.explained;
  step.options.forecast.collectives = request.collectives;
  step.options.forecast.path_steps = request.path_steps;
  // Filled by step_forecast(), for the power of the GPUs.
  StepShares shares;
  step.options.shares = &shares;
  STEPCAST_ASSIGN(Forecast forecast, step_forecast({job.model, step.layout, step.platform(), steps},
                                                   step.sites[step.base]->short_steps, step.options));
  forecast.anchor = std::move(step.anchor);
  forecast.measured_check = std::move(step.measured_check);
  // Notes appear in this order: platform and layout, anchor, job, node size, models, expected step, memory.
  std::vector<std::string>& notes = step.notes;
  if (!step.on_several_pools()) {
    note_changed_figures_of(job, step.layout, steps, notes);
    if (request.compares_types) STEPCAST_TRY(note_slow_type(job, steps, notes));
    if (const std::optional<std::string>& load = request.job.settings.expert_load)
      STEPCAST_TRY(add_expert_load(*load, job, steps, forecast));
  }
  if (!request.what_if.empty()) forecast.layout.push_back({"what_if", join(request.what_if)});
  if (forecast.anchor) notes.push_back(detail::anchor_text(*forecast.anchor));
  notes.insert(notes.end(), job.notes.begin(), job.notes.end());
  notes.insert(notes.end(), step.site_notes.begin(), step.site_notes.end());
  note_job(job,
           step.on_several_pools() ? std::span<const StepModel>{step.found.front().split.steps}
                                   : std::span<const StepModel>{&steps, 1},
           notes);
  notes.insert(notes.end(), forecast.notes.begin(), forecast.notes.end());
  forecast.notes.clear();
  if (step.on_several_pools()) {
    STEPCAST_TRY(add_pools(step, request, forecast));
  } else {
    add_power(forecast, step.platform(), request.power_limit_W, &shares);
  }
  add_promise(job.model, step.layout_origin, forecast);
  if (extras.job == nullptr) note_promise(job.model, step.layout_origin, notes);  // a log: not searched
  if (!forecast.fits())
    notes.push_back(step.on_several_pools() ? "does not fit in the memory of every pool"
                                            : note_no_fit(request.job, job, step.platform(), steps));
  forecast.notes = std::move(notes);
  STEPCAST_TRY(add_run(job, step.budget, std::move(step.run_pools), step.layout, steps, forecast));
  if (extras.job != nullptr) *extras.job = job;
  if (extras.point != nullptr)
    *extras.point = point_of_series(job, step.platform(), forecast, step.layout_source);
  // The simulated step is only made for outputs that need it.
  if (extras.sensitivity != nullptr || extras.pictures != nullptr || step.timeline ||
      !request.chakra.empty()) {
    STEPCAST_ASSIGN(const PredictedStep predicted,
                    step.options.pools.size() > 1 ? predict_step(job.model, step.layout, step.options.pools)
                                                  : predict_step(job.model, step.layout, steps));
    if (extras.sensitivity != nullptr) {
      STEPCAST_ASSIGN(*extras.sensitivity, step_sensitivity(predicted));
      if (!step.on_several_pools()) add_batch_sensitivity(job, steps, *extras.sensitivity);
    }
    if (extras.pictures != nullptr) *extras.pictures = pictures_of(predicted);
    if (step.timeline) STEPCAST_TRY(detail::write_step_timeline(*step.timeline, predicted, forecast));
    if (!request.chakra.empty())
      STEPCAST_TRY(
          write_step_graphs(request, step.layout, predicted, detail::files_of(request.job, step.platform())));
  }
  return forecast;
}

Result<Forecast> Session::predict(const PredictRequest& request, const Extras& extras) const {
  if (request.pools.empty()) {
    STEPCAST_ASSIGN(Impl::LaidOut step, impl_->lay_out(request, extras));
    return impl_->forecast(request, std::move(step), extras);
  }
  STEPCAST_ASSIGN(const Cluster cluster, parse_cluster(request.pools, request.zones));
  // A single pool is the same as its platform, so all features of one platform are available.
  if (cluster.pools.size() == 1) {
    STEPCAST_ASSIGN(const PredictRequest on_platform, on_one_pool(request, cluster));
    STEPCAST_ASSIGN(Impl::LaidOut step, impl_->lay_out(on_platform, extras));
    return impl_->forecast(on_platform, std::move(step), extras);
  }
  if (!request.measured.empty() || request.measured_steps != nullptr)
    return Error{"measured steps can only anchor a forecast on one platform"}.advice(
        "leave out --measured, or name one pool");
  STEPCAST_ASSIGN(Impl::LaidOut step, impl_->lay_out_on_pools(request, cluster));
  return impl_->forecast(request, std::move(step), extras);
}

}  // namespace stepcast
