"""Two-dimensional convolutions; the two gradients are measured separately."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import torch
from torch.nn import functional

from stepcast.collect.kernels.case import ELEMENT_BYTES, Bench, Case, Prepared, Scope, draw
from stepcast.collect.sampling import Sampler
from stepcast.collect.skip import Skip


def plan(scope: Scope) -> List[Case]:
    cases: List[Case] = []
    for dtype in scope.dtypes:
        sampler = Sampler(scope.seed, f"conv2d/{dtype}")
        cases += draw(scope.count(36, least=4), lambda: _case(scope, sampler, dtype))
    return cases


def _case(scope: Scope, sampler: Sampler, dtype: str) -> Optional[Case]:
    kernel = sampler.choice((1, 1, 3, 3, 3, 5, 7))
    side = sampler.choice((7, 14, 28, 56, 112, 224, sampler.extent(7, 256, 1)))
    c_in = 3 if kernel == 7 else sampler.extent(16, 2048, sampler.choice((64, 64, 8, 1)))
    c_out = sampler.extent(16, 2048, sampler.choice((64, 64, 8, 1)))
    shape = {"batch": sampler.extent(1, 256, 1), "in_channels": c_in, "out_channels": c_out, "height": side,
             "width": side, "kernel_height": kernel, "kernel_width": kernel, "stride": sampler.choice((1, 1, 1, 2)),
             "padding": kernel // 2}
    pixels = shape["batch"] * side * side
    needed = 4.0 * ELEMENT_BYTES[dtype] * pixels * (c_in + c_out)
    flops = 2.0 * pixels / shape["stride"] ** 2 * c_in * c_out * kernel**2
    if needed > scope.max_bytes or flops > scope.max_flops(dtype) / 2 or shape["stride"] > side:
        return None
    return Case("conv2d", dtype, shape, needed * 2, lambda bench: _prepare(bench, dtype, shape))


def _prepare(bench: Bench, dtype: str, shape: Dict[str, Any]) -> Prepared:
    if not hasattr(torch.ops.aten, "convolution_backward"):
        raise Skip(f"PyTorch {torch.__version__} has no convolution_backward")
    stride, padding = [shape["stride"]] * 2, [shape["padding"]] * 2
    x = bench.normal(shape["batch"], shape["in_channels"], shape["height"], shape["width"], dtype=dtype)
    fan_in = shape["in_channels"] * shape["kernel_height"] * shape["kernel_width"]
    w = bench.normal(shape["out_channels"], shape["in_channels"], shape["kernel_height"], shape["kernel_width"],
                     dtype=dtype, scale=fan_in**-0.5)
    g = torch.randn_like(functional.conv2d(x, w, None, stride, padding))

    def gradient(of_input: bool) -> Any:
        mask = [of_input, not of_input, False]
        return lambda: torch.ops.aten.convolution_backward(g, x, w, None, stride, padding, [1, 1], False, [0, 0], 1,
                                                           mask)
    return Prepared({"forward": lambda: functional.conv2d(x, w, None, stride, padding),
                     "input_gradient": gradient(True), "weight_gradient": gradient(False)})
