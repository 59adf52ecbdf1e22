"""Data movement without computation: copies, transposition, concatenation, transfers between host and device."""

from __future__ import annotations

from typing import List, Optional

import torch

from stepcast.collect.kernels.case import ELEMENT_BYTES, Bench, Case, Prepared, Scope, draw
from stepcast.collect.sampling import Sampler
from stepcast.collect.skip import Skip


def plan(scope: Scope) -> List[Case]:
    cases: List[Case] = []
    for op, full in (("copy", 12), ("transpose", 14), ("concatenate", 10), ("fill", 5)):
        for dtype in scope.dtypes:
            sampler = Sampler(scope.seed, f"{op}/{dtype}")
            cases += draw(scope.count(full), lambda: _case(scope, sampler, op, dtype))
    for op in ("memcpy_h2d", "memcpy_d2h", "memcpy_d2d"):
        for pinned in (1, 0) if op != "memcpy_d2d" else (1,):
            sampler = Sampler(scope.seed, f"{op}/{pinned}")
            n = scope.count(14) if not scope.cpu else 1
            cases += draw(n, lambda: _transfer_case(scope, sampler, op, pinned))
    return cases


def _case(scope: Scope, sampler: Sampler, op: str, dtype: str) -> Optional[Case]:
    rows, cols = sampler.extent(16, 262144), sampler.extent(16, 16384)
    needed = 3.0 * ELEMENT_BYTES[dtype] * rows * cols
    if needed > scope.max_bytes:
        return None
    if op == "concatenate":
        parts = sampler.choice((2, 2, 3, 8, 27))
        cols = max(cols // parts, 1) * parts
        return Case(op, dtype, {"elements": rows * cols, "inner": cols // parts}, needed,
                    lambda bench: _concatenate(bench, dtype, rows, cols, parts))
    return Case(op, dtype, {"rows": rows, "cols": cols}, needed, lambda bench: _move(bench, op, dtype, rows, cols))


def _move(bench: Bench, op: str, dtype: str, rows: int, cols: int) -> Prepared:
    x = bench.normal(rows, cols, dtype=dtype)
    y = torch.empty_like(x)
    if op == "copy":
        return Prepared({"forward": lambda: y.copy_(x)})
    if op == "fill":
        return Prepared({"forward": lambda: y.fill_(1.5)})
    return Prepared({"forward": lambda: x.t().contiguous()})


def _concatenate(bench: Bench, dtype: str, rows: int, cols: int, parts: int) -> Prepared:
    pieces = [bench.normal(rows, cols // parts, dtype=dtype) for _ in range(parts)]
    return Prepared({"forward": lambda: torch.cat(pieces, dim=1)})


def _transfer_case(scope: Scope, sampler: Sampler, op: str, pinned: int) -> Case:
    n_bytes = sampler.extent(1024, 1 << 20 if scope.cpu else 1 << 29, 1)
    return Case(op, "int8", {"bytes": n_bytes, "pinned": pinned}, 2.0 * n_bytes,
                lambda bench: _transfer(bench, op, n_bytes, bool(pinned)))


def _transfer(bench: Bench, op: str, n_bytes: int, pinned: bool) -> Prepared:
    if not bench.machine.is_cuda:
        raise Skip("no device to copy to")
    on_device = torch.randint(-128, 128, (n_bytes,), dtype=torch.int8, device=bench.device)
    if op == "memcpy_d2d":
        target = torch.empty_like(on_device)
        return Prepared({"forward": lambda: target.copy_(on_device)})
    on_host = torch.randint(-128, 128, (n_bytes,), dtype=torch.int8)
    if pinned:
        on_host = on_host.pin_memory()
    if op == "memcpy_h2d":
        return Prepared({"forward": lambda: on_device.copy_(on_host, non_blocking=pinned)})
    return Prepared({"forward": lambda: on_host.copy_(on_device, non_blocking=pinned)})
