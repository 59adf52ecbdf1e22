"""Records what a program asks the GPU to do: PyTorch's execution trace (schema 1.1.1) with additional fields, listed in
docs/dry-run-record.md."""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import hashlib
import json
import math
import os
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
from torch._subclasses.fake_tensor import FakeTensor

from stepcast.dryrun.memory import Memory, reserved_peak

_TYPE_NAMES = {torch.float32: "float", torch.float64: "double", torch.float16: "c10::Half", torch.bfloat16: "c10::BFloat16",
               torch.int64: "long int", torch.int32: "int", torch.int16: "short int", torch.int8: "signed char",
               torch.uint8: "unsigned char", torch.bool: "bool", torch.complex64: "c10::complex<float>",
               torch.complex128: "c10::complex<double>"}
_KINDS = ((bool, "Bool"), (int, "Int"), (float, "Double"), (str, "String"), (torch.dtype, "Int"), (torch.device, "Device"))
_MARK = "stepcast "
_DROPPED = ("prim::device", "aten::is_pinned")
_MODES = ("PythonDispatchMode", "PythonSubclass", "PythonFallback")
_COMPILED = "## Call CompiledFxGraph"  # of Inductor
_PRODUCTS = frozenset(f"aten::{name}" for name in ("mm", "addmm", "bmm", "baddbmm", "_scaled_mm"))
_SCHEMA = "1.1.1-chakra.0.0.4"


def type_name(dtype: torch.dtype) -> str:
    name = _TYPE_NAMES.get(dtype)
    return name if name is not None else "c10::" + str(dtype).replace("torch.float8", "Float8").replace("torch.", "")


class Leaf:
    """An operator that reached the GPU, or a collective, with its arguments at the time of the call."""

    __slots__ = ("func", "name", "inputs", "outputs", "stream", "before", "copy", "sync", "module", "allocated", "attrs",
                 "children", "recorder", "_mark", "at")

    def __init__(self, recorder: "Recorder", name: str) -> None:
        self.recorder, self.name = recorder, name
        self.inputs: Any = None
        self.outputs: Any = None
        self.stream = 0
        self.before: List[str] = []
        self.copy: Optional[str] = None  # "HtoD", "DtoH"
        self.sync: Optional[str] = None  # "stream": the host waits for the operator's stream
        self.module = ""
        self.allocated = 0
        self.attrs: List[Tuple[str, str, Any]] = []
        self.children: List["Leaf"] = []
        self.at = -1  # position in the step

    def __enter__(self) -> "Leaf":
        self._mark = None
        if self.recorder.profiling and self.at >= 0:
            self._mark = torch._C._profiler._RecordFunctionFast(f"{_MARK}{self.at}")
            self._mark.__enter__()
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
        if kind is None:
            self.recorder.ran(self)


class Runtime:
    """Calls of streams and events that reached the simulated CUDA runtime since the last check."""

    _KINDS = {1: "record", 2: "wait", 3: "sync_stream", 4: "sync_event", 5: "sync_device"}

    class _Entry(ctypes.Structure):
        _fields_ = [("kind", ctypes.c_int64), ("stream", ctypes.c_uint64), ("event", ctypes.c_uint64)]

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._length = ctypes.c_uint64.in_dll(library, "stepcast_log_length")
        self._log = (self._Entry * (1 << 16)).in_dll(library, "stepcast_log")
        self._operator = (ctypes.c_char * 256).in_dll(library, "stepcast_operator")
        self._reached = (ctypes.c_char * 512).in_dll(library, "stepcast_reached")
        self._seen = 0
        self._streams: Dict[int, int] = {0: 0}
        self._by_id: Dict[int, int] = {0: 0}

    def stream(self, handle: int) -> int:
        return self._streams.setdefault(handle, len(self._streams))

    def current_stream(self) -> int:
        identity, index, kind = torch._C._cuda_getCurrentStream(torch._C._cuda_getDevice())
        known = self._by_id.get(identity)
        if known is None:
            stream = torch.cuda.Stream(stream_id=identity, device_index=index, device_type=kind)
            known = self._by_id[identity] = self.stream(stream.cuda_stream)
        return known

    def calls(self) -> List[str]:
        end = self._length.value
        if end == self._seen:
            return []
        out = []
        for at in range(max(self._seen, end - (1 << 16)), end):
            entry = self._log[at % (1 << 16)]
            name = self._KINDS.get(entry.kind, "")
            if name in ("record", "wait"):
                out.append(f"{name} {self.stream(entry.stream)} {entry.event}")
            elif name == "sync_stream":
                out.append(f"{name} {self.stream(entry.stream)}")
            elif name == "sync_event":
                out.append(f"{name} {entry.event}")
            else:
                out.append(name)
        self._seen = end
        return out

    def running(self, name: str) -> None:
        self._operator.value = name.encode()[:255]

    def reached(self) -> str:
        return self._reached.value.decode(errors="replace")


