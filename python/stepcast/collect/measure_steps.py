"""The section `steps`: times of training steps without the profiler, then traces of some of them."""

from __future__ import annotations

import contextlib
import gc
import time
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, List

import torch
from torch import nn

from stepcast.collect import schema, step_cases, traces
from stepcast.collect.files import write_json
from stepcast.collect.kernels.case import Scope
from stepcast.collect.machine import Machine
from stepcast.collect.models.dlrm import Dlrm, DlrmShape, make_batch
from stepcast.collect.models.resnet import ResNet
from stepcast.collect.models.transformer import Transformer, TransformerShape, library_model
from stepcast.collect.run import Item, Row, Run
from stepcast.collect.step_cases import ResNetShape, StepCase
from stepcast.collect.timing import Timing, summarize

# Batches that steps use in turn, so that no step finds the data of the previous one in the cache.
_N_BATCHES = 4


@dataclass
class Training:
    """A repeatable step, with its description."""

    step: Callable[[], None]
    implementation: str  # "own" or "transformers 4.44"
    n_parameters: int
    optimizer: str  # with its implementation: "adamw_fused"
    details: Dict[str, Any]


def run_steps(run: Run, scope: Scope) -> None:
    """Raises TimeIsUp."""
    def planned_s(case: StepCase) -> float:
        return 1.0 if scope.cpu else 14.0 if case.traced else 7.0

    items = [Item(case.name, planned_s(case), lambda case=case: measure(case, run, scope))
             for case in step_cases.plan(scope)]
    run.section("steps", "steps.csv", schema.STEP_COLUMNS, items)


def measure(case: StepCase, run: Run, scope: Scope) -> List[Row]:
    """One row of steps.csv, with its traces and a description in the same folder."""
    machine = run.machine
    torch.manual_seed(scope.seed)
    if machine.is_cuda:
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    training = build(case, machine)
    timing = time_steps(training.step, machine, scope)
    peak_GiB = torch.cuda.max_memory_allocated() / 2**30 if machine.is_cuda else None
    recorded = traces.Traces(note="not of this batch size")
    if case.traced:
        recorded = traces.record(training.step, run.out, f"traces/{case.name}", machine.is_cuda,
                                 n_steps=1 if scope.cpu else 3)
    description = f"steps/{case.name}.json"
    write_json(run.out / description, {
        "model": case.model, "batch": case.batch, "seq_len_tokens": case.length, "dtype": case.dtype,
        "autocast": case.dtype != "fp32" and not case.pure, "tf32": False, "optimizer": training.optimizer,
        "implementation": training.implementation, "n_parameters": training.n_parameters,
        "loss": "mean over tokens or samples", "trace_note": recorded.note, **training.details})
    return [{"model": case.model, "implementation": training.implementation, "dtype": case.dtype,
             "weights_dtype": case.dtype if case.pure else "fp32", "optimizer": training.optimizer,
             "batch": case.batch, "seq_len_tokens": case.length, **_columns(case.shape),
             "n_parameters": training.n_parameters, "measured_ms": timing.time_us / 1e3,
             "measured_ms_p10": timing.p10_us / 1e3, "measured_ms_p90": timing.p90_us / 1e3, "n": timing.n,
             "peak_memory_GiB": peak_GiB, "kineto_trace": recorded.kineto, "execution_trace": recorded.execution,
             "description": description}]


def time_steps(step: Callable[[], None], machine: Machine, scope: Scope) -> Timing:
    """Steps follow each other without a pause, as in training: one begins where the last one ended."""
    for _ in range(2 if scope.cpu else 8):
        step()
    n = 5 if scope.cpu and scope.quick else 20
    if not machine.is_cuda:
        marks = [time.perf_counter()]
        for _ in range(n):
            step()
            marks.append(time.perf_counter())
        return summarize([(b - a) * 1e6 for a, b in zip(marks, marks[1:])])
    torch.cuda.synchronize()
    start = time.perf_counter()
    step()
    torch.cuda.synchronize()
    n = max(n, min(100, int(3.0 / (time.perf_counter() - start))))
    events = [torch.cuda.Event(enable_timing=True) for _ in range(n + 1)]
    step()  # after it the queue is as full as in the middle of training
    events[0].record()
    for event in events[1:]:
        step()
        event.record()
    torch.cuda.synchronize()
    return summarize([a.elapsed_time(b) * 1e3 for a, b in zip(events, events[1:])])


