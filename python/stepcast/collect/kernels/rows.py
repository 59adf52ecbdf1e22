"""Operations on rows: norms, softmax, cross entropy, sums."""

from __future__ import annotations

from typing import Callable, Dict, List, Optional

import torch
from torch.nn import functional

from stepcast.collect.kernels.case import ELEMENT_BYTES, Bench, Case, Prepared, Scope, draw, gradient_of
from stepcast.collect.sampling import Sampler
from stepcast.collect.skip import Skip

Prepare = Callable[[Bench, str, int, int], Prepared]


def plan(scope: Scope) -> List[Case]:
    cases: List[Case] = []
    for label, (op, shape, full, prepare) in _KINDS.items():
        for dtype in scope.dtypes:
            sampler = Sampler(scope.seed, f"{label}/{dtype}")
            n = scope.count(full, least=24 if scope.cpu and label == "layer_norm" else 0)
            cases += draw(n, lambda: _case(scope, sampler, op, label, dtype, shape, prepare))
    for dtype in scope.dtypes:
        sampler = Sampler(scope.seed, f"batch_norm/{dtype}")
        cases += draw(scope.count(14), lambda: _batch_norm_case(scope, sampler, dtype))
    return cases


def _case(scope: Scope, sampler: Sampler, op: str, label: str, dtype: str, extra: Dict[str, int],
          prepare: Prepare) -> Optional[Case]:
    if op == "cross_entropy":
        rows, cols = sampler.extent(64, 32768), sampler.extent(1000, 131072)
    elif op in ("softmax", "log_softmax"):
        rows, cols = sampler.extent(64, 4_000_000, 1), sampler.extent(32, 16384)
    else:
        rows, cols = sampler.extent(64, 262144), sampler.extent(64, 16384)
    needed = 10.0 * ELEMENT_BYTES[dtype] * rows * cols
    if needed > scope.max_bytes:
        return None
    return Case(op, dtype, {"rows": rows, "cols": cols, **extra}, needed,
                lambda bench: prepare(bench, dtype, rows, cols), label=label)


def _batch_norm_case(scope: Scope, sampler: Sampler, dtype: str) -> Optional[Case]:
    channels, side, images = sampler.extent(16, 2048), sampler.choice((7, 14, 28, 56)), sampler.extent(1, 512, 1)
    cols = images * side**2
    needed = 10.0 * ELEMENT_BYTES[dtype] * channels * cols
    if needed > scope.max_bytes:
        return None
    return Case("batch_norm", dtype, {"rows": channels, "cols": cols}, needed,
                lambda bench: _batch_norm(bench, dtype, channels, images, side))


def _both(forward: Callable[[], torch.Tensor], inputs: List[torch.Tensor]) -> Prepared:
    output = forward()
    return Prepared({"forward": forward, "backward": gradient_of(output, inputs, torch.randn_like(output))})


def _layer_norm(bench: Bench, dtype: str, rows: int, cols: int) -> Prepared:
    x = bench.normal(rows, cols, dtype=dtype, grad=True)
    w, b = bench.normal(cols, dtype=dtype, grad=True), bench.normal(cols, dtype=dtype, grad=True)
    return _both(lambda: functional.layer_norm(x, (cols,), w, b), [x, w, b])


def _rms_norm(bench: Bench, dtype: str, rows: int, cols: int) -> Prepared:
    """Written as in models without a fused kernel: in fp32, whatever the type of the activations."""
    x, w = bench.normal(rows, cols, dtype=dtype, grad=True), bench.normal(cols, dtype=dtype, grad=True)

    def forward() -> torch.Tensor:
        wide = x.float()
        return w * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)
    return _both(forward, [x, w])


def _rms_norm_fused(bench: Bench, dtype: str, rows: int, cols: int) -> Prepared:
    if not hasattr(torch.ops.aten, "_fused_rms_norm"):
        raise Skip(f"PyTorch {torch.__version__} has no fused RMS norm")
    x, w = bench.normal(rows, cols, dtype=dtype, grad=True), bench.normal(cols, dtype=dtype, grad=True)
    return _both(lambda: functional.rms_norm(x, (cols,), w, 1e-6), [x, w])


def _softmax(bench: Bench, dtype: str, rows: int, cols: int) -> Prepared:
    x = bench.normal(rows, cols, dtype=dtype, grad=True)
    return _both(lambda: functional.softmax(x, -1), [x])


def _log_softmax(bench: Bench, dtype: str, rows: int, cols: int) -> Prepared:
    x = bench.normal(rows, cols, dtype=dtype, grad=True)
    return _both(lambda: functional.log_softmax(x, -1), [x])


def _cross_entropy(bench: Bench, dtype: str, rows: int, cols: int) -> Prepared:
    """A loss per row with a random gradient. The gradient of a mean, 1 / rows, would vanish in fp16."""
    x = bench.normal(rows, cols, dtype=dtype, grad=True)
    target = torch.randint(0, cols, (rows,), device=bench.device)
    return _both(lambda: functional.cross_entropy(x, target, reduction="none"), [x])


def _reduction(bench: Bench, dtype: str, rows: int, cols: int) -> Prepared:
    x = bench.normal(rows, cols, dtype=dtype)
    return Prepared({"forward": lambda: x.sum(-1)})


def _batch_norm(bench: Bench, dtype: str, channels: int, images: int, side: int) -> Prepared:
    x = bench.normal(images, channels, side, side, dtype=dtype, grad=True)
    w, b = bench.normal(channels, grad=True), bench.normal(channels, grad=True)
    mean, variance = bench.normal(channels), bench.normal(channels).abs_().add_(0.5)
    return _both(lambda: functional.batch_norm(x, mean, variance, w, b, training=True), [x, w, b])


# Label -> operation, further shape columns, cases of a complete run per element type, what to run.
_KINDS: "dict[str, tuple[str, Dict[str, int], int, Prepare]]" = {
    "layer_norm": ("layer_norm", {}, 16, _layer_norm),
    "rms_norm": ("rms_norm", {"fused": 0}, 12, _rms_norm),
    "rms_norm_fused": ("rms_norm", {"fused": 1}, 12, _rms_norm_fused),
    "softmax": ("softmax", {}, 14, _softmax),
    "log_softmax": ("log_softmax", {}, 6, _log_softmax),
    "cross_entropy": ("cross_entropy", {"fused": 0}, 10, _cross_entropy),
    "reduction": ("reduction", {}, 8, _reduction),
}
