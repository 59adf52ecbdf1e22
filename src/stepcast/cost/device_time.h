// The time of a kernel on the GPU alone, as a profiler shows it, from models of what benchmarks measured.
//
// Benchmarks of frameworks time one call after the other: what is shorter than its launch by the host takes as
// long as the launch (12 to 90 us in the tables that records were fitted to). A trace has the launches as host
// time already, so a kernel priced with them would pay twice.
//
//   const DeviceTime device{kernels.model()};
//   device.of(operation, kernels.price(operation))
//
// The floor of a record is what it answers for next to no work. An answer of twice the floor and more is taken
// as it is; at the floor nothing is known but the closed form of the analytic model; between them times go over
// into each other in proportion to the logarithm.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "stepcast/cost/kernel_model.h"
#include "stepcast/cost/training_kernels.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/operation/operation.h"

namespace stepcast {

// Remembers the floors it looked up; one per thread.
class DeviceTime {
 public:
  // `model` must outlive this.
  explicit DeviceTime(const KernelModel& model) : model_(&model) {}

  [[nodiscard]] Estimate of(const Operation& operation, const PricedOperation& priced);

 private:
  [[nodiscard]] double floor_us(const Operation& operation, std::string_view record);

  const KernelModel* model_;
  std::map<std::string, double, std::less<>> floors_;  // by record and family
};

// The same sort of operation on as little as it can be done on.
[[nodiscard]] Operation smallest_like(const Operation& operation);

}  // namespace stepcast
