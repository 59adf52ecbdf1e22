// Tests of GPU time in recorded steps: kernels priced by the models of their GPU, and kernels of one GPU predicted from
// those of another.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stepcast/platform/platform.h"
#include "stepcast/retrace/recorded_prices.h"

#include "lab/recorded_job.h"
#include "lab/step_scores.h"
#include "lab/suite.h"

namespace stepcast {

// Prices on the platforms of GPUs, cached for all traces.
class PricedDevices {
 public:
  // Null if no platform has this GPU.
  [[nodiscard]] StepPricer* find(const std::string& device);

 private:
  struct Device {
    std::unique_ptr<Platform> platform;
    std::unique_ptr<StepPricer> prices;
  };
  std::map<std::string, Device> of_device_;
};

// Adds `gpu_active`, the same by class of kernels, and convolutions by sort. A GPU without a platform is named in `skipped`.
void score_gpu_active(StepScores& scores, const RecordedJob& job, PricedDevices& devices,
                      std::vector<Skipped>& skipped);

// The same work recorded on two GPUs, each a step of one rank.
struct DevicePair {
  const RecordedJob* from = nullptr;
  const RecordedJob* to = nullptr;
};

// Error of the ratio of the models by class of kernels, as |ln|, for the scored classes.
[[nodiscard]] std::vector<double> ratio_errors(const DevicePair& pair, PricedDevices& devices);

// Adds `cross_device`: by models alone, and with times as recorded. `spread`: RecordedPricing::ratio_spread, from other
// pairs.
void score_cross_device(StepScores& scores, const DevicePair& pair, double spread, PricedDevices& devices);

}  // namespace stepcast