class Step:
    """The operators of one step."""

    def __init__(self) -> None:
        self.leaves: List[Leaf] = []
        self.signature = hashlib.sha1()
        self.tree: Any = None
        self.after: List[str] = []
        self.peak = 0
        self.start_allocated = 0
        self.seconds = 0.0


class Recorder:
    """Follows a program from step to step, keeps the last two steps, and writes one."""

    def __init__(self, on_step: Callable[["Recorder"], None]) -> None:
        self.memory = Memory()
        self.runtime = Runtime()
        self.step: Optional[Step] = None  # the step that is recorded now
        self.last: Optional[Step] = None
        self.steps = 0  # number of step boundaries so far
        self.operators = 0
        self.profiling = False
        self.captured: Optional[List[Leaf]] = None  # of the CUDA graph that is captured
        self.captured_steps = 0
        self.compiled_graph = "compiled_graph"  # name of a recorded torch.compile graph
        self.module_of = lambda: ""
        self._on_step = on_step
        self._profile: Any = None
        self.pid = os.getpid()
        self._lock = threading.Lock()

    # ---- Operators ----
    def operator(self, func: Any, operator: Any, args: Any, kwargs: Any) -> Leaf:
        return self.leaf(operator.name, func, args, kwargs)

    def leaf(self, name: str, func: Any, args: Any, kwargs: Any) -> Leaf:
        leaf = Leaf(self, name)
        leaf.func = func
        self.runtime.running(name)
        self.operators += 1
        if name in _PRODUCTS:  # workspace of cuBLAS per thread and stream: 32 MiB on Hopper and Blackwell, :4096:2:16:8 on others
            size = 32 << 20 if torch.cuda.get_device_capability()[0] in (9, 10) else (2 * 4096 + 8 * 16) << 10
            self.memory.workspace((threading.get_ident(), self.runtime.current_stream()), size)
        if self.captured is not None:
            self.captured.append(leaf)
            leaf.inputs = self._arguments(func, args, kwargs)
        elif self.step is not None:
            leaf.inputs = self._arguments(func, args, kwargs)
            self.again(leaf)
        return leaf

    def again(self, leaf: Leaf) -> Leaf:
        """Adds the leaf to the step: it runs now, on the current stream."""
        step = self.step
        assert step is not None
        leaf.stream = self.runtime.current_stream()
        leaf.before = self.runtime.calls()
        leaf.module = self.module_of()
        with self._lock:
            leaf.at = len(step.leaves)
            step.leaves.append(leaf)
        return leaf

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Operators that run inside are not part of the step."""
        before, (self.step, self.profiling) = (self.step, self.profiling), (None, False)
        try:
            yield
        finally:
            self.step, self.profiling = before

    def ran(self, leaf: Leaf) -> None:
        out = leaf.outputs
        outs = out if isinstance(out, (tuple, list)) else [out]
        if self.step is None and self.captured is None:
            for t in outs:
                if isinstance(t, FakeTensor) and t.layout == torch.strided:
                    self.memory.number_of(t)
            leaf.outputs = leaf.inputs = None
            return
        leaf.outputs = [self._value(v) for v in outs if v is not None]
        leaf.allocated = self.memory.allocated

    def _arguments(self, func: Any, args: Any, kwargs: Any) -> List[Any]:
        values = [self._value(a) for a in args]
        if func is not None and hasattr(func, "_schema"):
            for argument in func._schema.arguments[len(args):]:
                values.append(self._value(kwargs[argument.name] if argument.name in kwargs else argument.default_value))
        return values

    def _value(self, value: Any) -> Tuple[Any, Any, str, Any]:
        """(value, shape, type, strides) in the form of the execution trace."""
        if isinstance(value, torch.Tensor):
            fake = isinstance(value, FakeTensor)
            try:
                storage = self.memory.number_of(value)
            except (NotImplementedError, RuntimeError):  # sparse tensors
                storage = 0
            shape, strides = list(value.shape), list(value.stride()) if value.layout == torch.strided else []
            device = value.fake_device if fake else value.device
            offset = value.storage_offset() if value.layout == torch.strided else 0
            return ([id(value) & 0x7FFFFFFFFFFF, storage, offset, value.numel(), value.element_size(), str(device)], shape,
                    f"Tensor({type_name(value.dtype)})", strides)
        if isinstance(value, (list, tuple)):
            parts = [self._value(v) for v in value]
            kinds = ",".join(p[2] for p in parts)
            return ([p[0] for p in parts], [p[1] for p in parts], f"GenericList[{kinds}]", [p[3] for p in parts])
        if value is None:
            return ("<None>", [], "None", [])
        if isinstance(value, float) and not math.isfinite(value) or isinstance(value, (torch.dtype, torch.device)):
            return (str(value), [], next(name for kind, name in _KINDS if isinstance(value, kind)), [])
        return next(((value, [], name, []) for kind, name in _KINDS if isinstance(value, kind)), (type(value).__name__, [], "Object", []))

    # ---- Steps ----
    def boundary(self) -> None:
        """Called at the end of an optimizer step: the next step begins."""
        if os.getpid() != self.pid:
            return  # a worker of a data loader
        if self.captured is not None:
            self.captured_steps += 1
            return
        self._end()
        self.steps += 1
        self._on_step(self)
        self._begin()

    def _begin(self) -> None:
        self.runtime.calls()
        step = Step()
        step.start_allocated = self.memory.allocated
        step.seconds = time.monotonic()
        self.memory.mark()
        self._profile = torch.autograd.profiler.profile(use_cpu=True)
        self._profile._prepare_trace()
        self._profile._start_trace()
        self.profiling = True
        self.step = step

    def drop(self) -> None:
        """Discards the step that has begun."""
        if self.step is not None:
            self._profile.__exit__(None, None, None)
            self.step, self.profiling = None, False

    def _end(self) -> None:
        step = self.step
        if step is None:
            return
        self.step, self.profiling = None, False
        self._profile.__exit__(None, None, None)
        step.tree = self._profile.kineto_results.experimental_event_tree()
        self._profile = None
        step.after = self.runtime.calls()
        step.peak = self.memory.peak
        step.seconds = time.monotonic() - step.seconds
        for leaf in step.leaves:
            step.signature.update(f"{leaf.name} {[i[1] for i in leaf.inputs]}".encode())
        self.last = step

    # ---- The file ----
    def write(self, path: str, header: Dict[str, Any], groups: List[Dict[str, Any]]) -> None:
        """Writes the last step."""
        step = self.last
        assert step is not None
        images = [leaf.inputs[0] for leaf in step.leaves if leaf.name == "aten::convolution"]
        last = sum(strides[1:2] == [1] for _, _, _, strides in images)  # channels of a pixel are adjacent
        about = {"schema": _SCHEMA, "pid": self.pid, "time": time.strftime("%Y-%m-%d %H:%M:%S"), "start_ts": 0,
                 "stepcast": {**header, "operators": len(step.leaves), "channels_last": 2 * last > len(images), "peak_allocated_bytes": step.peak,
                              "start_allocated_bytes": step.start_allocated,
                              "peak_reserved_bytes": reserved_peak(self.memory.events), "runtime_after": step.after}}
        nodes = _Nodes(step, self.compiled_graph)
        if groups:
            nodes.add("## process_group:init ##", 2, inputs=[(json.dumps(groups), [], "String", [])])
        nodes.walk()
        with gzip.open(path, "wt", compresslevel=3, encoding="utf-8") as file:
            file.write(json.dumps(about)[:-1] + ', "nodes": [\n')
            file.write(",\n".join(json.dumps(n) for n in nodes.all))
            file.write("\n], \"finish_ts\": 1}\n")


class _Nodes:
    """The operator tree of PyTorch's profiler, with the recorder's data about operators that reached the GPU."""

    def __init__(self, step: Step, graph: str) -> None:
        self.step, self._graph = step, graph
        self.all: List[Dict[str, Any]] = []
        self._next = 3
        self._order = 0
        self._threads: Dict[int, int] = {}
        self._modules: Dict[int, str] = {}  # sequence number of the forward -> module
        self.add("[pytorch|profiler|execution_trace|process]", 1, identity=1)
        self.add("[pytorch|profiler|execution_trace|thread]", 1, identity=2)

    def add(self, name: str, parent: int, inputs: Any = (), outputs: Any = (), attrs: Any = (), event: Any = None,
            schema: str = "", identity: Optional[int] = None) -> int:
        if identity is None:
            identity, self._next = self._next, self._next + 1
        sequence, scope, thread, forward_thread = -1, 0, 1, 0
        if event is not None:
            extra = event.typed[1]
            sequence = getattr(extra, "sequence_number", -1)
            forward_thread = getattr(extra, "forward_tid", 0) or 0
            scope = int(getattr(extra, "scope", 0))
            thread = self._threads.setdefault(event.start_tid, len(self._threads) + 1)
        self._order += 1
        values = [("rf_id", "uint64", self._order), ("fw_parent", "uint64", 0), ("seq_id", "int64", sequence), ("scope", "uint64", scope),
                  ("tid", "uint64", thread), ("fw_tid", "uint64", forward_thread if forward_thread < 1 << 31 else 0),
                  ("op_schema", "string", schema), *attrs]
        self.all.append({"id": identity, "name": name, "ctrl_deps": parent, "inputs": _columns(inputs), "outputs": _columns(outputs),
                         "attrs": [{"name": n, "type": t, "value": v} for n, t, v in values]})
        return identity

    def walk(self) -> None:
        roots = sorted(self.step.tree, key=lambda e: e.start_time_ns)
        stack = [(event, 2) for event in reversed(self._shown(roots))]
        while stack:
            event, parent = stack.pop()
            name = event.name
            if name.startswith(_MARK):
                self._leaf(self.step.leaves[int(name[len(_MARK):])], parent, event)
                continue
            if name in _DROPPED or name.startswith("profiler::"):
                continue
            if name.startswith(_COMPILED):
                self._compiled(event, parent)
                continue
            children = self._shown(event.children)
            marked = [c for c in children if c.name.startswith(_MARK)]
            if len(marked) == 1:
                leaf = self.step.leaves[int(marked[0].name[len(_MARK):])]
                if leaf.name == name:
                    self._leaf(leaf, parent, event)
                    continue
            # An operator of the CPU that was redispatched: the inner one is the same call.
            if len(children) == 1 and children[0].name == name and not marked and "::" in name:
                stack.append((children[0], parent))
                continue
            identity = self.add(name, parent, event=event)
            stack.extend((child, identity) for child in reversed(children))

    def _compiled(self, event: Any, parent: int) -> None:
        """Merges consecutive launches of compiled code into one operator. Collectives stay separate."""
        identity = None
        stack = [event]
        while stack:
            inner = stack.pop()
            if not inner.name.startswith(_MARK):
                stack.extend(reversed(inner.children))
                continue
            leaf = self.step.leaves[int(inner.name[len(_MARK):])]
            if leaf.children:
                identity = None
            elif identity is None:
                identity = self.add("cuda_graph" if "cuda_graph" in event.name else self._graph, parent, event=event)
            self._leaf(leaf, parent if leaf.children else identity, inner)

    def _shown(self, events: Any) -> List[Any]:
        """The operators without the markers of dispatch modes."""
        out = []
        for event in events:
            if event.name in _MODES:
                out.extend(self._shown(event.children))
            else:
                out.append(event)
        return out

    @staticmethod
    def _sequence(event: Any) -> int:
        return getattr(event.typed[1], "sequence_number", -1) if event is not None else -1

    def _leaf(self, leaf: Leaf, parent: int, event: Any) -> None:
        sequence = self._sequence(event)
        module = leaf.module
        if module and sequence >= 0:
            self._modules.setdefault(sequence, module)
        walker = event
        while not module and walker is not None:
            module = self._modules.get(self._sequence(walker), "")
            walker = walker.parent
        attrs = [("stream", "uint64", leaf.stream), ("allocated_bytes", "uint64", leaf.allocated)]
        for key, value in (("module", module), ("runtime_before", "; ".join(leaf.before)), ("copy", leaf.copy), ("sync", leaf.sync)):
            if value:
                attrs.append((key, "string", value))
        schema = str(leaf.func._schema) if hasattr(leaf.func, "_schema") else ""
        identity = self.add(leaf.name, parent, leaf.inputs, leaf.outputs or (), [*attrs, *leaf.attrs], event, schema)
        for child in leaf.children:
            self.add(child.name, identity, child.inputs, child.outputs or (), [("stream", "uint64", leaf.stream), *child.attrs], event)


def _columns(values: Any) -> Dict[str, Any]:
    return {"values": [v[0] for v in values], "shapes": [v[1] for v in values], "types": [v[2] for v in values],
            "strides": [v[3] for v in values]}
