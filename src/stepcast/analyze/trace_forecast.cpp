#include "stepcast/analyze/trace_forecast.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stepcast/analyze/replay_analysis.h"
#include "stepcast/analyze/step_forecast.h"
#include "stepcast/base/duration_text.h"
#include "stepcast/base/units.h"
#include "stepcast/retrace/trace_memory.h"
#include "stepcast/workload/memory.h"
#include "stepcast/workload/network.h"

namespace stepcast {
namespace {

// The changes that the prediction makes, as settings. What stays as recorded is left out.
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

CriticalPathOptions path_of_step(const TracePrediction& p, const FlatProgram& flat) {
  const std::vector<Interval> steps = p.step_windows();
  if (!p.settled || !p.settled->last) return to_end_of_step(p.recorded, flat, steps);
  const TaskRef& last = *p.settled->last;
  return {.to_rank = last.rank_class,
          .to_task = flat.flat(last),
          .from_us = steps[last.rank_class.index()].start_us};
}

Forecast trace_forecast(const TraceForecastInput& input, const FlatProgram& flat, const TaskTimes& times,
                        const ForecastOptions& options) {
  const TracePrediction& p = input.prediction;
  const RecordedProgram& recorded = p.recorded;
  const std::vector<Interval> steps = p.step_windows();
  double measured_us = 0;
  for (const ReplayedRank& rank : p.ranks) measured_us = std::max(measured_us, rank.step.measured_us);
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
  asked.n_gpus = recorded.program.rank_count();
  asked.layout = settings_of(input.options);
  asked.throughput.samples_per_step = input.samples_per_step;
  asked.throughput.tokens_per_step = input.tokens_per_step;
  asked.coverage = forecast_coverage(p.coverage);
  if (p.base.warning) asked.notes.push_back("warning: " + *p.base.warning);
  if (measured_us > 0) {
    // A change is compared with the prediction without it, not with the recorded step. Otherwise the error of
    // the replay would count as an effect of the change.
    const bool changed = !asks_as_recorded(input.options) && p.base.answered_us > 0;
    const double before_us = changed ? p.base.answered_us : measured_us;
    const double change = std::round(1e3 * (p.step.time.value() / before_us - 1)) / 10;
    std::string note = fmt::format("recorded step {}", duration_text(measured_us * 1e-3, 4));
    if (changed && std::fabs(p.base.error()) >= 0.0005)
      note += fmt::format(", {} predicted without a change", duration_text(before_us * 1e-3, 4));
    asked.notes.push_back(note + fmt::format("; predicted {:+.1f} %", change == 0 ? 0.0 : change));
  }
  asked.notes.insert(asked.notes.end(), p.notes.begin(), p.notes.end());
  // First notes on the prediction, then those on the recording.
  asked.notes.insert(asked.notes.end(), recorded.notes.begin(), recorded.notes.end());
  return make_forecast({.flat = flat,
                        .costs = p.costs,
                        .times = times,
                        .windows = steps,
                        .rank_start_us = recorded.start_offset_us,
                        .path = path_of_step(p, flat)},
                       p.step, std::move(asked), options);
}

Forecast log_forecast(const LoggedRun& run) {
  const LoggedTimes& times = run.times;
  Forecast f;
  f.kind = "log";
  f.traces = run.log.file;
  f.step_time_ms = times.median_ms;
  if (times.n > 1) {  // a single time has no spread
    f.step_time_p10_ms = times.p10_ms;
    f.step_time_p90_ms = times.p90_ms;
  }
  f.source = EstimateSource::measured;
  f.coverage.measured = 1;
  if (times.contradiction) f.notes.push_back(contradiction_text(*times.contradiction));
  if (run.job && !run.job->gpu.empty()) f.gpu = run.job->gpu;
  ForecastThroughput& t = f.throughput;
  if (run.resolved) {
    const ResolvedJob& job = *run.resolved;
    // Command-line arguments describe a model without a name.
    if (job.model.name != "model") f.model = job.model.name;
    f.parameters = static_cast<std::uint64_t>(parameter_count(job.model).total());
    f.n_gpus = static_cast<std::uint64_t>(job.n_gpus.value_or(job.layout.world_size()));
    f.layout = settings_of(job.layout, job.model);
    const Batch& batch = job.layout.batch;
    t.samples_per_step = static_cast<double>(batch.global_batch_sequences);
    t.sample = sample_name(job.model.network.get());
    if (!job.model.network)
      t.tokens_per_step = *t.samples_per_step * static_cast<double>(batch.seq_len_tokens);
  } else if (times.batch_sequences > 0) {
    t.samples_per_step = times.batch_sequences;
  }
  // Rates follow from the median step. Rates printed in the log are used only if the work per step is
  // unknown.
  const double seconds = times.median_ms * 1e-3;
  if (t.samples_per_step) t.samples_per_s = *t.samples_per_step / seconds;
  if (t.tokens_per_step) t.tokens_per_s = *t.tokens_per_step / seconds;
  if (t.tokens_per_s && f.n_gpus > 0)
    t.tokens_per_s_per_gpu = *t.tokens_per_s / static_cast<double>(f.n_gpus);
  else if (times.tokens_per_s_per_gpu > 0)
    t.tokens_per_s_per_gpu = times.tokens_per_s_per_gpu;
  if (times.tflops_per_gpu > 0) t.tflops_per_gpu = times.tflops_per_gpu;
  if (run.log.peak_memory_GiB > 0) {
    f.memory.emplace();
    f.memory->verdict = "fits";  // it ran
    f.memory->peak_memory_GiB = run.log.peak_memory_GiB;
  }
  return f;
}

namespace {

// Assumed: the memory that a CUDA context and the libraries take in addition to the tensors.
constexpr double kContextGiB = 1;

// The memory of a rank, from the tensors that its trace names. Only activations depend on the batch.
ForecastStageMemory memory_of(const TraceMemory& tensors, double batch_ratio) {
  ForecastStageMemory parts;
  parts.weights_GiB = tensors.persistent.value() / kGiB;
  parts.gradients_GiB = tensors.gradients.value() / kGiB;
  parts.activations_GiB = tensors.activations.value() * batch_ratio / kGiB;
  parts.reserve_GiB = kContextGiB;
  parts.total_GiB = tensors.at(batch_ratio).value() / kGiB + kContextGiB;
  return parts;
}

// The memory of the rank with the largest total. Nothing if no trace names tensors.
std::optional<ForecastStageMemory> largest(std::span<const std::optional<ExecutionTrace>> traces,
                                           double batch_ratio,
                                           const std::vector<std::vector<SequenceRange>>& recomputed) {
  std::optional<ForecastStageMemory> most;
  for (std::size_t r = 0; r < traces.size(); ++r) {
    if (!traces[r]) continue;
    const TraceMemory tensors =
        trace_memory(*traces[r], r < recomputed.size() ? recomputed[r] : std::vector<SequenceRange>{});
    if (tensors.at(1).value() <= 0) continue;
    const ForecastStageMemory parts = memory_of(tensors, batch_ratio);
    if (!most || parts.total_GiB > most->total_GiB) most = parts;
  }
  return most;
}

// The memory of a dry run, which recorded the state of PyTorch's allocator.
ForecastStageMemory memory_of(const EtDryRun& record) {
  const auto GiB = [](std::int64_t bytes) { return static_cast<double>(bytes) / kGiB; };
  ForecastStageMemory parts;
  parts.weights_GiB = GiB(record.start_allocated_bytes);
  parts.activations_GiB = GiB(record.peak_allocated_bytes - record.start_allocated_bytes);
  parts.reserve_GiB = GiB(record.peak_reserved_bytes - record.peak_allocated_bytes) + kContextGiB;
  parts.allocated_GiB = GiB(record.peak_allocated_bytes);
  parts.reserved_GiB = GiB(record.peak_reserved_bytes);
  parts.total_GiB = *parts.reserved_GiB + kContextGiB;
  return parts;
}

// "tight" is less than 5 % headroom. Described steps use another limit, 8 % (workload/memory.cpp).
MemoryVerdict verdict_of(double margin_GiB, double available_GiB) {
  return margin_GiB < 0                      ? MemoryVerdict::does_not_fit
         : margin_GiB < 0.05 * available_GiB ? MemoryVerdict::tight
                                             : MemoryVerdict::fits;
}

// The verdict on a machine, for the rank that needs most.
ForecastMemory memory_on(const Platform& machine, const ForecastStageMemory& parts) {
  ForecastMemory memory;
  memory.stages = {parts};
  memory.peak_memory_GiB = parts.total_GiB;
  memory.available_GiB = machine.device.memory_size.value() / kGiB;
  memory.margin_GiB = memory.available_GiB - memory.peak_memory_GiB;
  memory.verdict = to_string(verdict_of(memory.margin_GiB, memory.available_GiB));
  return memory;
}

}  // namespace

void add_recorded_memory(std::span<const std::optional<ExecutionTrace>> traces, const Platform* machine,
                         double batch_ratio, const std::vector<std::vector<SequenceRange>>& recomputed,
                         Forecast& forecast) {
  if (machine == nullptr) {
    forecast.notes.emplace_back("memory is unknown: no platform has the recorded GPU");
    return;
  }
  // Dry runs know the allocator, so they are preferred to sums of tensors.
  std::vector<ForecastStageMemory> of_classes;
  for (const std::optional<ExecutionTrace>& trace : traces)
    if (trace && trace->dry_run) of_classes.push_back(memory_of(*trace->dry_run));
  if (!of_classes.empty() && machine->device.memory_size.value() > 0) {
    const auto worst = std::ranges::max_element(of_classes, {}, &ForecastStageMemory::total_GiB);
    forecast.memory = memory_on(*machine, *worst);
    forecast.memory->worst_stage = static_cast<std::uint32_t>(worst - of_classes.begin());
    const double available_GiB = forecast.memory->available_GiB;
    for (ForecastStageMemory& one : of_classes)
      one.verdict = to_string(verdict_of(available_GiB - one.total_GiB, available_GiB));
    forecast.memory->stages = std::move(of_classes);
    return;
  }
  const std::optional<ForecastStageMemory> parts = largest(traces, batch_ratio, recomputed);
  if (!parts || machine->device.memory_size.value() <= 0) {
    forecast.notes.emplace_back("memory is unknown: no execution trace with the tensors of the step");
    return;
  }
  forecast.memory = memory_on(*machine, *parts);
  forecast.notes.emplace_back(
      "Memory: the tensors of the execution trace and 1 GiB. Workspaces of kernels and the allocator are "
      "not included.");
  if (recomputed.empty()) return;
  forecast.notes.push_back(
      fmt::format("activations take {:.2f} GiB with recomputation and {:.2f} GiB without",
                  parts->activations_GiB, largest(traces, batch_ratio, {})->activations_GiB));
}

}  // namespace stepcast
