"""The section `device`: measured rates of a device, for its platform file."""

from __future__ import annotations

import time
from typing import Callable, List

import torch

from stepcast.collect.kernels.case import Bench, Scope, torch_dtype
from stepcast.collect.run import Item, Row, Run
from stepcast.collect.skip import Skip
from stepcast.collect.timing import Effort

RATE_COLUMNS = ["gpu", "quantity", "value", "software", "case"]


def run_device_rates(run: Run, scope: Scope, bench: Bench) -> None:
    """Raises TimeIsUp."""
    seconds = 0.05 if scope.cpu else 0.5
    items = [Item("copy_GBps", 1, lambda: _copy(bench, scope, seconds)),
             Item("kernel_floor_us", 0.5, lambda: _floor(bench))]
    for dtype in ("fp32", "tf32", "fp16", "bf16"):
        items.append(Item(f"gemm_{dtype}_TFLOPs", 3 * seconds, lambda dtype=dtype: _gemm(bench, scope, dtype, seconds)))
    for to_device in (True, False):
        name = f"host_link_{'h2d' if to_device else 'd2h'}_GBps"
        items.append(Item(name, 1, lambda name=name, to_device=to_device: _host_link(bench, name, to_device)))
    run.section("device", "rates.csv", RATE_COLUMNS, items)


def _row(quantity: str, value: float) -> Row:
    return {"quantity": quantity, "value": value}


def _copy(bench: Bench, scope: Scope, seconds: float) -> List[Row]:
    """Rate of a copy that exceeds all caches, in 1e9 bytes read and written per second."""
    n = (1 << 26) if scope.cpu else (1 << 28)
    bench.machine.require_memory(8.0 * n)
    x = bench.normal(n)
    y = torch.empty_like(x)
    timing = bench.timer.measure(lambda: y.copy_(x), Effort(budget_s=seconds, least=5))
    return [_row("copy_GBps", 8.0 * n / timing.time_us / 1e3)]


def _floor(bench: Bench) -> List[Row]:
    """The shortest measured kernel time, in us."""
    x = bench.normal(32)
    return [_row("kernel_floor_us", bench.timer.measure(lambda: x.mul_(1.0), Effort(budget_s=0.05)).p10_us)]


def _gemm(bench: Bench, scope: Scope, dtype: str, seconds: float) -> List[Row]:
    """The largest rate of several square GEMMs, and the sustained rate of the largest one."""
    if scope.cpu and dtype != "fp32":
        raise Skip("rates of other types than fp32 say nothing on a CPU")
    rows, best, call, flops = [], 0.0, None, 0.0
    for n in (256, 512) if scope.cpu else (2048, 4096, 8192):
        a, b = bench.normal(n, n, dtype=dtype), bench.normal(n, n, dtype=dtype, scale=n**-0.5)
        torch_dtype(dtype)
        call = _in_mode(bench, dtype, lambda a=a, b=b: a.mm(b))
        flops = 2.0 * n**3
        timing = bench.timer.measure(call, Effort(budget_s=0.1, least=3, most=30))
        best = max(best, flops / timing.time_us / 1e6)
    rows.append(_row(f"gemm_{dtype}_TFLOPs", best))
    rows.append(_row(f"gemm_{dtype}_sustained_TFLOPs", flops / _sustained_us(bench, call, 2 * seconds) / 1e6))
    return rows


def _in_mode(bench: Bench, dtype: str, call: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
    if dtype != "tf32" or not bench.machine.is_cuda:
        return call

    def run() -> torch.Tensor:
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            return call()
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False
    return run


def _sustained_us(bench: Bench, call: Callable[[], object], seconds: float) -> float:
    """Mean time in the second half of `seconds` of uninterrupted work, when clocks have settled to the power limit."""
    halves = []
    for _ in range(2):
        n, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds / 2:
            for _ in range(4):
                call()
            bench.timer.synchronize()
            n += 4
        halves.append((time.perf_counter() - start) / n * 1e6)
    return halves[1]


def _host_link(bench: Bench, name: str, to_device: bool) -> List[Row]:
    """Bandwidth between pinned host memory and the device, in 1e9 bytes per second."""
    if not bench.machine.is_cuda:
        raise Skip("no device to copy to")
    n = 256 << 20
    host = torch.randint(-128, 128, (n,), dtype=torch.int8).pin_memory()
    device = host.to(bench.device)
    source, target = (host, device) if to_device else (device, host)
    timing = bench.timer.measure(lambda: target.copy_(source, non_blocking=True), Effort(budget_s=0.3, least=5))
    return [_row(name, n / timing.time_us / 1e3)]
