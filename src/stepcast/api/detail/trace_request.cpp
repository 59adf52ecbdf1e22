#include "stepcast/api/detail/trace_request.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include <fmt/format.h>

#include "stepcast/analyze/step_spread.h"
#include "stepcast/predict/trace_changes.h"

namespace stepcast::detail {
namespace {

// What traces of that kind do not hold, flag by flag: the first that was asked for.
struct Refusal {
  std::string_view flag;
  bool asked = false;
};
Status refuse_first(std::string_view kind, std::string_view lacks, std::string_view advice,
                    std::initializer_list<Refusal> refusals) {
  for (const Refusal& refusal : refusals) {
    if (!refusal.asked) continue;
    return Error{fmt::format("{} {}, which {} would need", kind, lacks, refusal.flag)}.advice(
        std::string{advice});
  }
  return Ok{};
}

}  // namespace

Result<KernelTimeSource> kernel_time_source(const PredictTraceRequest& request) {
  if (request.kernels.empty()) {
    return request.platform.empty() ? KernelTimeSource::recorded : KernelTimeSource::ratio;
  }
  for (const KernelTimeSource ground :
       {KernelTimeSource::recorded, KernelTimeSource::models, KernelTimeSource::ratio}) {
    if (request.kernels == to_string(ground)) return ground;
  }
  return Error::at("", "kernels")
      .found(fmt::format("`{}`", request.kernels))
      .expected("recorded, models or ratio");
}

Result<HostTimeSource> host_time_source(const PredictTraceRequest& request) {
  for (const HostTimeSource ground : {HostTimeSource::recorded, HostTimeSource::overheads}) {
    if (request.host == to_string(ground)) return ground;
  }
  return Error::at("", "host").found(fmt::format("`{}`", request.host)).expected("recorded or overheads");
}

Status check_pipeline(const PredictTraceRequest& request, const std::filesystem::path& file) {
  Status operators = refuse_first("a timeline of a pipeline", "names no operators and no kernels",
                                  "leave it out; --what-if, --overlap, --like-median-rank, --step and "
                                  "--scenarios modify the recorded step",
                                  {{"--second-trace", !request.second_places.empty()},
                                   {"--kernels", !request.kernels.empty() && request.kernels != "recorded"},
                                   {"--host overheads", request.host != "recorded"},
                                   {"--recorded-on", !request.recorded_on.empty()},
                                   {"--batch", request.batch > 0},
                                   {"--dtype", !request.dtype.empty()},
                                   {"--data-parallel-ranks", request.data_parallel_ranks > 0},
                                   {"--bucket-size-mb", request.bucket_mb > 0},
                                   {"--recompute", !request.recompute.empty()},
                                   {"--links-of", !request.links_of.empty()},
                                   {"--rank-platform", !request.rank_platforms.empty()}});
  if (!operators.ok()) return std::move(operators).error().in_file(file.string());
  if (request.spread.all_steps) {
    return Error{"--all-steps is for traces of PyTorch"}
        .in_file(file.string())
        .advice("`stepcast replay --step N` takes the steps of a pipeline one by one");
  }
  return Ok{};
}

Status check_chakra(const PredictTraceRequest& request) {
  return refuse_first("Chakra traces hold", "one step without marks and no operators of PyTorch",
                      "leave it out, or give profiler traces of the same ranks",
                      {{"--second-trace", !request.second_places.empty()},
                       {"--step", request.step.has_value()},
                       {"--all-steps", request.spread.all_steps}});
}

Status check_untimed(const PredictTraceRequest& request) {
  return refuse_first("execution traces alone", "hold no times and one step",
                      "give the profiler traces of the same ranks, too, or leave it out",
                      {{"--kernels", !request.kernels.empty() && request.kernels != "models"},
                       {"--recorded-on", !request.recorded_on.empty()},
                       {"--second-trace", !request.second_places.empty()},
                       {"--step", request.step.has_value()},
                       {"--all-steps", request.spread.all_steps}});
}

Result<std::pair<std::int32_t, std::string>> parse_rank_platform(const std::string& text) {
  const std::size_t equals = text.find('=');
  std::int32_t rank = -1;
  const auto read = std::from_chars(text.data(), text.data() + std::min(equals, text.size()), rank);
  if (equals == std::string::npos || equals + 1 == text.size() || read.ec != std::errc{} ||
      read.ptr != text.data() + equals || rank < 0) {
    return Error::at("", "--rank-platform")
        .found(fmt::format("`{}`", text))
        .expected("RANK=PLATFORM, such as 2=fpga.json");
  }
  return std::pair{rank, text.substr(equals + 1)};
}

Status read_changes(const PredictTraceRequest& request, TracePredictionOptions& how) {
  const auto refuse = [](std::string_view flag, std::string found, std::string expected) {
    return Error::at("", std::string{flag}).found(std::move(found)).expected(std::move(expected));
  };
  constexpr std::int64_t kMostSamples = 100'000'000, kMostRanks = 1'000'000;
  for (const auto& [flag, batch] :
       {std::pair{"--batch", request.batch}, std::pair{"--recorded-batch", request.recorded_batch},
        std::pair{"--recorded-batch", request.second_batch}}) {
    if (batch < 0 || batch > kMostSamples)
      return refuse(flag, fmt::format("{}", batch), fmt::format("samples per rank, 1 to {}", kMostSamples));
  }
  if (request.data_parallel_ranks < 0 || request.data_parallel_ranks > kMostRanks) {
    return refuse("--data-parallel-ranks", fmt::format("{}", request.data_parallel_ranks),
                  fmt::format("ranks, 1 to {}", kMostRanks));
  }
  constexpr double kLargestBucketMb = 1e6;
  if (!(request.bucket_mb >= 0 && request.bucket_mb <= kLargestBucketMb)) {
    return refuse("--bucket-size-mb", fmt::format("{:g}", request.bucket_mb),
                  fmt::format("MiB above 0, at most {:g}", kLargestBucketMb));
  }
  how.bucket_mb = request.bucket_mb;
  for (const RecomputedPart what : {RecomputedPart::selective, RecomputedPart::full})
    if (request.recompute == to_string(what)) how.recompute = what;
  if (!request.recompute.empty() && how.recompute == RecomputedPart::none)
    return refuse("--recompute", fmt::format("`{}`", request.recompute), "full or selective");
  if (request.batch > 0) how.change.batch = BatchChange{request.recorded_batch, request.batch};
  if (request.batch == 0 && (request.recorded_batch > 0 || !request.second_places.empty())) {
    return Error{"--recorded-batch and --second-trace say what a batch is predicted from"}.advice(
        "name the batch to predict with --batch");
  }
  if (request.second_places.empty() != (request.second_batch == 0) ||
      (!request.second_places.empty() && request.recorded_batch == 0)) {
    return Error{"two recordings need two recorded batches"}.advice(
        "as in --trace A --second-trace B --recorded-batch 32,64 --batch 128");
  }
  how.second_batch = request.second_batch;
  how.change.data_parallel_ranks = request.data_parallel_ranks;
  if (!request.dtype.empty()) {
    how.change.dtype = parse_dtype(request.dtype);
    const DType type = how.change.dtype;
    if (type != DType::bf16 && type != DType::fp16 && type != DType::fp32 && type != DType::tf32)
      return refuse("--dtype", fmt::format("`{}`", request.dtype),
                    "bf16, fp16, tf32 or fp32 for recorded work");
  }
  for (const OverlapChange overlap : {OverlapChange::none, OverlapChange::perfect}) {
    if (request.overlap == to_string(overlap)) how.overlap = overlap;
  }
  if (!request.overlap.empty() && how.overlap == OverlapChange::as_recorded)
    return refuse("--overlap", fmt::format("`{}`", request.overlap), "none or perfect");
  return Ok{};
}

}  // namespace stepcast::detail
