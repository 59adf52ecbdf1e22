"""Element-wise operations: activations, dropout, rotary embedding, sums, multiplications, casts."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

import torch
from torch.nn import functional

from stepcast.collect.kernels.case import ELEMENT_BYTES, Bench, Case, Prepared, Scope, draw, gradient_of
from stepcast.collect.sampling import Sampler

Prepare = Callable[[Bench, str, int, int], Prepared]


def plan(scope: Scope) -> List[Case]:
    cases: List[Case] = []
    for op, (extra, full, prepare) in _KINDS.items():
        for dtype in scope.dtypes:
            sampler = Sampler(scope.seed, f"{op}/{dtype}")
            n = scope.count(full, least=24 if scope.cpu and op in ("add", "gelu") else 0)
            cases += draw(n, lambda: _case(scope, sampler, op, dtype, extra, prepare))
    return cases


def _case(scope: Scope, sampler: Sampler, op: str, dtype: str, extra: Dict[str, Any],
          prepare: Prepare) -> Optional[Case]:
    rows = sampler.extent(16, 1_000_000)
    cols = sampler.choice((64, 128)) if op == "rotary_unfused" else sampler.extent(64, 16384)
    needed = 12.0 * ELEMENT_BYTES[dtype] * rows * cols
    if needed > scope.max_bytes:
        return None
    return Case(op, dtype, {"rows": rows, "cols": cols, **extra}, needed,
                lambda bench: prepare(bench, dtype, rows, cols))


def _both(forward: Callable[[], torch.Tensor], inputs: List[torch.Tensor]) -> Prepared:
    output = forward()
    return Prepared({"forward": forward, "backward": gradient_of(output, inputs, torch.randn_like(output))})


def _unary(function: Callable[[torch.Tensor], torch.Tensor]) -> Prepare:
    def prepare(bench: Bench, dtype: str, rows: int, cols: int) -> Prepared:
        x = bench.normal(rows, cols, dtype=dtype, grad=True)
        return _both(lambda: function(x), [x])
    return prepare


def _add(bench: Bench, dtype: str, rows: int, cols: int) -> Prepared:
    # No backward: the gradient is passed on without a kernel.
    a, b = bench.normal(rows, cols, dtype=dtype), bench.normal(rows, cols, dtype=dtype)
    return Prepared({"forward": lambda: a + b})


def _multiply(bench: Bench, dtype: str, rows: int, cols: int) -> Prepared:
    a, b = (bench.normal(rows, cols, dtype=dtype, grad=True) for _ in range(2))
    return _both(lambda: a * b, [a, b])


def _gated_silu(bench: Bench, dtype: str, rows: int, cols: int) -> Prepared:
    a, b = (bench.normal(rows, cols, dtype=dtype, grad=True) for _ in range(2))
    return _both(lambda: functional.silu(a) * b, [a, b])


def _cast(bench: Bench, dtype: str, rows: int, cols: int) -> Prepared:
    x = bench.normal(rows, cols, dtype=dtype)
    to = torch.bfloat16 if dtype == "fp32" else torch.float32
    return Prepared({"forward": lambda: x.to(to)}, {"writes": 0.5 if dtype == "fp32" else 2.0})


def _rotary(bench: Bench, dtype: str, rows: int, head: int) -> Prepared:
    """For `rows` = tokens x heads, with the arithmetic of common model code: x cos + rotated(x) sin."""
    x = bench.normal(rows, head, dtype=dtype, grad=True)
    cos, sin = bench.normal(rows, head, dtype=dtype), bench.normal(rows, head, dtype=dtype)

    def forward() -> torch.Tensor:
        rotated = torch.cat((-x[:, head // 2:], x[:, :head // 2]), dim=-1)
        return x * cos + rotated * sin
    return _both(forward, [x])


# Operation -> further shape columns, cases of a complete run per element type, what to run.
_KINDS: "dict[str, tuple[Dict[str, Any], int, Prepare]]" = {
    "add": ({}, 14, _add),
    "multiply": ({}, 10, _multiply),
    "multiply_scalar": ({}, 6, _unary(lambda x: x * 0.7)),
    "cast": ({}, 8, _cast),
    "relu": ({}, 8, _unary(functional.relu)),
    "gelu": ({}, 12, _unary(functional.gelu)),
    # silu and multiplication as two kernels: the first writes what the second reads.
    "gated_silu": ({"reads": 3, "writes": 2}, 10, _gated_silu),
    "dropout": ({}, 10, _unary(lambda x: functional.dropout(x, 0.1, training=True))),
    "rotary_unfused": ({}, 8, _rotary),
}
