// Reads the text fields of PredictTraceRequest into options, and checks ranges and combinations. Nothing here
// reads traces.
#include "stepcast/api/detail/trace_request.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stepcast/base/scan.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/predict/what_if.h"
#include "stepcast/retrace/step_edit.h"

namespace stepcast::detail {
namespace {

// The source of GPU times. Default: recorded times without a platform, scaled ones ("ratio") with one.
Result<KernelTimeSource> kernel_time_source(const PredictTraceRequest& request) {
  if (request.kernels.empty())
    return request.platform.empty() ? KernelTimeSource::recorded : KernelTimeSource::ratio;
  for (const KernelTimeSource ground :
       {KernelTimeSource::recorded, KernelTimeSource::models, KernelTimeSource::ratio}) {
    if (request.kernels == to_string(ground)) return ground;
  }
  return Error::at("", "kernels")
      .found(fmt::format("`{}`", request.kernels))
      .expected("recorded, models or ratio");
}

// The source of CPU times: recorded, or the overheads of the platform.
Result<HostTimeSource> host_time_source(const PredictTraceRequest& request) {
  for (const HostTimeSource ground : {HostTimeSource::recorded, HostTimeSource::overheads})
    if (request.host == to_string(ground)) return ground;
  return Error::at("", "host").found(fmt::format("`{}`", request.host)).expected("recorded or overheads");
}

// The error for a flag with a wrong value.
Error refused(std::string_view flag, std::string found, std::string expected) {
  return Error::at("", std::string{flag}).found(std::move(found)).expected(std::move(expected));
}

// Checks ranges. 0 means "not given" for all of these.
Status check_amounts(const PredictTraceRequest& request) {
  constexpr std::int64_t kMostSamples = 100'000'000, kMostRanks = 1'000'000;
  // A batch of 0 means that it is not given.
  for (const auto& [flag, batch] :
       {std::pair{"--batch", request.batch}, std::pair{"--recorded-batch", request.recorded_batch},
        std::pair{"--recorded-batch", request.second_batch}}) {
    if (batch < 0 || batch > kMostSamples)
      return refused(flag, fmt::format("{}", batch), fmt::format("samples per rank, 1 to {}", kMostSamples));
  }
  if (request.data_parallel_ranks < 0 || request.data_parallel_ranks > kMostRanks) {
    return refused("--data-parallel-ranks", fmt::format("{}", request.data_parallel_ranks),
                   fmt::format("ranks, 1 to {}", kMostRanks));
  }
  // A larger bucket would contain all gradients of a rank.
  constexpr double kLargestBucketMb = 1e6;
  if (!(request.bucket_mb >= 0 && request.bucket_mb <= kLargestBucketMb)) {
    return refused("--bucket-size-mb", fmt::format("{:g}", request.bucket_mb),
                   fmt::format("MiB above 0, at most {:g}", kLargestBucketMb));
  }
  return Ok{};
}

// Reads the batches. A change of the batch may be inferred from one recording, or from two with different batches.
Status read_batches(const PredictTraceRequest& request, TracePredictionOptions& how) {
  if (request.batch > 0) how.change.batch = BatchChange{request.recorded_batch, request.batch};
  if (request.batch == 0 && (request.recorded_batch > 0 || !request.second_places.empty())) {
    return Error{"--recorded-batch and --second-trace need --batch"}.advice(
        "give the batch to predict with --batch");
  }
  if (request.second_places.empty() != (request.second_batch == 0) ||
      (!request.second_places.empty() && request.recorded_batch == 0)) {
    return Error{"two recordings need two recorded batches"}.advice(
        "such as --trace A --second-trace B --recorded-batch 32,64 --batch 128");
  }
  how.second_batch = request.second_batch;
  return Ok{};
}

// The value of `values` with the name `word`; nothing for an empty word. Errors: another word.
template <class Enum>
Result<std::optional<Enum>> one_of(std::string_view flag, const std::string& word,
                                   std::initializer_list<Enum> values, std::string expected) {
  if (word.empty()) return std::optional<Enum>{};
  for (const Enum value : values)
    if (word == to_string(value)) return std::optional<Enum>{value};
  return refused(flag, fmt::format("`{}`", word), std::move(expected));
}

// Reads the changes of the recorded step into `how`. Platforms and traces are loaded elsewhere.
Status read_changes(const PredictTraceRequest& request, TracePredictionOptions& how) {
  STEPCAST_TRY(check_amounts(request));
  how.bucket_mb = request.bucket_mb;
  how.change.data_parallel_ranks = request.data_parallel_ranks;
  STEPCAST_ASSIGN(const auto recompute,
                  one_of("--recompute", request.recompute, {RecomputedPart::selective, RecomputedPart::full},
                         "full or selective"));
  how.recompute = recompute.value_or(how.recompute);
  STEPCAST_TRY(read_batches(request, how));
  // The shapes of another step replace all shapes, so no other change can be combined with them.
  if (request.shapes_of_step && (!how.change.empty() || !request.dtype.empty() || request.spread.all_steps)) {
    return Error{"--shapes-of-step cannot be combined with another change of the work or with --all-steps"}
        .advice("ask for one of them at a time");
  }
  if (!request.dtype.empty()) {
    // Recorded work is only converted to types of at least 16 bits.
    const DType type = how.change.dtype = parse_dtype(request.dtype);
    if (type != DType::bf16 && type != DType::fp16 && type != DType::fp32 && type != DType::tf32)
      return refused("--dtype", fmt::format("`{}`", request.dtype),
                     "bf16, fp16, tf32 or fp32 for recorded work");
  }
  STEPCAST_ASSIGN(
      const auto overlap,
      one_of("--overlap", request.overlap, {OverlapChange::none, OverlapChange::perfect, OverlapChange::host},
             "none, perfect or host"));
  how.overlap = overlap.value_or(how.overlap);
  return Ok{};
}

}  // namespace

Result<std::pair<std::int32_t, std::string>> parse_rank_platform(const std::string& text) {
  const std::size_t equals = text.find('=');
  const auto rank = scan<std::int32_t>(std::string_view{text}.substr(0, equals));
  if (equals == std::string::npos || equals + 1 == text.size() || rank.value_or(-1) < 0) {
    return Error::at("", "--rank-platform")
        .found(fmt::format("`{}`", text))
        .expected("RANK=PLATFORM, such as 2=fpga.json");
  }
  return std::pair{*rank, text.substr(equals + 1)};
}

Result<TracePredictionOptions> prediction_options(const PredictTraceRequest& request) {
  TracePredictionOptions how;
  STEPCAST_ASSIGN(how.kernels, kernel_time_source(request));
  STEPCAST_ASSIGN(how.host, host_time_source(request));
  STEPCAST_TRY(apply_what_if(request.what_if, how.assumptions));
  how.rebuild.step = request.step;
  how.median_ranks = request.median_ranks;
  how.barrier = request.barrier;
  STEPCAST_TRY(read_changes(request, how));
  return how;
}

std::vector<TraceAsk> asks_of(const PredictTraceRequest& request) {
  // The order does not matter; a kind of traces rejects the first ask that it cannot answer.
  std::vector<TraceAsk> asks;
  const auto add = [&](TraceAsk ask, bool asked) {
    if (asked) asks.push_back(ask);
  };
  add(TraceAsk::step, request.step.has_value());
  add(TraceAsk::all_steps, request.spread.all_steps);
  add(TraceAsk::shapes_of_step, request.shapes_of_step.has_value());
  add(TraceAsk::ranks, !request.ranks.empty());
  add(TraceAsk::platform, !request.platform.empty());
  add(TraceAsk::recorded_on, !request.recorded_on.empty());
  add(TraceAsk::recorded_kernels, request.kernels == to_string(KernelTimeSource::recorded));
  add(TraceAsk::modelled_kernels, request.kernels == to_string(KernelTimeSource::models));
  add(TraceAsk::scaled_kernels, request.kernels == to_string(KernelTimeSource::ratio));
  add(TraceAsk::host_overheads, request.host == to_string(HostTimeSource::overheads));
  add(TraceAsk::batch, request.batch > 0);
  add(TraceAsk::second_trace, !request.second_places.empty());
  add(TraceAsk::dtype, !request.dtype.empty());
  add(TraceAsk::data_parallel_ranks, request.data_parallel_ranks > 0);
  add(TraceAsk::bucket_size, request.bucket_mb > 0);
  add(TraceAsk::recompute, !request.recompute.empty());
  add(TraceAsk::overlap, !request.overlap.empty());
  add(TraceAsk::links_of, !request.links_of.empty());
  add(TraceAsk::rank_platform, !request.rank_platforms.empty());
  return asks;
}

std::vector<TraceAsk> asks_of(const ReplayRequest& request) {
  std::vector<TraceAsk> asks;
  if (request.step) asks.push_back(TraceAsk::step);
  if (request.spread.all_steps) asks.push_back(TraceAsk::all_steps);
  if (!request.ranks.empty()) asks.push_back(TraceAsk::ranks);
  return asks;
}

void fit_to_kind(const SourceKind& kind, const PredictTraceRequest& request, TracePredictionOptions& how) {
  if (kind.times == RecordedTimes::none) {
    how.kernels = KernelTimeSource::models;
    how.host = HostTimeSource::overheads;
    return;
  }
  // "ratio" needs the GPU that recorded. If these traces do not name it, recorded times are used.
  if (!kind.names_gpu && request.kernels.empty() && request.recorded_on.empty())
    how.kernels = KernelTimeSource::recorded;
  how.price_unrecorded = kind.times == RecordedTimes::some;
}

Result<Platform> platform_with(const std::string& gpu) {
  Result<PlatformChoice> choice = platform_for(
      {.name = {}, .gpu = gpu, .gpus_per_node = 0, .network_kind = {}, .node_bandwidth_Gbps = {}});
  if (choice.ok()) return std::move(choice->platform);
  return Error{"no platform has the GPU that recorded the traces"}
      .found(gpu.empty() ? "no name of a GPU" : fmt::format("\"{}\"", gpu))
      .advice("name a similar one with --recorded-on, or use models with --kernels models");
}

// Platforms are kept in this object, because `how` has pointers to them.
Status TracePlatforms::load(const PredictTraceRequest& request, const Load& platform,
                            TracePredictionOptions& how) {
  const auto named = [&](const std::string& name) -> Result<const Platform*> {
    if (name.empty()) return nullptr;
    STEPCAST_ASSIGN(std::shared_ptr<const Platform> loaded, platform(name));
    files_.insert(files_.end(), loaded->files.begin(), loaded->files.end());
    platforms_.push_back(std::move(loaded));
    return platforms_.back().get();
  };
  STEPCAST_ASSIGN(how.platform, named(request.platform));
  STEPCAST_ASSIGN(how.links, named(request.links_of));
  for (const std::string& text : request.rank_platforms) {
    STEPCAST_ASSIGN(const auto of_rank, parse_rank_platform(text));
    STEPCAST_ASSIGN(const Platform* on, named(of_rank.second));
    how.rank_platforms.push_back({of_rank.first, on});
  }
  STEPCAST_ASSIGN(how.recorded_on, named(request.recorded_on));
  return Ok{};
}

Status TracePlatforms::find_recorded_on(const std::string& device, const SourceKind& kind,
                                        const Load& platform_with, TracePredictionOptions& how) {
  // The recorded GPU is needed to scale or change GPU times. For the memory after recomputation it is only
  // useful, so a missing platform is accepted then.
  const bool prices = how.kernels == KernelTimeSource::ratio || changes_gpu_times(how);
  const bool memory = how.recompute != RecomputedPart::none;
  if (!kind.names_gpu || how.recorded_on != nullptr || (!prices && !memory)) return Ok{};
  Result<std::shared_ptr<const Platform>> found = platform_with(device);
  if (!found.ok()) return prices ? Status{std::move(found).error()} : Status{Ok{}};
  platforms_.push_back(std::move(*found));
  how.recorded_on = platforms_.back().get();
  return Ok{};
}

}  // namespace stepcast::detail
