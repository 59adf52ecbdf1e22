"""The time of a call: CUDA events on a GPU, the time of the calling thread on a CPU.

On a GPU, every repetition starts with an L2 cache full of other data, and after a pause in which the host queues the whole
call. So the time is that of the kernels, from the start of the first to the end of the last, without launch costs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Callable, List, Sequence

import torch


@dataclass(frozen=True)
class Timing:
    """Median and spread of repetitions, in us."""

    time_us: float
    p10_us: float
    p90_us: float
    n: int


@dataclass(frozen=True)
class Effort:
    """Limits of one measurement. Times in s; warm-up is limited separately."""

    budget_s: float = 0.06
    warm_up_s: float = 0.015
    least: int = 5
    most: int = 100


def quantile(ordered: Sequence[float], share: float) -> float:
    """A quantile of sorted values, with linear interpolation."""
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def summarize(times_us: Sequence[float]) -> Timing:
    """Median, 10th and 90th percentile. The least reported time is 1 ns."""
    ordered = sorted(max(t, 1e-3) for t in times_us)
    return Timing(quantile(ordered, 0.5), quantile(ordered, 0.1), quantile(ordered, 0.9), len(ordered))


class Timer:
    """Times calls on one device."""

    def __init__(self, device: torch.device, l2_bytes: int = 0) -> None:
        self.device = device
        self.is_cuda = device.type == "cuda"
        self._flush = None
        if self.is_cuda:
            # Random, like all data here: the power of a chip depends on the bits that change.
            n = 3 * max(l2_bytes, 64 << 20) // 4
            self._flush = torch.randint(-(1 << 30), 1 << 30, (n,), dtype=torch.int32, device=device)
            self._cycles_per_us = _sleep_cycles_per_us() if hasattr(torch.cuda, "_sleep") else 0.0

    @property
    def cache(self) -> str:
        """State of the last-level cache at the start of each repetition: `flushed` or `warm`."""
        return "flushed" if self.is_cuda else "warm"

    def synchronize(self) -> None:
        if self.is_cuda:
            torch.cuda.synchronize(self.device)

    def measure(self, call: Callable[[], object], effort: Effort) -> Timing:
        """Warms up, then repeats `call` within the limits of the effort."""
        call()
        self.synchronize()
        host_us, once_s, n_warm = self._warm_up(call, effort)
        n = max(effort.least, min(effort.most, int(effort.budget_s / max(once_s, 1e-7))))
        return summarize(self._events(call, n, host_us) if self.is_cuda else self._host(call, n))

    def _warm_up(self, call: Callable[[], object], effort: Effort) -> "tuple[float, float, int]":
        """Host time to queue one call in us, time of one call in s, and the number of calls."""
        n = 0
        queued_s = float("inf")
        start = time.perf_counter()
        while n < 2 or (n < 50 and time.perf_counter() - start < effort.warm_up_s):
            before = time.perf_counter()
            call()
            queued_s = min(queued_s, time.perf_counter() - before)
            self.synchronize()
            n += 1
        return queued_s * 1e6, (time.perf_counter() - start) / n, n

    def _events(self, call: Callable[[], object], n: int, host_us: float) -> List[float]:
        pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(n)]
        # Allows for a host that is slower than in its best repetition.
        pause_cycles = int((2 * host_us + 20) * self._cycles_per_us)
        for begin, end in pairs:
            self._flush.bitwise_not_()
            if pause_cycles > 0:
                torch.cuda._sleep(pause_cycles)
            begin.record()
            call()
            end.record()
        self.synchronize()
        return [begin.elapsed_time(end) * 1e3 for begin, end in pairs]

    def _host(self, call: Callable[[], object], n: int) -> List[float]:
        # Time of this thread, which does all the work, so that other programs do not count.
        times = []
        for _ in range(n):
            start = time.thread_time_ns()
            call()
            times.append((time.thread_time_ns() - start) * 1e-3)
        return times


def _sleep_cycles_per_us() -> float:
    """Measured cycles of torch.cuda._sleep per us. It counts a clock with a rate that differs between devices."""
    cycles = 2_000_000
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(cycles)
    begin.record()
    torch.cuda._sleep(cycles)
    end.record()
    torch.cuda.synchronize()
    return cycles / max(begin.elapsed_time(end) * 1e3, 1.0)
