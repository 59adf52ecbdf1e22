// The platforms that a prediction from traces asks: those that the request names, and the one that has the GPU that
// recorded.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stepcast/api/stepcast.h"
#include "stepcast/platform/platform.h"
#include "stepcast/retrace/trace_prediction.h"
#include "stepcast/sources/recorded_source.h"

namespace stepcast::detail {

class TracePlatforms {
 public:
  using Load = std::function<Result<std::shared_ptr<const Platform>>(const std::string& name)>;

  // Those that the request names. `how` then points to them, and they live as long as this.
  [[nodiscard]] Status load(const PredictTraceRequest& request, const Load& platform,
                            TracePredictionOptions& how);
  // Where none is named for the machine that recorded and what is asked for needs it: the platform that has its GPU.
  [[nodiscard]] Status find_recorded_on(const RecordedSource& source, const SourceKind& kind,
                                        TracePredictionOptions& how);
  // That were read.
  [[nodiscard]] const std::vector<std::filesystem::path>& files() const { return files_; }

 private:
  std::vector<std::shared_ptr<const Platform>> platforms_;
  std::vector<std::filesystem::path> files_;
};

}  // namespace stepcast::detail
