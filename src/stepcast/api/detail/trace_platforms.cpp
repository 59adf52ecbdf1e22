#include "stepcast/api/detail/trace_platforms.h"

#include <utility>

#include <fmt/format.h>

#include "stepcast/api/detail/trace_request.h"
#include "stepcast/platform/platform_choice.h"
#include "stepcast/retrace/step_edit.h"

namespace stepcast::detail {
namespace {

Result<Platform> platform_with(const std::string& gpu) {
  Result<PlatformChoice> choice = platform_for(
      {.name = {}, .gpu = gpu, .gpus_per_node = 0, .network_kind = {}, .node_bandwidth_Gbps = {}});
  if (choice.ok()) return std::move(choice->platform);
  return Error{"no platform has the GPU that recorded the traces"}
      .found(gpu.empty() ? "no name of a GPU" : fmt::format("\"{}\"", gpu))
      .advice(
          "name a similar one with --recorded-on, or take the times of models with --kernels "
          "models");
}

}  // namespace

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

Status TracePlatforms::find_recorded_on(const RecordedSource& source, const SourceKind& kind,
                                        TracePredictionOptions& how) {
  const bool prices = how.kernels == KernelTimeSource::ratio || changes_gpu_times(how);
  const bool memory = how.recompute != RecomputedPart::none;
  if (!kind.names_gpu || how.recorded_on != nullptr || (!prices && !memory)) return Ok{};
  Result<Platform> found = platform_with(source.device());
  if (!found.ok()) return prices ? Status{std::move(found).error()} : Status{Ok{}};
  platforms_.push_back(std::make_shared<const Platform>(std::move(*found)));
  how.recorded_on = platforms_.back().get();
  return Ok{};
}

}  // namespace stepcast::detail
