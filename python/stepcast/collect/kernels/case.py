"""Common parts of all kernel families: cases, limits of random shapes, and the bench."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional

import torch

from stepcast.collect.machine import Machine
from stepcast.collect.skip import Skip
from stepcast.collect.timing import Effort, Timer

Call = Callable[[], object]

ELEMENT_BYTES = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}


@dataclass
class Prepared:
    """Calls to time by direction, and shape columns that are known only after the draw (distinct fraction of a batch)."""

    calls: Dict[str, Call]
    columns: Dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One operation with one shape. `prepare` allocates its tensors, `needed_bytes` of device memory."""

    op: str
    dtype: str
    shape: Dict[str, Any]
    needed_bytes: float
    prepare: Callable[["Bench"], Prepared]
    label: str = ""

    @property
    def name(self) -> str:
        """Unique in a plan: `gemm/bf16/m=8192,n=4096,k=1024`."""
        extents = ",".join(f"{key}={value}" for key, value in self.shape.items())
        return f"{self.label or self.op}/{self.dtype}/{extents}"


@dataclass(frozen=True)
class Scope:
    """The range of random cases. It depends only on the call, so that a resumed run has the same plan."""

    seed: int = 1
    quick: bool = False
    cpu: bool = False

    def count(self, full: int, least: int = 0) -> int:
        """The number of cases to draw, given the number `full` of a complete run on a GPU."""
        divisor = (10 if self.quick else 4) if self.cpu else (6 if self.quick else 1)
        return max(least or (4 if self.cpu else 2), -(-full // divisor))

    @property
    def max_bytes(self) -> float:
        """Limit for all tensors of a case."""
        return 24e6 if self.cpu else 4e9

    def max_flops(self, dtype: str) -> float:
        """Limit for a forward GEMM."""
        if self.cpu:
            return 3e8
        return 4e12 if dtype == "fp32" else 2e13

    @property
    def dtypes(self) -> "tuple[str, ...]":
        """Element types of memory-bound operations."""
        return ("fp32",) if self.cpu and self.quick else ("fp32", "bf16", "fp16")

    @property
    def effort(self) -> Effort:
        if self.cpu:
            return Effort(budget_s=0.012, warm_up_s=0.004, least=3, most=15) if self.quick else Effort(
                budget_s=0.05, warm_up_s=0.01, least=5, most=30)
        return Effort(budget_s=0.04) if self.quick else Effort()


class Bench:
    """Allocates inputs and times calls on one machine."""

    def __init__(self, machine: Machine, timer: Timer, effort: Effort) -> None:
        self.machine = machine
        self.timer = timer
        self.effort = effort

    @property
    def device(self) -> torch.device:
        return self.machine.device

    def normal(self, *shape: int, dtype: str = "fp32", scale: float = 1.0, grad: bool = False) -> torch.Tensor:
        """Random normal numbers. Zeros would be misleading, because chips run faster on them than on real data."""
        tensor = torch.randn(shape, device=self.device)
        if scale != 1.0:
            tensor.mul_(scale)
        return tensor.to(torch_dtype(dtype)).requires_grad_(grad)


def torch_dtype(name: str) -> torch.dtype:
    """The storage type for `name`. Raises Skip if this PyTorch does not have it."""
    attribute = {"fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp8": "float8_e4m3fn",
                 "int8": "int8"}[name]
    if not hasattr(torch, attribute):
        raise Skip(f"PyTorch {torch.__version__} has no {attribute}")
    return getattr(torch, attribute)


def gradient_of(output: torch.Tensor, inputs: List[torch.Tensor], upstream: torch.Tensor) -> Call:
    """The backward of a single operation, with a given gradient of its output.

    `upstream` is random normal of order 1. The gradient of a mean loss would be divided by the number of elements, which half
    precision rounds to zero, and GEMMs of zeros run at higher clocks than real training.
    """
    return lambda: torch.autograd.grad(output, inputs, upstream, retain_graph=True)


def draw(n: int, make: Callable[[], Optional[Case]], most_tries: int = 50) -> List[Case]:
    """`n` different cases. Draws that are None (too large) or repeated are drawn again."""
    found: Dict[str, Case] = {}
    for _ in range(n * most_tries):
        if len(found) == n:
            break
        case = make()
        if case is not None:
            found.setdefault(case.name, case)
    return list(found.values())


def interleave(families: List[List[Case]], seed: int) -> List[Case]:
    """All cases in seeded random order, so that every part of a run contains cases of all families."""
    everything = list(itertools.chain.from_iterable(families))
    random.Random(f"{seed}/order").shuffle(everything)
    return everything
