// The time of a kernel on the GPU alone, as a profiler shows it, from models of benchmark measurements.
//
// Benchmarks of frameworks time one call after the other: an operation shorter than its launch by the host
// takes as long as the launch (12 to 90 us in the tables that records were fitted to). A trace has the
// launches as host time already, so a kernel priced with them would count them twice.
//
//   DeviceTime device{kernels.model(), platform.device};
//   device.of(operation, kernels.price(operation))
//
// The floor of a record is its answer for nearly no work: the launch and the shortest kernel. The launch is
// subtracted. Near the floor only the closed form of the analytic model remains; between there and a kernel
// as long as the launch, both times are blended in proportion to the logarithm.
//
// Where a trace names the kernels (kernel_implementation.h), the names refine the answer: convolutions have a
// closed form per algorithm, pooling and batch norm have rates per implementation.
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

// Caches the floors of records, so it is not thread-safe: use one per thread.
class DeviceTime {
 public:
  // `model` must outlive this.
  DeviceTime(const KernelModel& model, const Device& device)
      : model_(&model), made_by_amd_(device.vendor == "AMD") {}

  // The time on the device. `seen`: the kernels that a trace shows for the operation; empty: unknown.
  [[nodiscard]] Estimate of(const Operation& operation, const PricedOperation& priced,
                            const SeenKernels& seen = {});

 private:
  // The dtype of the arithmetic: PyTorch lets cuDNN convolve fp32 tensors on TF32 units where a GPU has them,
  // unless the kernels seen on this GPU do not use them.
  [[nodiscard]] DType dtype_as_run(DType dtype, const SeenKernels& seen) const;
  // The priced time without the launch of the benchmark.
  [[nodiscard]] Estimate without_launch(const Operation& operation, const PricedOperation& priced);
  // Time of the record for nearly no work; 0 where another record answers for it.
  [[nodiscard]] double floor_us(const Operation& operation, std::string_view record);

  const KernelModel* model_;
  bool made_by_amd_;
  std::map<std::string, double, std::less<>> floors_;  // by record and family
};

// Time in us of a convolution on the GPU, by algorithm.
//
//   direct:    an implicit GEMM [batch oh ow, c kh kw] x [c kh kw, out], as tiles on the SMs; channels are
//              padded to the number that matrix units load at once.
//   Winograd:  3x3, stride 1. Tiles of 4x4 outputs take 36 multiplications instead of 144: input, filter and
//              output are transformed through memory, with 36 GEMMs [tiles, c] x [c, out] between (Lavin and
//              Gray, CVPR 2016). Fused in one kernel: tiles of 2x2 outputs, 16 multiplications instead of 36.
//
// Copies into another layout are added where a trace shows them. Gradients of input and weights are GEMMs of
// the same size with their extents permuted. `seen`: the kernels of a trace; they give the algorithm, the
// layout copies and the gradients that were computed; empty: a usual choice of the library. `made_by_amd`:
// MIOpen instead of cuDNN.
[[nodiscard]] double convolution_us(const ConvolutionShape& shape, DType dtype, Direction direction,
                                    const DeviceFigures& device, const SeenKernels& seen, bool made_by_amd);

// The kernels that PyTorch's libraries usually choose for an operation on tensors in PyTorch's layout; used
// where no trace shows them. `matrix_units`: the GPU has matrix units for the type.
[[nodiscard]] SeenKernels usual_kernels(const Operation& operation, bool made_by_amd, bool matrix_units);

}  // namespace stepcast
