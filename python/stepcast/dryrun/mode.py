"""Real on the CPU, fake on the GPU: the dispatch mode under which a program runs.

An operator with a `cuda` tensor or device gets fake tensors: shape, strides, type and storage, without data. All others run
normally. Values that a program reads from the GPU are invented, unless they were computed from small integers that the program put
there (labels, masks, counters). Those are tracked with their values, so that `mask.all()` has the same result as on a GPU.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

import torch
import torch._subclasses.fake_tensor as fake_tensor
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

aten = torch.ops.aten

# Limits in elements for tracked values: integers and floating-point numbers, and for invented values that are read.
_LEAST_HOLLOW = 1 << 18  # elements of a tensor with random contents that are not written
_MOST_WHOLE, _MOST_FRACTIONS, _MOST_MADE_UP = 1 << 20, 1 << 12, 16


def leave_out(tensor: torch.Tensor) -> torch.Tensor:
    """Marks a large CPU tensor as hollow."""
    if tensor.numel() >= _LEAST_HOLLOW and tensor.is_floating_point() and tensor.layout == torch.strided and tensor.device.type == "cpu":
        tensor.untyped_storage()._stepcast_hollow = True
    return tensor


class Value(NamedTuple):
    """The value of a fake tensor, and whether it is still valid. All views of a storage share it."""

    real: torch.Tensor
    valid: List[bool]


class Guesses:
    """Assumptions about data-dependent results, and how often each was used. Assumed values decide no size."""

    of_values = ("value read from the GPU: 1", "tensors copied to the CPU: zeros")

    def __init__(self, share: float) -> None:
        self.share = share
        self.used: Dict[str, int] = {}

    def note(self, what: str) -> None:
        self.used[what] = self.used.get(what, 0) + 1


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def is_pinned(tensor: torch.Tensor) -> bool:
    return getattr(tensor, "_stepcast_pinned", False)


def is_hollow(tensor: Any) -> bool:
    """A large CPU tensor without contents: its random values were never written."""
    return isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and tensor.numel() >= _LEAST_HOLLOW \
        and hasattr(tensor.untyped_storage(), "_stepcast_hollow")


def _touches_gpu(values: Any) -> bool:
    for value in values:
        if isinstance(value, FakeTensor):
            return True
        if isinstance(value, torch.device):
            if value.type == "cuda":
                return True
        elif isinstance(value, (list, tuple)) and _touches_gpu(value):
            return True
    return False


def _is_foreign(kind: type) -> bool:
    """A tensor subclass with a separate dispatch (DTensor): it comes first, and calls again with its inner tensors."""
    return not issubclass(kind, FakeTensor) and kind is not torch.Tensor and kind is not torch.nn.Parameter \
        and getattr(kind, "__torch_dispatch__", None) is not torch._C._disabled_torch_dispatch_impl


_FREE = {torch.ops.prim.device.default}  # C++ calls it for every fake tensor
_SIZES = {aten.size.default, aten.stride.default, aten.storage_offset.default} if hasattr(aten.size, "default") else set()
_OF_SHAPE = {f"aten::{name}" for name in ("ones_like", "zeros_like", "full_like", "new_ones", "new_zeros", "new_full")}
_RANDOM = getattr(torch.Tag, "nondeterministic_seeded", None)


# Result shapes of CUDA-only operators for which PyTorch has no shape function. Vectors have elements of 4 bytes.
_OF_CUDA: Dict[str, Callable[..., List[Any]]] = {
    **dict.fromkeys(("batch_norm_stats", "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts"),
                    lambda x, *_: 2 * [x.shape[1:2]]),
    **dict.fromkeys(("batch_norm_elemt", "batch_norm_backward_elemt"), lambda x, *_: [x.shape]),
    "batch_norm_backward_reduce": lambda x, *_: 4 * [x.shape[1:2]],
    "cudnn_grid_sampler": lambda x, grid: [(*x.shape[:2], *grid.shape[1:3])],
    "cudnn_grid_sampler_backward": lambda x, grid, _: [x.shape, grid.shape],
    "cudnn_affine_grid_generator": lambda _, n, c, h, w: [(n, h, w, 2)],
    "cudnn_affine_grid_generator_backward": lambda _, n, *__: [(n, 2, 3)],
    "_thnn_fused_gru_cell": lambda x, _, hx, *__: [hx.shape, (hx.shape[0], 5 * hx.shape[1])],
    "_thnn_fused_gru_cell_backward": lambda y, *_: 2 * [(y.shape[0], 3 * y.shape[1])] + [y.shape] + 2 * [(3 * y.shape[1],)]}


class OfOperator:
    """Facts from the schema of an operator, computed once."""

    __slots__ = ("name", "namespace", "writes", "is_random", "is_view", "returns_new", "is_composite", "fills")

    def __init__(self, func: Any) -> None:
        schema = func._schema
        self.name = schema.name
        self.namespace = func.namespace
        self.writes = [i for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write]
        self.is_random = _RANDOM in func.tags
        self.is_view = any(a.alias_info is not None and not a.alias_info.is_write for a in schema.arguments)
        has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
        self.is_composite = has_kernel(func.name(), torch._C.DispatchKey.CompositeImplicitAutograd) \
            and not has_kernel(func.name(), torch._C.DispatchKey.CUDA)
        self.returns_new = any(r.alias_info is None for r in schema.returns)
        # Output arguments of operators without a shape function: they keep their shape.
        outs = [a.name for a in schema.arguments if a.kwarg_only and a.alias_info is not None and a.alias_info.is_write]
        keys = (torch._C.DispatchKey.Meta, torch._C.DispatchKey.CompositeExplicitAutograd, torch._C.DispatchKey.CompositeImplicitAutograd)
        filled = bool(self.writes) and len(outs) == len(schema.returns) and (not outs or len(outs) == len(self.writes))
        self.fills = outs if filled and not any(has_kernel(func.name(), key) for key in keys) else None


class _Fake(FakeTensorMode):
    """Keeps no constants, because DryMode tracks values. One thread at a time."""

    lock = threading.RLock()

    def can_run_unsafe_fallback(self, func: Any) -> bool:
        return True

    def dispatch(self, *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            return super().dispatch(*args, **kwargs)

    def may_turn_const(self, t: torch.Tensor) -> bool:
        return False

    @property
    def avoid_device_init(self) -> bool:
        return True  # nothing is ever computed on the device


def _on_zeros(mode: FakeTensorMode, func: Any, flat_args: Any, args_spec: Any, problem: Exception) -> Any:
    """Runs an operator without shape function on zeros of the CPU, or on known values. PyTorch's original function runs it on zeros
    of the GPU."""
    ours: Dict[int, Any] = {}
    device: Any = torch.device("cpu")

    def real(value: Any) -> Any:
        nonlocal device
        if isinstance(value, torch.device):
            return torch.device("cpu")
        if not isinstance(value, FakeTensor):
            return value
        if value.fake_device.type == "cuda":
            device = value.fake_device
        known = DryMode.value_of(value)
        zeros = torch.zeros(value.shape, dtype=value.dtype, layout=value.layout) if known is None else known.clone()
        ours[id(zeros)] = (value, zeros)
        return zeros

    def fake(value: torch.Tensor) -> Any:
        if id(value) in ours:
            return ours[id(value)][0]
        if value.layout != torch.strided:
            raise problem
        return mode.dispatch(aten.empty_strided.default, (), (list(value.shape), list(value.stride())), {"dtype": value.dtype, "device": device})

    with fake_tensor.no_dispatch():
        args, kwargs = tree_unflatten([real(a) for a in flat_args], args_spec)
        if torch.Tag.inplace_view in func.tags:
            raise problem
        out = func(*args, **kwargs)
    return tree_map_only(torch.Tensor, fake, out)


fake_tensor.run_fallback_kernel = _on_zeros


class DryMode(TorchDispatchMode):
    """The mode of the process. `recorder.operator(...)` is called for every operator that touches the GPU."""

    def __init__(self, recorder: Any, guesses: Guesses) -> None:
        super().__init__()
        self.fake = _Fake(allow_non_fake_inputs=True)
        self.recorder = recorder
        self.guesses = guesses
        self.groups: Any = None  # groups.Collectives, if the program is distributed
        self.operators: Dict[Any, OfOperator] = {}
        self._special = {
            aten._local_scalar_dense.default: self._scalar, aten._to_copy.default: self._to_copy, aten.copy_.default: self._copy,
            aten.index.Tensor: self._index, aten.equal.default: self._equal, aten.repeat_interleave.Tensor: self._repeat,
            aten.histc.default: lambda _, a, kwargs: self._evenly(
                "histc", a[0], kwargs.get("bins", a[1] if len(a) > 1 else 100), a[0].dtype),
            aten._cudnn_rnn_flatten_weight.default: lambda _, a, __: self.empty(a[0][0], (sum(t.numel() for t in a[0]),)),
            aten._cudnn_init_dropout_state.default: lambda _, __, kwargs: self._empty((1 << 21,), torch.uint8, kwargs["device"]),
            aten._pack_padded_sequence.default: self._packed, aten._coalesce.default: lambda _, a, __: a[0], aten.record_stream.default: lambda *_: None,
            aten._values.default: self._rows(0), aten._indices.default: self._rows(1),
        }
        for func, made in self._of_data().items():
            self._special[func] = self._read_first(func, made)
        for packet in (getattr(aten, f"_use_{library}_ctc_loss", None) for library in ("cudnn", "miopen")):
            for overload in packet.overloads() if packet is not None else ():
                self._special[getattr(packet, overload)] = lambda *_: False
        for name, shapes in _OF_CUDA.items():
            self._special[getattr(aten, name).default] = self._shaped(shapes)
        for packet in (aten.addmm, aten.baddbmm):  # with an explicit type, for which PyTorch has no shapes
            if "dtype" in packet.overloads():
                self._special[packet.dtype] = lambda _, a, __: self.empty(a[1], (*a[1].shape[:-1], a[2].shape[-1]), a[3])
                self._special[packet.dtype_out] = lambda _, __, kwargs: kwargs["out"]

    supports_higher_order_operators = True

    @classmethod
    def is_infra_mode(cls) -> bool:
        return True  # not a mode of the program: torch.compile, activation checkpointing

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, HigherOrderOperator):  # a compiled region, or attention with a function: its inner calls are recorded
            with self:  # attention: recomputed with the random numbers of the forward pass
                kernel = func.py_kernels.get(torch._C.DispatchKey.CompositeExplicitAutograd) or func.py_kernels[torch._C.DispatchKey.CUDA]
                return kernel(*args, **kwargs)
        if func in _FREE:
            return args[0].fake_device if isinstance(args[0], FakeTensor) else func(*args, **kwargs)
        for kind in types:
            if _is_foreign(kind):
                return NotImplemented
        other = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)
        if other is not None and other is not self.fake:  # only shapes are requested (DTensor): nothing runs
            return func(*args, **kwargs)
        operator = self.operators.get(func)
        if operator is None:
            operator = self.operators[func] = OfOperator(func)
        if operator.namespace == "profiler":
            return func(*args, **kwargs)
        if self.groups is not None and operator.namespace in self.groups.namespaces and self.groups.is_collective(operator, args, kwargs):
            return self.groups.collective(self, func, operator, args, kwargs)
        if not _touches_gpu(args) and not (kwargs and _touches_gpu(kwargs.values())):
            return self._on_cpu(func, operator, args, kwargs)
        if not torch._C._only_lift_cpu_tensors():  # per thread: torch.tensor(..., device="cuda") then copies with an operator
            torch._C._set_only_lift_cpu_tensors(True)
        if func is aten.clone.default and hasattr(args[0], "_stepcast_rows") and torch._C._current_autograd_node() is not None:
            out = self.fake.dispatch(func, (), args, kwargs)  # a gradient that is taken over: from Python it would seem to have two owners
            out._stepcast_rows = args[0]._stepcast_rows
            return out
        if operator.is_composite:  # in inference mode: the operators that it calls are recorded
            with self:
                out = func.decompose(*args, **kwargs)
            if out is not NotImplemented:
                return out
        if operator.name in ("aten::_cudnn_rnn", "aten::_cudnn_rnn_backward"):
            return self._recurrent(*args)
        with self.recorder.operator(func, operator, args, kwargs) as record:
            special = self._special.get(func)
            out = NotImplemented if special is None else special(record, args, kwargs)
            if out is NotImplemented:
                out = self.run(func, operator, args, kwargs)
            record.outputs = out
        return out

    def _on_cpu(self, func: Any, operator: OfOperator, args: Any, kwargs: Any) -> Any:
        """Runs the operator on the CPU. Pinned memory is plain memory with a mark. Large random weights are not written, so they cost no
        time and no physical memory."""
        first = args[0] if args else None
        if isinstance(first, torch.Tensor) and first.numel() >= _LEAST_HOLLOW and first.is_floating_point():
            if operator.writes == [0] and (operator.is_random or is_hollow(first)) and func is not aten.copy_.default \
                    and "inplace_view" not in str(func.tags):
                return leave_out(first)
            if is_hollow(first) and func in (aten._to_copy.default, aten.clone.default):
                return leave_out(torch.empty(first.shape, dtype=kwargs.get("dtype") or first.dtype))
        if func is aten.copy_.default and (is_hollow(first) or is_hollow(args[1])) and first.numel() == args[1].numel():
            return leave_out(first)
        if func is aten.is_pinned.default:
            return is_pinned(args[0])
        if func is aten._pin_memory.default:
            out = args[0].clone()
        elif kwargs.get("pin_memory"):
            out = func(*args, **{**kwargs, "pin_memory": False})
        else:
            return func(*args, **kwargs)
        out._stepcast_pinned = True
        return out

    # ---- Fake execution ----
    def run(self, func: Any, operator: OfOperator, args: Any, kwargs: Any) -> Any:
        values = self._values_of(func, operator, args, kwargs)
        if operator.fills is not None:
            out = tuple(kwargs[name] for name in operator.fills)
            out = out[0] if len(out) == 1 else out or None
        else:
            try:
                out = self.fake.dispatch(func, (), args, kwargs)
            except fake_tensor.DynamicOutputShapeException as problem:
                out = self._of_unknown_size(func, operator, args, kwargs, problem)
        if out is NotImplemented:
            raise RuntimeError(f"stepcast dryrun: {func} takes a kind of tensor that it does not know")
        if isinstance(out, torch.Tensor):
            if isinstance(out, FakeTensor) and out.fake_device.type != "cuda":
                out = self._made_up(out)
        elif isinstance(out, (list, tuple)):
            out = tree_map_only(FakeTensor, lambda t: self._made_up(t) if t.fake_device.type != "cuda" else t, out)
        self._carry(func, operator, args, kwargs, out, values)
        if isinstance(out, FakeTensor) and out.layout is torch.sparse_coo:
            self._hold_rows(out, args)
        return out

    def _of_unknown_size(self, func: Any, operator: OfOperator, args: Any, kwargs: Any, problem: Exception) -> Any:
        """For data-dependent sizes: the size on known values; for a single column (nms), a fraction of the size on zeros."""
        out = _on_zeros(self.fake, func, *tree_flatten((args, kwargs)), problem)
        if isinstance(out, torch.Tensor) and out.dim() == 1:
            return self.empty(out, (self._count(out.numel(), operator.name.split("::")[1]),))
        return out

    def _hold_rows(self, sparse: Any, args: Any) -> None:
        """Rows of fake sparse tensors, which have no values: those of the sparse argument, or the number of a lookup's indices."""
        numbers = next((t._stepcast_rows[1] for t in tensors_in(args) if hasattr(t, "_stepcast_rows")), None)
        if numbers is None and len(args) > 1 and isinstance(args[1], torch.Tensor):
            numbers = self.fake.dispatch(aten.view.default, (), (args[1], [1, -1]), {})
        if numbers is not None:
            sparse._stepcast_rows = (self.empty(sparse, [numbers.numel(), *sparse.shape[1:]]), numbers)
            self.recorder.memory.number_of(sparse._stepcast_rows[0])

    @staticmethod
    def _rows(part: int) -> Any:
        return lambda _, args, __: args[0]._stepcast_rows[part] if hasattr(args[0], "_stepcast_rows") else NotImplemented

    def _made_up(self, fake: torch.Tensor) -> torch.Tensor:
        if fake.fake_device.type == "cpu":
            return torch.zeros(fake.shape, dtype=fake.dtype)
        return torch.empty_strided(fake.shape, fake.stride(), dtype=fake.dtype, device=fake.fake_device)

    def empty(self, like: torch.Tensor, shape: Any, dtype: Optional[torch.dtype] = None) -> FakeTensor:
        """A new fake tensor on the device of `like`."""
        return self._empty(shape, dtype or like.dtype, like.device)

    def _empty(self, shape: Any, dtype: torch.dtype, device: torch.device) -> FakeTensor:
        return self.fake.dispatch(aten.empty.memory_format, (), (list(shape),), {"dtype": dtype, "device": device})

    def _shaped(self, shapes: Callable[..., List[Any]]) -> Any:
        def run(_: Any, args: Any, __: Any) -> Any:
            out = [self.empty(args[0], shape, torch.float32 if len(shape) == 1 else None) for shape in shapes(*args)]
            return out[0] if len(out) == 1 else tuple(out)

        return run

    def _packed(self, record: Any, args: Any, kwargs: Any) -> Any:
        longest = int(args[1][0]) if args[1].numel() else 0
        sizes = (args[1] > torch.arange(longest)[:, None]).sum(1)
        return self.empty(args[0], (int(sizes.sum()), *args[0].shape[2:])), sizes

    def _recurrent(self, x: Any, weights: Any, each: int, flat: Any, hx: Any, cx: Any, *more: Any) -> Any:
        """A recurrent network of cuDNN as the GEMMs of its layers and steps, with one launch. The forward pass keeps the gates."""
        backward = len(more) > 12
        size, _, layers, _, _, _, both, sizes = more[5:13] if backward else more[1:9]
        rows, batch, width = x.numel() // x.shape[-1], hx.shape[1], hx.shape[2] * (1 + both)
        self.guesses.note("recurrent layers of cuDNN take the time of their GEMMs")

        def product(a: Any, b: Any) -> None:
            with self.recorder.leaf("aten::mm", aten.mm.default, (self.empty(x, a), self.empty(x, b)), {}) as leaf:
                leaf.outputs = self.empty(x, (a[0], b[1]))

        with torch._C._profiler._RecordFunctionFast("## Call CompiledFxGraph cudnn ##"):
            for (gates, inputs), (_, hidden) in ((w.shape, h.shape) for w, h in zip(weights[::each], weights[1::each])):
                product((rows, gates) if backward else (rows, inputs), (gates, inputs) if backward else (inputs, gates))
                for _ in range(len(sizes) or rows // batch):
                    product((batch, gates) if backward else (batch, hidden), (gates, hidden) if backward else (hidden, gates))
                if backward:
                    product((gates, rows), (rows, inputs))
                    product((gates, rows), (rows, hidden))
        shape = (*x.shape[:-1], width)
        gates = sum(w.shape[0] for w in weights[::each])
        outs = [self.empty(t, t.shape) for t in (x, hx, cx if cx is not None else hx)], [self.empty(w, w.shape) for w in weights]
        made = (*outs[0], outs[1]) if backward else (self.empty(x, shape), *outs[0][1:], self.empty(
            x, (rows * (gates + layers * size) * x.element_size(),), torch.uint8), self.empty(x, (0,)))
        for t in tensors_in(made):
            self.recorder.memory.number_of(t)
        return made

    def fake_of(self, real: torch.Tensor, device: torch.device) -> FakeTensor:
        """A fake tensor of this shape with the tracked value."""
        out = self.fake.dispatch(aten.empty_strided.default, (), (list(real.shape), list(real.stride())),
                                 {"dtype": real.dtype, "device": device})
        out._stepcast_value = Value(real, [True])
        return out

    # ---- Tracked values ----
    @staticmethod
    def value_of(tensor: torch.Tensor) -> Optional[torch.Tensor]:
        if not isinstance(tensor, FakeTensor):
            return tensor if tensor.numel() <= _MOST_WHOLE and tensor.device.type == "cpu" else None
        value = getattr(tensor, "_stepcast_value", None)
        return value.real if value is not None and value.valid[0] else None

    def _values_of(self, func: Any, operator: OfOperator, args: Any, kwargs: Any) -> Any:
        """The arguments with tracked values instead of fake tensors; None if one is not known."""
        if operator.is_random:
            return None
        known = True

        def value(t: torch.Tensor) -> Any:
            nonlocal known
            real = self.value_of(t)
            if real is None and operator.name in _OF_SHAPE:
                real = torch.empty((), dtype=t.dtype).expand(t.shape)
            known = known and real is not None
            return real

        def convert(x: Any) -> Any:
            if isinstance(x, torch.Tensor):
                return value(x)
            if isinstance(x, torch.device):
                return torch.device("cpu") if x.type == "cuda" else x
            if isinstance(x, (list, tuple)):
                return type(x)(convert(e) for e in x) if type(x) in (list, tuple) else x
            return x

        converted = []
        for x in args:
            converted.append(convert(x))
            if not known:
                return None
        keywords = {k: convert(v) for k, v in kwargs.items()}
        return (converted, keywords) if known else None

    def _carry(self, func: Any, operator: OfOperator, args: Any, kwargs: Any, out: Any, values: Any) -> None:
        outs = [out] if isinstance(out, torch.Tensor) else list(tensors_in(out)) if isinstance(out, (list, tuple)) else []
        if values is not None and self._worth(operator, args, kwargs, outs):
            try:
                real = func(*values[0], **values[1])
            except Exception:  # these types do not run on a CPU, so the value is unknown
                real, values = None, None
            reals = [real] if isinstance(real, torch.Tensor) else list(tensors_in(real)) if isinstance(real, (list, tuple)) else []
            if len(reals) == len(outs):
                for fake, value in zip(outs, reals):
                    if isinstance(fake, FakeTensor):
                        fake._stepcast_value = Value(value, self._cell(args, fake))
                return
        # Written tensors lose their value; small ones get an invented one.
        if operator.writes and operator.name != "aten::_amp_foreach_non_finite_check_and_unscale_":
            for i in operator.writes:
                for t in tensors_in([args[i]] if i < len(args) else kwargs.values()):
                    value = getattr(t, "_stepcast_value", None)
                    if value is not None:
                        value.valid[0] = False
        elif operator.is_view and outs and not operator.returns_new:
            return
        for fake in outs:
            if isinstance(fake, FakeTensor) and fake.numel() <= _MOST_MADE_UP and not fake.is_complex():
                fake._stepcast_value = Value(self._guess(operator.name, fake), [True])

    @staticmethod
    def _guess(name: str, fake: torch.Tensor) -> torch.Tensor:
        if fake.dtype == torch.bool:
            return torch.full(fake.shape, name in ("aten::all", "aten::isfinite", "aten::ge", "aten::_is_all_true"))
        return torch.ones(fake.shape, dtype=fake.dtype)

    @staticmethod
    def _worth(operator: OfOperator, args: Any, kwargs: Any, outs: List[torch.Tensor]) -> bool:
        if operator.is_view and not operator.returns_new:
            return True
        return all(t.numel() <= (_MOST_FRACTIONS if t.is_floating_point() else _MOST_WHOLE) for t in outs) \
            and operator.name not in ("aten::empty", "aten::empty_like", "aten::new_empty", "aten::empty_strided")

    @staticmethod
    def _cell(args: Any, fake: torch.Tensor) -> List[bool]:
        storage = fake.untyped_storage()._cdata
        for t in tensors_in(args):
            value = getattr(t, "_stepcast_value", None)
            if value is not None and t.untyped_storage()._cdata == storage:
                return value.valid
        return [True]

    # ---- Transfers between CPU and GPU, and data-dependent operators ----
    def _scalar(self, record: Any, args: Any, kwargs: Any) -> Any:
        record.sync = "stream"
        tensor = args[0]
        value = self.value_of(tensor)
        if value is None:
            self.guesses.note(Guesses.of_values[0])
            value = self._guess("", torch.empty((), dtype=tensor.dtype))
        return value.item()

    def _to_copy(self, record: Any, args: Any, kwargs: Any) -> Any:
        source, device = args[0], kwargs.get("device")
        to_gpu = isinstance(device, torch.device) and device.type == "cuda"
        from_gpu = isinstance(source, FakeTensor)
        if to_gpu and not from_gpu:
            record.copy, record.sync = "HtoD", None if kwargs.get("non_blocking") and is_pinned(source) else "stream"
            if source.device.type == "meta":
                return NotImplemented
            if source.layout == torch.sparse_coo:
                parts = [self.fake_of(t, device) for t in (source._indices(), source._values())]
                return self.fake.dispatch(aten._sparse_coo_tensor_with_dims_and_tensors.default, (), (
                    source.sparse_dim(), source.dense_dim(), list(source.shape), *parts),
                    {"dtype": source.dtype, "layout": source.layout, "device": device})
            out = self.fake.dispatch(aten.empty_strided.default, (), (list(source.shape), _dense_strides(source)),
                                     {"dtype": kwargs.get("dtype") or source.dtype, "device": device})
            small = source.numel() <= (_MOST_FRACTIONS if out.is_floating_point() else _MOST_WHOLE)
            if small:
                out._stepcast_value = Value(aten._to_copy.default(source, dtype=out.dtype).clone(), [True])
            return out
        if from_gpu and isinstance(device, torch.device) and device.type == "cpu":
            record.copy, record.sync = "DtoH", None if kwargs.get("non_blocking") and kwargs.get("pin_memory") else "stream"
            return self._read(source, kwargs.get("dtype"))
        return NotImplemented

    def _read(self, source: torch.Tensor, dtype: Optional[torch.dtype] = None) -> torch.Tensor:
        value = self.value_of(source)
        if value is None:
            self.guesses.note(Guesses.of_values[1])
            return leave_out(torch.zeros(source.shape, dtype=dtype or source.dtype))
        return value.to(dtype or source.dtype, copy=True)

    def _copy(self, record: Any, args: Any, kwargs: Any) -> Any:
        into, source = args[0], args[1]
        non_blocking = bool(args[2]) if len(args) > 2 else bool(kwargs.get("non_blocking"))
        if isinstance(into, FakeTensor):
            if isinstance(source, FakeTensor) or source.device.type == "meta":
                return NotImplemented
            record.copy, record.sync = "HtoD", None if non_blocking and is_pinned(source) else "stream"
            value = getattr(into, "_stepcast_value", None)
            if value is not None:
                if value.valid[0]:
                    value.real.copy_(source)
            elif into.numel() <= _MOST_FRACTIONS and into._is_view() is False:
                into._stepcast_value = Value(source.detach().to(into.dtype, copy=True).expand(into.shape).clone(), [True])
            return into
        record.copy, record.sync = "DtoH", None if non_blocking and is_pinned(into) else "stream"
        value = self._read(source)
        return leave_out(into) if is_hollow(value) else aten.copy_.default(into, value)

    def _known(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result on the tracked values of the arguments, as fake tensors; None if they are not known."""
        values = self._values_of(func, self.operators[func], args, kwargs)
        if values is None:
            return None
        device = next(t for t in tensors_in(args) if isinstance(t, FakeTensor)).device
        return tree_map_only(torch.Tensor, lambda t: self.fake_of(t, device), func(*values[0], **values[1]))

    def _count(self, elements: int, what: str) -> int:
        self.guesses.note(f"{what}: {self.guesses.share:g} of the elements")
        return max(1, round(elements * self.guesses.share)) if elements > 0 else 0

    def _of_data(self) -> Dict[Any, Any]:
        """Operators with results of data-dependent size: the results if the values are not known."""
        def masked(args: Any, _: Any) -> Any:
            shape = torch.broadcast_shapes(args[0].shape, args[1].shape)
            return self.empty(args[0], (self._count(shape.numel(), "masked_select"),))

        def unique(args: Any, _: Any) -> Any:
            count = self._count(args[0].numel(), "unique")
            whole = self.empty(args[0], args[0].shape, torch.int64)
            return self.empty(args[0], (count,)), whole, self.empty(args[0], (count,), torch.int64)

        return {
            aten.nonzero.default: lambda a, _: self.empty(a[0], (a[0].dim(), self._count(a[0].numel(), "nonzero")), torch.int64).t(),
            aten.masked_select.default: masked, aten._unique2.default: unique,
            aten.bincount.default: lambda a, kwargs: self._evenly(
                "bincount", a[0], max(kwargs.get("minlength", a[2] if len(a) > 2 else 0), 1), torch.int64)}

    def _read_first(self, func: Any, made: Any) -> Any:
        def run(record: Any, args: Any, kwargs: Any) -> Any:
            record.sync = "stream"  # the host needs the size
            known = self._known(func, args, kwargs)
            return made(args, kwargs) if known is None else known

        return run

    def _index(self, record: Any, args: Any, kwargs: Any) -> Any:
        masks = [i for i in args[1] if i is not None and i.dtype in (torch.bool, torch.uint8)]
        if not masks:
            return NotImplemented
        record.sync = "stream"
        indices: List[Any] = []
        for index in args[1]:
            if index is None or index.dtype not in (torch.bool, torch.uint8):
                indices.append(index)
                continue
            value = self.value_of(index)
            if value is not None:
                count = int(value.count_nonzero())
            else:
                count = self._count(index.numel(), "index by a mask")
            like = index if isinstance(index, FakeTensor) else args[0]
            indices.extend(self.empty(like, (count,), torch.int64) for _ in range(max(index.dim(), 1)))
        source = args[0]
        if len(masks) == 1 and masks[0].dim() == 0:
            source = source.unsqueeze(0)
        return self.run(aten.index.Tensor, self.operators[aten.index.Tensor], (source, indices), {})

    def _equal(self, record: Any, args: Any, kwargs: Any) -> Any:
        record.sync = "stream"
        a, b = self.value_of(args[0]), self.value_of(args[1])
        return args[0].shape == args[1].shape if a is None or b is None else torch.equal(a, b)

    def _repeat(self, record: Any, args: Any, kwargs: Any) -> Any:
        known = self._known(aten.repeat_interleave.Tensor, args, kwargs)
        size = kwargs.get("output_size")
        if size is None:
            record.sync = "stream"
        if known is not None:
            return known
        if size is None:
            self.guesses.note("repeat_interleave: every element once")
            size = args[0].numel()
        return self.empty(args[0], (size,))

    def _evenly(self, what: str, of: torch.Tensor, bins: int, dtype: torch.dtype) -> torch.Tensor:
        """Evenly distributed counts of elements, for example tokens per expert."""
        self.guesses.note(f"{what}: the same number in each bin")
        counts = torch.full((bins,), of.numel() // bins, dtype=dtype)
        counts[: of.numel() % bins] += 1
        return self.fake_of(counts, of.device)


def _dense_strides(tensor: torch.Tensor) -> List[int]:
    """Strides of a copy that keeps the memory format: those of the tensor if it is dense."""
    if tensor.layout == torch.strided and torch.ops.aten.is_non_overlapping_and_dense.default(tensor):
        return list(tensor.stride())
    strides, step = [], 1
    for size in reversed(tensor.shape):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


class Threads:
    """Makes threads of the program run under the mode."""

    def __init__(self, mode: DryMode) -> None:
        plain = threading.Thread.run

        def run(thread: threading.Thread) -> None:
            with mode:
                plain(thread)

        threading.Thread.run = run  # type: ignore[method-assign]
