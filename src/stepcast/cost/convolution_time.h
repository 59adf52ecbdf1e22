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
#pragma once

#include "stepcast/cost/device_figures.h"
#include "stepcast/cost/kernel_implementation.h"
#include "stepcast/operation/operation.h"

namespace stepcast {

// `seen`: the kernels of a trace, from which algorithm, layout copies and the gradients that were computed are
// read; empty: a library's usual choice. `made_by_amd`: whose library it is.
[[nodiscard]] double convolution_us(const ConvolutionShape& shape, DType dtype, Direction direction,
                                    const DeviceFigures& device, const SeenKernels& seen, bool made_by_amd);

}  // namespace stepcast
