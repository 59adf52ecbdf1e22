"""Traces of a few steps: Kineto traces of the profiler, and an execution trace of one step if PyTorch supports it."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

import torch
from torch import profiler

# Limit for a compressed trace. A larger one is recorded again with a single step, then given up.
MAX_TRACE_BYTES = 3 << 20


@dataclass(frozen=True)
class Traces:
    """Paths relative to the folder of the run; empty if there is no such trace, with the reason in `note`."""

    kineto: str = ""
    execution: str = ""
    note: str = ""


def record(step: Callable[[], object], out: Path, stem: str, cuda: bool, n_steps: int = 3,
           max_bytes: int = MAX_TRACE_BYTES) -> Traces:
    """Traces of `n_steps` calls of `step`, as OUT/STEM.kineto.json.gz and OUT/STEM.et.json.gz."""
    kineto, execution = out / f"{stem}.kineto.json.gz", out / f"{stem}.et.json.gz"
    kineto.parent.mkdir(parents=True, exist_ok=True)
    notes = []
    for n in dict.fromkeys((n_steps, 1)):
        note = _record_once(step, kineto, execution, cuda, n)
        if kineto.stat().st_size <= max_bytes:
            break
    notes += [note] if note else []
    for path in (kineto, execution):
        if path.exists() and path.stat().st_size > max_bytes:
            notes.append(f"{path.name} is larger than {max_bytes >> 20} MiB, removed")
            path.unlink()
    return Traces(_relative(kineto, out), _relative(execution, out), "; ".join(notes))


def _record_once(step: Callable[[], object], kineto: Path, execution: Path, cuda: bool, n_steps: int) -> str:
    """One recording. Returns also what could not be recorded."""
    execution.unlink(missing_ok=True)
    plain = execution.with_suffix("")  # the observer cannot write gzip
    observer, note = _observer(plain)
    activities = [profiler.ProfilerActivity.CPU] + ([profiler.ProfilerActivity.CUDA] if cuda else [])
    schedule = profiler.schedule(wait=0, warmup=2, active=n_steps, repeat=1)
    with profiler.profile(activities=activities, schedule=schedule, record_shapes=True) as recording:
        for i in range(2 + n_steps):
            # The execution trace is that of the last step, when the profiler has settled. The profiler records this step too.
            last = i == 1 + n_steps
            if last and observer is not None:
                observer.start()
            step()
            if cuda:
                torch.cuda.synchronize()
            if last and observer is not None:
                observer.stop()
            recording.step()
    if observer is not None:
        observer.unregister_callback()
    recording.export_chrome_trace(str(kineto))
    if plain.exists():
        with open(plain, "rb") as source, gzip.open(execution, "wb") as target:
            shutil.copyfileobj(source, target)
        plain.unlink()
    return note


def _observer(path: Path) -> "tuple[Optional[Any], str]":
    """The observer of execution traces, or the reason why there is none."""
    kind = getattr(profiler, "ExecutionTraceObserver", None)
    if kind is None:
        return None, f"PyTorch {torch.__version__} has no ExecutionTraceObserver"
    try:
        observer = kind()
        observer.register_callback(str(path))
    except Exception as error:
        return None, f"no execution trace: {error}"
    return observer, ""


def _relative(path: Path, out: Path) -> str:
    return path.relative_to(out).as_posix() if path.exists() else ""
