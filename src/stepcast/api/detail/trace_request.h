// What a request for a prediction from traces asks for, read from its words.
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

struct KeptStep {
  RecordedProgram recorded;
  RecordedBase base;
  TraceListing listing;
  const SourceKind* kind = nullptr;
  std::string device{};  // that recorded
};

namespace detail {

// Copies of more ranks take gigabytes.
inline constexpr std::size_t kMostKeptRanks = 128;

// All that stands in the request itself; platforms and traces are loaded apart. Errors: words and amounts that are none.
[[nodiscard]] Result<TracePredictionOptions> prediction_options(const PredictTraceRequest& request);
// "2=fpga.json"
[[nodiscard]] Result<std::pair<std::int32_t, std::string>> parse_rank_platform(const std::string& text);

// What a kind of traces may have to refuse.
[[nodiscard]] std::vector<TraceAsk> asks_of(const PredictTraceRequest& request);
[[nodiscard]] std::vector<TraceAsk> asks_of(const ReplayRequest& request);

// Where times come from that these traces do not hold.
void fit_to_kind(const SourceKind& kind, const PredictTraceRequest& request, TracePredictionOptions& how);

// The shipped one that has this GPU. Errors: none has.
[[nodiscard]] Result<Platform> platform_with(const std::string& gpu);

// The platforms that a prediction from traces asks: those that the request names, and the one that has the GPU that
// recorded.
class TracePlatforms {
 public:
  using Load = std::function<Result<std::shared_ptr<const Platform>>(const std::string& name)>;

  // Those that the request names. `how` then points to them, and they live as long as this.
  [[nodiscard]] Status load(const PredictTraceRequest& request, const Load& platform,
                            TracePredictionOptions& how);
  // Where none is named for the machine that recorded and what is asked for needs it: the one with its GPU, as `platform_with` finds
  // it.
  [[nodiscard]] Status find_recorded_on(const std::string& device, const SourceKind& kind,
                                        const Load& platform_with, TracePredictionOptions& how);
  // That were read.
  [[nodiscard]] const std::vector<std::filesystem::path>& files() const { return files_; }

 private:
  std::vector<std::shared_ptr<const Platform>> platforms_;
  std::vector<std::filesystem::path> files_;
};

}  // namespace detail
}  // namespace stepcast
