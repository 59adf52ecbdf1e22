// Turns the text fields of a request for a prediction from traces into typed options.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stepcast/api/stepcast.h"
#include "stepcast/platform/platform.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/sources/source_kind.h"
#include "stepcast/sources/trace_listing.h"

namespace stepcast {

// A recorded step that is kept in memory for further predictions, with what they need besides the platforms.
struct KeptStep {
  RecordedProgram recorded;
  RecordedBase base;
  TraceListing listing;
  const SourceKind* kind = nullptr;
  std::string device{};  // GPU that recorded the step
};

namespace detail {

// Steps with more ranks are not kept, because the copies would take gigabytes.
inline constexpr std::size_t kMostKeptRanks = 128;

// The options that follow from the request alone. Platforms and traces are loaded separately. Errors: unknown
// words, amounts out of range, contradictory options.
[[nodiscard]] Result<TracePredictionOptions> prediction_options(const PredictTraceRequest& request);
// Parses RANK=PLATFORM: "2=fpga.json" gives 2 and "fpga.json".
[[nodiscard]] Result<std::pair<std::int32_t, std::string>> parse_rank_platform(const std::string& text);

// The features that a request uses and that some kinds of traces do not support.
[[nodiscard]] std::vector<TraceAsk> asks_of(const PredictTraceRequest& request);
[[nodiscard]] std::vector<TraceAsk> asks_of(const ReplayRequest& request);

// Adapts the sources of times to a kind of traces: models if no times are recorded, recorded times if the
// traces do not name their GPU.
void fit_to_kind(const SourceKind& kind, const PredictTraceRequest& request, TracePredictionOptions& how);

// The built-in platform with this GPU. Errors: there is none.
[[nodiscard]] Result<Platform> platform_with(const std::string& gpu);

// Owns the platforms of a prediction from traces: those that the request names, and the one with the GPU that recorded.
class TracePlatforms {
 public:
  using Load = std::function<Result<std::shared_ptr<const Platform>>(const std::string& name)>;

  // Loads the platforms that the request names. `how` then points to them; they live as long as this object.
  [[nodiscard]] Status load(const PredictTraceRequest& request, const Load& platform,
                            TracePredictionOptions& how);
  // If the request does not name the recording machine and the prediction needs it, loads the built-in
  // platform with `device` through `platform_with`. Errors: it is needed and there is none.
  [[nodiscard]] Status find_recorded_on(const std::string& device, const SourceKind& kind,
                                        const Load& platform_with, TracePredictionOptions& how);
  // All files of the loaded platforms.
  [[nodiscard]] const std::vector<std::filesystem::path>& files() const { return files_; }

 private:
  std::vector<std::shared_ptr<const Platform>> platforms_;
  std::vector<std::filesystem::path> files_;
};

}  // namespace detail
}  // namespace stepcast
