"""Changes in PyTorch's Python code that let unmodified programs run with fake tensors."""

from __future__ import annotations

import collections
import functools
import sys
import weakref
from typing import Any, Callable, Dict, List

import torch
import torch.utils._foreach_utils as foreach
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor

from stepcast.dryrun.memory import Memory
from stepcast.dryrun.mode import _Fake


def become(target: torch.Tensor, source: torch.Tensor) -> None:
    """Gives `target` the contents and class of `source` without changing its identity, as `target.data = source` does on a GPU."""
    grad_wanted = target.requires_grad
    source = source.detach()
    if isinstance(target, FakeTensor) and isinstance(source, FakeTensor) and target.fake_device == source.fake_device:
        torch._C.TensorBase.data.__set__(target, source)
        target.__dict__.pop("_stepcast_value", None)
        return
    if isinstance(target, torch.nn.Parameter):
        source = torch.nn.Parameter(source, grad_wanted)
    else:
        source.requires_grad_(grad_wanted)
    attributes = {k: v for k, v in target.__dict__.items() if k not in _FAKE_ATTRIBUTES}
    for name in ("__class__", "__dict__"):  # as torch.utils.swap_tensors, whoever else holds them
        ours, theirs = getattr(target, name), getattr(source, name)
        setattr(target, name, theirs)
        setattr(source, name, ours)
    torch._C._swap_tensor_impl(target, source)
    for name, value in attributes.items():
        target.__dict__.setdefault(name, value)


_FAKE_ATTRIBUTES = {"_stepcast_value", "_stepcast_pinned", "fake_mode", "fake_device", "constant", "real_tensor", "pytype",
                    "dispatch_keys", "_is_param", "item_memo", "unique_memo", "unique_consecutive_memo", "nonzero_memo",
                    "_debug_trace", "nested_int_memo"}


