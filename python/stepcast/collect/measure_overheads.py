"""The section `overheads`: costs of the host.

Records traces of small, host-bound models, from which `stepcast` takes the overheads T1 to T5; and measures latencies of
launches and gaps between kernels.
"""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

import torch

from stepcast.collect import schema, traces
from stepcast.collect.kernels.case import Bench, Scope
from stepcast.collect.measure_steps import build
from stepcast.collect.models.dlrm import seeded_tables
from stepcast.collect.models.transformer import TransformerShape
from stepcast.collect.run import Item, Row, Run
from stepcast.collect.skip import Skip
from stepcast.collect.step_cases import ResNetShape, StepCase
from stepcast.collect.timing import Timing, summarize


def run_overheads(run: Run, scope: Scope, bench: Bench) -> None:
    """Raises TimeIsUp."""
    items = [Item("dispatch", 1, lambda: [_row("dispatch_of_an_operator", _dispatch(bench))]),
             Item("launches", 4, lambda: _launches(run, bench)),
             Item("events", 1, lambda: [_row("between_two_events", _between_events(bench))]),
             Item("synchronize", 1, lambda: [_row("synchronize_idle_device", _synchronize(bench))])]
    for case in _small_models(scope):
        items.append(Item(f"trace/{case.name}", 1 if scope.cpu else 8, lambda case=case: _trace(case, run, scope)))
    run.section("overheads", "overheads.csv", schema.OVERHEAD_COLUMNS, items)


def _row(quantity: str, timing: Timing) -> Row:
    return {"quantity": quantity, "time_us": timing.time_us, "time_us_p10": timing.p10_us,
            "time_us_p90": timing.p90_us, "n": timing.n}


def _small_models(scope: Scope) -> List[StepCase]:
    """Models with kernels so short that the host determines the step time."""
    gpt2 = TransformerShape("gpt2", 256, 2 if scope.cpu else 12, 4, 1024, 1000, 128)
    cases = [StepCase("host_bound_gpt2", gpt2, 1, "fp32", "adamw", 32)]
    if not scope.cpu:
        cases.append(StepCase("host_bound_gpt2", gpt2, 1, "bf16", "adamw", 32))
        cases.append(StepCase("host_bound_resnet50", ResNetShape((3, 4, 6, 3), 64, 64), 2, "fp32", "momentum_sgd"))
    dlrm = seeded_tables(scope.seed, 100, small=True)
    return cases + [StepCase("host_bound_dlrm", dlrm, 16, "fp32", "sgd")]


def _trace(case: StepCase, run: Run, scope: Scope) -> List[Row]:
    """Records traces. The row has the step time without the profiler, which traces cannot show."""
    training = build(case, run.machine)
    for _ in range(3):
        training.step()
    times = []
    for _ in range(5 if scope.cpu else 20):
        if run.machine.is_cuda:
            torch.cuda.synchronize()
        start = time.perf_counter()
        training.step()
        if run.machine.is_cuda:
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e6)
    recorded = traces.record(training.step, run.out, f"traces/{case.name}", run.machine.is_cuda,
                             n_steps=1 if scope.cpu else 5)
    if not recorded.kineto:
        raise Skip(recorded.note)
    return [_row(f"step_of_{case.name}", summarize(times))]


def _dispatch(bench: Bench) -> Timing:
    """Host time of one operator on a tensor with one element; its results are not used."""
    x = bench.normal(1)
    times = []
    for _ in range(50):
        start = time.perf_counter()
        for _ in range(20):
            x.add_(1.0)
        times.append((time.perf_counter() - start) / 20 * 1e6)
        bench.timer.synchronize()
    return summarize(times)


def _require_cuda(bench: Bench) -> None:
    if not bench.machine.is_cuda:
        raise Skip("needs a GPU")


def _between_events(bench: Bench) -> Timing:
    """Time between two adjacent events, which is included in every time of kernels.csv."""
    _require_cuda(bench)
    return bench.timer.measure(lambda: None, bench.effort)


def _synchronize(bench: Bench) -> Timing:
    _require_cuda(bench)
    times = []
    for _ in range(50):
        torch.cuda.synchronize()
        start = time.perf_counter()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e6)
    return summarize(times)


def _launches(run: Run, bench: Bench) -> List[Row]:
    """Launch calls and kernels on an idle stream, and gaps on a full one, from a trace that is kept."""
    _require_cuda(bench)
    x = bench.normal(1024)

    def step() -> None:
        for _ in range(40):  # one at a time, so that the stream is idle
            x.mul_(1.0)
            torch.cuda.synchronize()
        torch.cuda._sleep(5_000_000)
        for _ in range(100):  # all are queued before the first one starts
            x.mul_(1.0)

    recorded = traces.record(step, run.out, "traces/launches", True, n_steps=2)
    if not recorded.kineto:
        raise Skip(recorded.note)
    events = read_kineto(run.out / recorded.kineto)
    return [_row(quantity, summarize(times)) for quantity, times in launch_times(events).items() if times]


def read_kineto(path: Path) -> List[Dict[str, Any]]:
    """The complete events of a Kineto trace. Old traces are a plain list."""
    with gzip.open(path, "rt", encoding="utf-8") as text:
        trace = json.load(text)
    events = trace if isinstance(trace, list) else trace["traceEvents"]
    return [event for event in events if event.get("ph") == "X"]


def launch_times(events: List[Dict[str, Any]]) -> Dict[str, List[float]]:
    """Times in us: launch calls, from the start of a call to the start of its kernel, and gaps in a full stream."""
    launches = {event["args"]["correlation"]: event for event in events
                if event.get("cat") == "cuda_runtime" and "LaunchKernel" in event["name"]}
    kernels = sorted((e for e in events if e.get("cat") == "kernel" and e["args"].get("correlation") in launches),
                     key=lambda event: event["ts"])
    times: Dict[str, List[float]] = {"launch_call": [], "launch_to_kernel_start": [], "gap_of_a_full_stream": [],
                                     "shortest_kernel": []}
    before_end = float("inf")
    for kernel in kernels:
        launch = launches[kernel["args"]["correlation"]]
        times["launch_call"].append(launch["dur"])
        times["shortest_kernel"].append(kernel["dur"])
        if launch["ts"] >= before_end:  # the stream was idle at the launch
            times["launch_to_kernel_start"].append(kernel["ts"] - launch["ts"])
        elif launch["ts"] + launch["dur"] < before_end < float("inf"):
            times["gap_of_a_full_stream"].append(kernel["ts"] - before_end)
        before_end = kernel["ts"] + kernel["dur"]
    return times
