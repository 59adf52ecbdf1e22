// The time of a kernel on the GPU alone, as a profiler shows it, from models of what benchmarks measured.
//
// Benchmarks of frameworks time one call after the other: what is shorter than its launch by the host takes as
// long as the launch (12 to 90 us in the tables that records were fitted to). A trace has the launches as host
// time already, so a kernel priced with them would pay twice.
//
//   DeviceTime device{kernels.model(), platform.device};
//   device.of(operation, kernels.price(operation))
//
// The floor of a record is what it answers for next to no work: the launch and the shortest kernel. The launch is
// taken off. Near the floor nothing is left but the closed form of the analytic model; up to a kernel as long as
// the launch times go over into each other in proportion to the logarithm.
//
// Where a trace names the kernels (kernel_implementation.h), what they are decides further: convolutions have a
// closed form per algorithm (device_time.h), pooling and batch norm their own rates.
#pragma once

#include <map>
#include <string>

#include "stepcast/cost/device_figures.h"
#include "stepcast/cost/kernel_implementation.h"
#include "stepcast/cost/kernel_model.h"
#include "stepcast/cost/training_kernels.h"
#include "stepcast/operation/estimate.h"
#include "stepcast/operation/operation.h"

namespace stepcast {

// Remembers the floors it looked up; one per thread.
class DeviceTime {
 public:
  // `model` must outlive this.
  DeviceTime(const KernelModel& model, const Device& device)
      : model_(&model), made_by_amd_(device.vendor == "AMD") {}

  // `seen`: the kernels that a trace shows for it; none: not known.
  [[nodiscard]] Estimate of(const Operation& operation, const PricedOperation& priced,
                            const SeenKernels& seen = {});

 private:
  // PyTorch lets cuDNN convolve fp32 tensors on TF32 units where a GPU has them, unless kernels were seen that do not.
  [[nodiscard]] DType dtype_as_run(DType dtype, const SeenKernels& seen) const;
  [[nodiscard]] Estimate without_launch(const Operation& operation, const PricedOperation& priced);
  [[nodiscard]] double floor_us(const Operation& operation, std::string_view record);

  const KernelModel* model_;
  bool made_by_amd_;
  std::map<std::string, double, std::less<>> floors_;  // by record and family
};

// The time of a convolution on the GPU, by the algorithm that runs it.
//
//   direct:    an implicit matrix product [batch oh ow, c kh kw] x [c kh kw, out], as tiles on the SMs; channels
//              are padded to what matrix units load at once.
//   Winograd:  3x3, stride 1. Tiles of 4x4 outputs take 36 multiplications for 144: input, filter and output
//              are transformed through memory, between them 36 products [tiles, c] x [c, out] (Lavin and Gray,
//              CVPR 2016). In one kernel: tiles of 2x2 outputs, 16 for 36.
//
// Copies into another layout come on top where a trace shows them. Gradients of input and weights are products
// of the same size with their extents exchanged.

// `seen`: the kernels of a trace, from which algorithm, layout copies and the gradients that were computed are
// read; empty: a library's usual choice. `made_by_amd`: whose library it is.
[[nodiscard]] double convolution_us(const ConvolutionShape& shape, DType dtype, Direction direction,
                                    const DeviceFigures& device, const SeenKernels& seen, bool made_by_amd);

// The kernels that PyTorch's libraries usually take for an operation on tensors in its own layout, where no trace shows
// them: `matrix_units`: the GPU has some for the type.
[[nodiscard]] SeenKernels usual_kernels(const Operation& operation, bool made_by_amd, bool matrix_units);

}  // namespace stepcast
