#include "calibrate/overhead_traces.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/statistics.h"
#include "stepcast/cost/host_overheads.h"
#include "stepcast/retrace/host_prices.h"
#include "stepcast/sources/recorded_steps.h"
#include "stepcast/sources/trace_set.h"

#include "calibrate/collected_traces.h"

namespace stepcast {

namespace {

// The ordinary steps; one empty optional if the traces do not mark steps.
std::vector<std::optional<std::int64_t>> steps_to_learn_from(const TraceSet& set) {
  const std::vector<std::int64_t> numbers = ordinary_steps(set);
  if (numbers.empty()) return {std::nullopt};
  return {numbers.begin(), numbers.end()};
}

// Host times do not need execution traces.
std::vector<RecordedInput> inputs_of(const TraceSet& set) {
  std::vector<RecordedInput> inputs;
  for (const RecordedRank& rank : set.ranks) inputs.push_back({&rank, nullptr});
  return inputs;
}

// A step is host-bound if its GPU works for a smaller share of the time.
constexpr double kGpuDecides = 0.7;

// A trace of the collector. Its factor is empty if the step is GPU-bound or was not measured.
struct CollectedOverheads {
  OverheadSource source;
  OverheadSamples samples;
  std::optional<double> factor;
};

void read_collected(const TraceSet& set, double unprofiled_us, CollectedOverheads& trace,
                    TraceOverheads& out) {
  const std::vector<RecordedInput> inputs = inputs_of(set);
  double step_us = 0, gpu_us = 0;
  for (const std::optional<std::int64_t>& number : steps_to_learn_from(set)) {
    const Result<RecordedProgram> step = rebuild_program(inputs, {.step = number});
    if (!step.ok()) {
      out.left_out.push_back({set.name, message_without_file(step.error())});
      continue;
    }
    const RecordedStepFacts& facts = step->facts.front();
    ++trace.source.steps;
    trace.source.device = step->files.front().device;
    step_us += facts.step_us.length_us();
    gpu_us += facts.gpu_work_us;
    trace.samples.add(recorded_overheads(*step));
  }
  const auto n = static_cast<double>(trace.source.steps);
  if (n > 0 && unprofiled_us > 0 && gpu_us / n < kGpuDecides * unprofiled_us)
    trace.factor = unprofiled_us / (step_us / n);
}

// Adds all traces of a folder of the collector.
Status add_collected(std::span<const CollectedTrace> traces, unsigned threads, TraceOverheads& out) {
  std::vector<CollectedOverheads> found;
  std::vector<double> factors;
  for (const CollectedTrace& one : traces) {
    STEPCAST_ASSIGN(const TraceListing listing, list_traces(std::span{&one.file, 1}));
    std::vector<TraceListing::Other> skipped;
    for (const TraceSet& set : read_trace_sets(listing, {.ranks = {}, .threads = threads}, skipped)) {
      CollectedOverheads& trace = found.emplace_back();
      trace.source = {.name = set.name, .device = {}, .ranks = set.ranks.size()};
      read_collected(set, one.unprofiled_us, trace, out);
      if (trace.factor) factors.push_back(*trace.factor);
    }
  }
  out.is_scaled = true;
  const double usual = factors.empty() ? 1 : median(factors);
  for (CollectedOverheads& trace : found) {
    if (trace.source.steps == 0) continue;
    trace.source.times = trace.factor.value_or(usual);
    trace.samples.multiply(trace.source.times);
    out.jobs.push_back(std::move(trace.samples));
    out.sources.push_back(std::move(trace.source));
  }
  return Ok{};
}

void add_recorded(const TraceSet& set, TraceOverheads& out) {
  const std::vector<RecordedInput> inputs = inputs_of(set);
  // Gaps of streams alone do not determine host times.
  if (std::ranges::all_of(inputs, [](const RecordedInput& one) {
        return one.kineto == nullptr || (one.kineto->cpu_ops.empty() && one.kineto->runtime_calls.empty());
      }))
    return;
  OverheadSource source{.name = set.name, .device = {}, .ranks = set.ranks.size()};
  OverheadSamples samples;
  for (const std::optional<std::int64_t>& step : steps_to_learn_from(set)) {
    const Result<RecordedProgram> recorded = rebuild_program(inputs, {.step = step});
    if (!recorded.ok()) {
      out.left_out.push_back({step ? fmt::format("{}, step {}", set.name, *step) : set.name,
                              message_without_file(recorded.error())});
      continue;
    }
    ++source.steps;
    source.device = recorded->files.front().device;
    samples.add(recorded_overheads(*recorded));
  }
  if (source.steps == 0) return;
  out.jobs.push_back(std::move(samples));
  out.sources.push_back(std::move(source));
}

}  // namespace

Result<TraceOverheads> read_overheads(std::span<const std::filesystem::path> places, unsigned threads) {
  TraceOverheads out;
  for (const std::filesystem::path& place : places) {
    STEPCAST_ASSIGN(const std::vector<CollectedTrace> collected, collected_traces(place));
    if (!collected.empty()) {
      STEPCAST_TRY(add_collected(collected, threads, out));
      continue;
    }
    STEPCAST_ASSIGN(const TraceListing listing, list_traces(std::span{&place, 1}));
    std::vector<TraceListing::Other> skipped;
    const std::vector<TraceSet> sets = read_trace_sets(listing, {.ranks = {}, .threads = threads}, skipped);
    for (const TraceListing::Other& other : skipped) out.left_out.push_back({other.file.string(), other.why});
    for (const TraceSet& set : sets) add_recorded(set, out);
  }
  if (std::ranges::all_of(out.jobs, [](const OverheadSamples& job) { return job.of.empty(); })) {
    Error error{"no step of these traces shows host time"};
    if (out.left_out.empty()) return error;
    return std::move(error).found(fmt::format("{}: {}", out.left_out.front().what, out.left_out.front().why));
  }
  return out;
}

void OverheadSamples::add(OverheadType type, std::string_view op, OverheadSample sample) {
  of[{type, std::string{overhead_name(op)}}].push_back(sample);
}

void OverheadSamples::add(const OverheadSamples& more) {
  for (const auto& [key, samples] : more.of) {
    std::vector<OverheadSample>& mine = of[key];
    mine.insert(mine.end(), samples.begin(), samples.end());
  }
  for (const auto& [op, sequences] : more.launches)
    for (const auto& [calls, n] : sequences) launches[op][calls] += n;
}

void OverheadSamples::multiply(double factor) {
  for (auto& [key, samples] : of)
    for (OverheadSample& sample : samples) sample.duration_us *= factor;
}

double OverheadSamples::sum_us() const {
  double sum = 0;
  for (const auto& [key, samples] : of)
    for (const OverheadSample& sample : samples) sum += sample.duration_us;
  return sum;
}

Fences outlier_fences(const std::vector<double>& times_us) {
  constexpr double kInterquartileRanges = 1.5;
  const double low = quantile(times_us, 0.25), high = quantile(times_us, 0.75);
  const double beyond = kInterquartileRanges * (high - low);
  return {low - beyond, high + beyond};
}

OverheadSamples recorded_overheads(const RecordedProgram& recorded, std::span<const RankClassId> ranks) {
  OverheadSamples samples;
  const StringTable& names = recorded.program.names;
  for (const RankClassId rank : ranks) {
    const RecordedHost& host = recorded.host[rank.index()];
    for (const HostPiece& piece : host.pieces) {
      samples.add(piece.type, piece.op.valid() ? names.text(piece.op) : kStepEnd,
                  {piece.duration_us, piece.profiler_events});
    }
    const Block& block = recorded.program.block_of(rank, InstanceId{0});
    for (std::uint32_t e = 0; e < block.edge_count(); ++e)
      if (is_host_delay(recorded, block.edge_infos()[e]))
        samples.add(OverheadType::t1, hand_off_name(recorded, block.edge_infos()[e]),
                    {block.delay_us()[e], 0});
    for (const HostOperator& op : host.operators) {
      std::vector<std::string> calls;
      for (std::uint32_t i = 0; i < op.n_launches; ++i)
        calls.emplace_back(names.text(host.launches[op.first_launch + i]));
      ++samples.launches[std::string{overhead_name(names.text(op.op))}][std::move(calls)];
    }
  }
  return samples;
}

OverheadSamples recorded_overheads(const RecordedProgram& recorded) {
  std::vector<RankClassId> ranks;
  for (std::size_t r = 0; r < recorded.host.size(); ++r) ranks.emplace_back(r);
  return recorded_overheads(recorded, ranks);
}

}  // namespace stepcast