def _apply(plain: Callable[..., Any]) -> Callable[..., Any]:
    def apply(self: torch.nn.Module, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> torch.nn.Module:
        kinds = [type(t) for t in (*self._parameters.values(), *self._buffers.values()) if t is not None]
        if recurse:
            for module in self.children():
                module._apply(fn)
        if any(not issubclass(k, (torch.nn.Parameter, FakeTensor)) and k is not torch.Tensor for k in kinds):
            return plain(self, fn, False)  # DTensors and other subclasses
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            with torch.no_grad():
                applied = fn(parameter)
            if applied is not parameter and not _same(applied, parameter):
                if parameter.device.type == "meta":
                    self._parameters[name] = torch.nn.Parameter(applied, parameter.requires_grad)
                else:
                    become(parameter, applied)
            if parameter.grad is not None:
                with torch.no_grad():
                    parameter.grad = fn(parameter.grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    return apply


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.device == b.device and a.dtype == b.dtype and type(a) is type(b) \
        and a.untyped_storage()._cdata == b.untyped_storage()._cdata


def _data() -> property:
    plain = torch._C.TensorBase.data

    def get(self: torch.Tensor) -> torch.Tensor:
        return plain.__get__(self)

    def put(self: torch.Tensor, value: torch.Tensor) -> None:
        if isinstance(self, FakeTensor) == isinstance(value, FakeTensor) or not isinstance(value, torch.Tensor):
            plain.__set__(self, value)
        else:
            become(self, value)

    return property(get, put)


def install(memory: Memory) -> None:
    torch.nn.Module._apply = _apply(torch.nn.Module._apply)  # type: ignore[method-assign]
    torch.Tensor.data = _data()  # type: ignore[assignment,misc]
    FakeTensor.data_ptr = lambda self: (memory.number_of(self) << 36) + self.storage_offset() * self.element_size()  # type: ignore[method-assign]
    FakeTensor.__format__ = _format  # type: ignore[method-assign,assignment]
    fake_tensor.init_gpu_context = lambda device: None
    for name in ("prepare_trace", "start_trace", "stop_trace", "export_chrome_trace", "export_stacks", "export_memory_timeline"):
        setattr(torch.profiler.profiler._KinetoProfile, name, lambda self, *_, **__: None)  # the recorder's profiler is the one that runs
    nothing = torch.autograd.profiler_util.EventList([])
    torch.profiler.profiler._KinetoProfile.key_averages = lambda self, *_, **__: nothing  # type: ignore[method-assign]
    pointer, resize = torch.UntypedStorage.data_ptr, torch.UntypedStorage.resize_
    torch.UntypedStorage.data_ptr = lambda self: memory.held(self) << 36 or pointer(self)  # type: ignore[method-assign]

    def resize_(self: Any, size: int) -> Any:
        out = resize(self, size)
        memory.resized(self)
        return out

    torch.UntypedStorage.resize_ = resize_  # type: ignore[method-assign]
    backward = torch.autograd.function.BackwardCFunction.apply

    def apply(self: Any, *args: Any) -> Any:
        torch._C._set_only_lift_cpu_tensors(True)  # the engine's thread may have run no operator yet
        return backward(self, *args)

    torch.autograd.function.BackwardCFunction.apply = apply  # type: ignore[method-assign]
    for name in ("tensor", "as_tensor"):
        plain = getattr(torch, name)
        setattr(torch, name, _of_scalars(plain))
        torch.jit._builtins._register_builtin(getattr(torch, name), torch.jit._builtins._find_builtin(plain))
    for name, mode, gates in (("rnn_relu", 0, 1), ("rnn_tanh", 1, 1), ("lstm", 2, 4), ("gru", 3, 3)):
        setattr(torch._VF, name, _recurrent(getattr(torch._VF, name), mode, gates))
    _memory_answers(memory)
    for module in (sys.modules["torch.optim.optimizer"], foreach):  # one kernel for many tensors, as on a GPU
        module._foreach_supported_types.append(FakeTensor)


def _format(tensor: FakeTensor, spec: str) -> str:
    """Formats a GPU tensor. Tensors of torch.compile are excluded, because reading them would be traced."""
    own = tensor.dim() == 0 and isinstance(tensor.fake_mode, _Fake)
    return format(tensor.item() if own else str(tensor), spec)


def _of_scalars(plain: Callable[..., Any]) -> Callable[..., Any]:
    """For lists of tensors with one element: each is read from the GPU."""

    def read(data: Any) -> Any:
        if isinstance(data, (list, tuple)):
            return [read(d) for d in data] if len(data) < 4096 else data
        return data.item() if isinstance(data, FakeTensor) else data

    def make(data: Any, *args: Any, **kwargs: Any) -> Any:
        return plain(read(data) if isinstance(data, (list, tuple)) else data, *args, **kwargs)

    return make


def _recurrent(plain: Callable[..., Any], mode: int, gates: int) -> Callable[..., Any]:
    """Calls the cuDNN operator directly. PyTorch's C++ code would first ask the library for descriptors."""
    def call(x: torch.Tensor, *args: Any) -> Any:
        if not isinstance(x, FakeTensor) or x.device.type != "cuda":
            return plain(x, *args)
        packed = not isinstance(args[2], bool)
        sizes = args[0].tolist() if packed else []
        state, weights, biases, layers, dropout, train, both, *first = args[packed:]
        states = list(state) if isinstance(state, (tuple, list)) else [state]
        if torch.is_autocast_enabled("cuda"):
            wide = torch.get_autocast_dtype("cuda")
            x, weights, states = x.to(wide), [w.to(wide) for w in weights], [s.to(wide) for s in states]
        hidden = weights[1].shape[0] // gates
        projected = states[0].shape[2] if states[0].shape[2] != hidden else 0
        each = 2 * (1 + biases) + bool(projected)
        with torch.autocast("cuda", enabled=False):
            out = torch._cudnn_rnn(x, weights, each, None, states[0], states[1] if len(states) > 1 else None, mode, hidden, projected,
                                   layers, bool(first and first[0]), dropout, train, both, sizes, None)
        return out[:1 + len(states)]

    return call


def _memory_answers(memory: Memory) -> None:
    top = {"allocated": 0}

    def allocated(device: Any = None) -> int:
        return memory.allocated

    def peak(device: Any = None) -> int:
        top["allocated"] = max(top["allocated"], memory.peak)
        return top["allocated"]

    def info(device: Any = None) -> Any:
        total = torch.cuda.get_device_properties(0).total_memory
        return max(total - memory.allocated, 0), total

    def stats(device: Any = None) -> Dict[str, int]:
        return collections.Counter({f"{kind}.all.{what}": value for kind in ("allocated_bytes", "reserved_bytes", "active_bytes")
                                    for what, value in (("current", memory.allocated), ("peak", peak()), ("allocated", peak()))}, num_alloc_retries=0, num_ooms=0)

    for module in (torch.cuda, torch.cuda.memory):
        module.memory_allocated = module.memory_reserved = allocated  # type: ignore[attr-defined]
        module.max_memory_allocated = module.max_memory_reserved = peak  # type: ignore[attr-defined]
        module.mem_get_info = info  # type: ignore[attr-defined]
        module.memory_stats = stats  # type: ignore[attr-defined]


def seem_real() -> None:
    """transformers omits checks of attention masks for fake tensors, and then uses a mask. This makes them seem real."""
    library = sys.modules.get("transformers.utils.import_utils")
    if library is not None and hasattr(library, "is_fake_tensor"):
        library.is_fake_tensor = lambda x: False  # type: ignore[attr-defined]


class Modules:
    """Names of the running modules, from hooks on all modules."""

    def __init__(self, on_outermost: Callable[[torch.nn.Module], None]) -> None:
        self._names: Dict[int, str] = {}
        self._stack: List[str] = []
        self._on_outermost = on_outermost  # called before the training call of a module that no other module calls
        before = torch.nn.modules.module.register_module_forward_pre_hook(self._enter)
        behind = torch.nn.modules.module.register_module_forward_hook(self._leave, always_call=True)
        self._hooks = [(torch.nn.modules.module._global_forward_pre_hooks, before.id),
                       (torch.nn.modules.module._global_forward_hooks, behind.id)]

    def hidden(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call` without the hooks, which torch.compile would trace."""
        @functools.wraps(call)
        def without(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return call(*args, **kwargs)
            kept = [(hooks, key, hooks.pop(key)) for hooks, key in self._hooks if key in hooks]
            try:
                return call(*args, **kwargs)
            finally:
                for hooks, key, hook in kept:
                    hooks[key] = hook

        return without

    def current(self) -> str:
        return self._stack[-1] if self._stack else ""

    def _enter(self, module: torch.nn.Module, inputs: Any) -> None:
        if not self._stack:
            if module.training:
                self._on_outermost(module)
            if id(module) not in self._names:
                for name, inner in module.named_modules():
                    self._names.setdefault(id(inner), name or type(module).__name__)
        self._stack.append(self._names.get(id(module)) or type(module).__name__)

    def _leave(self, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        if self._stack:
            self._stack.pop()


def follow_optimizers(on_step: Callable[[], None]) -> Callable[[], Any]:
    """Calls `on_step` after each step of the first optimizer, outside of its profiler label. Returns a function that gives that
    optimizer: None before its first step, and after the program has dropped it. Then another one can be the first."""
    state: Dict[str, Any] = {"depth": 0, "first": lambda: None}
    plain = torch.optim.Optimizer.profile_hook_step

    def hook(step: Callable[..., Any]) -> Callable[..., Any]:
        inner = plain(step)

        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            state["depth"] += 1
            try:
                out = inner(self, *args, **kwargs)
            finally:
                state["depth"] -= 1
            if state["depth"] == 0 and state["first"]() in (None, self):  # not inside another optimizer that contains it
                state["first"] = weakref.ref(self)
                on_step()
            return out

        wrapped.__wrapped__ = step  # type: ignore[attr-defined]
        wrapped.hooked = True  # type: ignore[attr-defined]
        return wrapped

    torch.optim.Optimizer.profile_hook_step = staticmethod(hook)  # type: ignore[assignment]
    return lambda: state["first"]()
