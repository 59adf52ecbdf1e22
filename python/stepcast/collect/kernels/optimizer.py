"""Optimizer steps on random parameters, with the implementations of this PyTorch."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import torch

from stepcast.collect.kernels.case import Bench, Case, Prepared, Scope, draw
from stepcast.collect.sampling import Sampler
from stepcast.collect.skip import Skip

# Bytes per parameter that one step reads and writes in fp32: weight, gradient, states.
_BYTES = {"adam": (16, 12), "adamw": (16, 12), "sgd": (8, 4), "momentum_sgd": (12, 8)}


def plan(scope: Scope) -> List[Case]:
    cases: List[Case] = []
    for op, implementation, full in (("adam", "fused", 14), ("adam", "foreach", 8), ("adamw", "fused", 10),
                                     ("sgd", "fused", 8), ("sgd", "foreach", 6), ("momentum_sgd", "fused", 8),
                                     ("momentum_sgd", "foreach", 6)):
        sampler = Sampler(scope.seed, f"{op}/{implementation}")
        cases += draw(scope.count(full), lambda: _case(scope, sampler, op, implementation))
    return cases


def _case(scope: Scope, sampler: Sampler, op: str, implementation: str) -> Optional[Case]:
    parameters, tensors = sampler.extent(10_000, 500_000_000, 1), sampler.extent(1, 400, 1)
    size = parameters // tensors
    if size < 64 or 32.0 * parameters > 2 * scope.max_bytes:
        return None
    read, written = _BYTES[op]
    shape = {"parameters": size * tensors, "tensors": tensors, "implementation": implementation,
             "bytes_read_per_parameter": read, "bytes_written_per_parameter": written}
    return Case(op, "fp32", shape, 32.0 * parameters, lambda bench: _prepare(bench, op, implementation, size, tensors),
                label=f"{op}_{implementation}")


def _prepare(bench: Bench, op: str, implementation: str, size: int, tensors: int) -> Prepared:
    weights = [bench.normal(size, scale=0.02, grad=True) for _ in range(tensors)]
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    # Small steps, so that the weights hardly change over many repetitions.
    options: Dict[str, Any] = {"lr": 1e-6, implementation: True}
    if op == "momentum_sgd":
        options["momentum"] = 0.9
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}.get(op, torch.optim.SGD)
    try:
        optimizer = kind(weights, **options)
        optimizer.step()
    except (TypeError, RuntimeError) as error:
        if "out of memory" in str(error):
            raise
        where = "on a GPU" if bench.machine.is_cuda else "on a CPU"
        raise Skip(f"PyTorch {torch.__version__} has no {implementation} {kind.__name__} {where}") from None
    return Prepared({"forward": optimizer.step})
