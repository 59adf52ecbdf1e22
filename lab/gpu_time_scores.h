// Tests of GPU time in recorded steps: each kernel priced by the models of its own GPU, and the kernels of one GPU from those
// of another.
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

// Prices on the platform of a GPU, kept for all traces of it.
class PricedDevices {
 public:
  // Null where no platform has this GPU.
  [[nodiscard]] StepPricer* find(const std::string& device);

 private:
  struct Device {
    std::unique_ptr<Platform> platform;
    std::unique_ptr<StepPricer> prices;
  };
  std::map<std::string, Device> of_device_;
};

// Adds `gpu_active`, the same by class of kernels, and convolutions by what decides how libraries run them. A GPU of which
// there is no platform is named in `skipped`.
void score_gpu_active(StepScores& scores, const RecordedJob& job, PricedDevices& devices,
                      std::vector<Skipped>& skipped);

// A step of one rank each, of the same work on two GPUs.
struct DevicePair {
  const RecordedJob* from = nullptr;
  const RecordedJob* to = nullptr;
};

// How far the ratio of the models is off by class of kernels, as |ln|: the classes that are scored.
[[nodiscard]] std::vector<double> ratio_errors(const DevicePair& pair, PricedDevices& devices);

// Adds `cross_device`, by models alone and left as recorded. `spread`: RecordedPricing::ratio_spread, from other pairs.
void score_cross_device(StepScores& scores, const DevicePair& pair, double spread, PricedDevices& devices);

}  // namespace stepcast