def build(case: StepCase, machine: Machine) -> Training:
    """Model, optimizer and batches of `case` on the device."""
    details: Dict[str, Any] = {}
    if isinstance(case.shape, TransformerShape):
        model, implementation = _transformer(case.shape)
        tokens = torch.randint(0, case.shape.vocab_size, (_N_BATCHES, 2, case.batch, case.length),
                               device=machine.device)
        batches: List[Any] = [tuple(pair) for pair in tokens]
    elif isinstance(case.shape, ResNetShape):
        model, implementation = _resnet(case.shape)
        size = case.shape.image_size
        batches = [(torch.randn(case.batch, 3, size, size, device=machine.device),
                    torch.randint(0, 1000, (case.batch,), device=machine.device)) for _ in range(_N_BATCHES)]
    else:
        machine.require_memory(8.0 * case.shape.dim * sum(t.rows for t in case.shape.tables))
        model, implementation = Dlrm(case.shape), "own"
        made = [make_batch(case.shape, case.batch, seed, machine.device) for seed in range(_N_BATCHES)]
        batches = [arguments for arguments, _ in made]
        details = {**case.shape.description(), "distinct_fraction_by_table": made[0][1]}
    if not details:
        details = asdict(case.shape)
    model.train()
    model.to(machine.device, torch.bfloat16 if case.pure else torch.float32)
    optimizer, optimizer_name = _optimizer(case.optimizer, model, machine)
    state = {"at": 0}

    def step() -> None:
        arguments = batches[state["at"] % _N_BATCHES]
        state["at"] += 1
        optimizer.zero_grad(set_to_none=True)
        with _precision(case, machine):
            loss = model(*arguments)
        loss.backward()
        optimizer.step()

    return Training(step, implementation, sum(p.numel() for p in model.parameters()), optimizer_name, details)


def _precision(case: StepCase, machine: Machine) -> "contextlib.AbstractContextManager[Any]":
    if case.dtype == "fp32" or case.pure:
        return contextlib.nullcontext()
    return torch.autocast(machine.device.type, dtype=torch.bfloat16)


def _transformer(shape: TransformerShape) -> "tuple[nn.Module, str]":
    try:
        import transformers
        return library_model(shape), f"transformers {transformers.__version__}"
    except Exception:  # not installed, or a version with other classes
        return Transformer(shape), "own"


def _resnet(shape: ResNetShape) -> "tuple[nn.Module, str]":
    if shape.width == 64:
        try:
            import torchvision
            return _WithLoss(torchvision.models.resnet50(weights=None)), f"torchvision {torchvision.__version__}"
        except Exception:
            pass
    return ResNet(shape.blocks, shape.width), "own"


class _WithLoss(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(self.model(images), labels)


def _optimizer(name: str, model: nn.Module, machine: Machine) -> "tuple[torch.optim.Optimizer, str]":
    """The fused implementation on GPUs that have one, else PyTorch's default."""
    parameters = list(model.parameters())
    if name == "adamw":
        if machine.is_cuda:
            try:
                return torch.optim.AdamW(parameters, lr=1e-5, fused=True), "adamw_fused"
            except (TypeError, RuntimeError):
                pass
        return torch.optim.AdamW(parameters, lr=1e-5), "adamw"
    momentum = 0.9 if name == "momentum_sgd" else 0.0
    return torch.optim.SGD(parameters, lr=1e-3, momentum=momentum), name


def _columns(shape: "TransformerShape | ResNetShape | DlrmShape") -> Row:
    if isinstance(shape, TransformerShape):
        return {"hidden_size": shape.hidden_size, "n_layers": shape.n_layers, "n_heads": shape.n_heads,
                "n_kv_heads": shape.kv_heads, "ffn_size": shape.ffn_size, "vocab_size": shape.vocab_size}
    if isinstance(shape, ResNetShape):
        return {"image_size": shape.image_size}
    return {"n_tables": len(shape.tables), "embedding_dim": shape.dim}
