"""`torch.compile` and Triton kernels.

Dynamo, AOTAutograd and Inductor run unchanged, so graph breaks, recomputation, fusion and buffers are as PyTorch makes them. Only
work for the GPU differs: a Triton kernel is recorded with its tensors, and buffers of compiled code are fake.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import _disable_current_modes

from stepcast.dryrun.mode import tensors_in

aten = torch.ops.aten

# Features that would measure on the GPU, start processes, or leave files behind.
_SETTINGS = {"compile_threads": 1, "fx_graph_cache": False, "max_autotune": False, "max_autotune_gemm": False,
             "max_autotune_pointwise": False, "coordinate_descent_tuning": False, "triton.cudagraphs": False, "profile_bandwidth": True,
             "benchmark_kernel": False, "triton.autotune_at_compile_time": False, "cpp_wrapper": False, "combo_kernels": False}


class Kernel:
    """A Triton kernel written by Inductor. A call records it."""

    def __init__(self, compiled: "Compiled", name: str, source: str) -> None:
        self._compiled, self.name = compiled, re.sub(r"_\d+$", "", name)
        head = re.search(rf"def {re.escape(name)}\(([^)]*)\)", source)
        self._parameters = [p.split(":")[0].strip() for p in head.group(1).split(",")] if head else []
        amount = re.search(r"'kernel_num_gb': ([0-9.e+-]+)", source)
        self._bytes = float(amount.group(1)) * 1e9 if amount else None
        changed = re.search(r"'mutated_arg_names': \[([^\]]*)\]", source)
        self._changed = set(re.findall(r"'(\w+)'", changed.group(1))) if changed else set()

    def run(self, *args: Any, **_: Any) -> None:
        named = dict(zip(self._parameters, args))
        if "flex_attention" in self.name and "arg_Q" in named:  # has GEMMs, which bytes do not price
            q, k, v, out = (named.get(f"arg_{n}") for n in ("Q", "K", "V", "DO"))
            self._compiled.note("flex_attention is priced as causal attention")
            if out is None:
                self._compiled.launched("aten::_scaled_dot_product_flash_attention", [q, k, v, 0.0, True],
                                        [t for n, t in named.items() if n.startswith("out_ptr")])
            else:
                self._compiled.launched("aten::_scaled_dot_product_flash_attention_backward",
                                        [out, q, k, v, out, named["arg_LSE"], None, None, 0, 0, 0.0, True], [q, k, v])
            return
        reads, writes = [], []
        for name, value in named.items():
            if isinstance(value, torch.Tensor):
                if name.startswith("out_ptr") or name in self._changed:
                    writes.append(value)
                if not name.startswith("out_ptr"):
                    reads.append(value)
        self._compiled.launched(self.name, reads, writes, self._bytes)


class Compiled:
    """Patches of PyTorch's compiler, installed when a program first uses it."""

    def __init__(self, mode: Any, refused: bool) -> None:
        self.mode = mode
        self._refused = refused  # if true, nothing is compiled
        self.notes: List[str] = []
        self.used = False
        self._ready = False

    def counts(self) -> Dict[str, Any]:
        """Fields of the record about compilation, and the note about it."""
        from torch._dynamo.utils import counters

        graphs, why = (counters["stats"]["unique_graphs"], [w.split("\n")[0] for w in counters["graph_break"]]) if self.used else (0, [])
        said = f"ran compiled: {graphs} graph{'s' * (graphs != 1)}, {len(why)} graph break{'s' * (len(why) != 1)}"
        self.note("; ".join([said, *why[:3]]) if self.used else "ran eager: operator by operator")
        return {"compiled": self.used, "graphs": graphs, "graph_breaks": len(why)}

    def whole(self, module: torch.nn.Module) -> None:
        """Compiles the module on its next call, unless parts of the module are compiled already."""
        def call(*args: Any, **kwargs: Any) -> Any:  # module.compile() would leave nn.Sequential unchanged
            return module._call_impl(*args, **kwargs)

        if not any(m._compiled_call_impl is not None or isinstance(m, torch._dynamo.OptimizedModule) for m in module.modules()):
            module._compiled_call_impl = torch.compile(call)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def launched(self, name: str, reads: Sequence[Any], writes: Sequence[Any], moved: Optional[float] = None) -> None:
        """Records a kernel that moves `moved` bytes; by default all bytes of its tensors."""
        with self.mode.recorder.leaf(name, None, tuple(reads), {}) as leaf:
            leaf.outputs = tuple(writes)
            if leaf.inputs and moved:
                over = sum(t.numel() * t.element_size() for t in (*reads, *writes)) - moved
                for i in sorted(range(len(reads)), key=lambda i: -reads[i].numel() * reads[i].element_size()):
                    if over <= 0:
                        break
                    # Only a part of this tensor is read: rows of a table, a slice.
                    value, _, kind, _ = leaf.inputs[i]
                    left = max(1, round(reads[i].numel() - over / reads[i].element_size()))
                    over -= (reads[i].numel() - left) * reads[i].element_size()
                    leaf.inputs[i] = (value, [left], kind, [1])
        for tensor in tensors_in(writes):
            value = getattr(tensor, "_stepcast_value", None)
            if value is not None:
                value.valid[0] = False

    def install(self, hidden: Callable[..., Any]) -> None:
        """Installs the patches. `hidden` removes the hooks of the dry run from a function."""
        plain = torch.compile

        def compile(model: Any = None, **options: Any) -> Any:
            if self._refused:
                return plain(model, **options)  # returns the model unchanged: TORCH_COMPILE_DISABLE is set
            self._prepare()
            if options.get("backend") == "cudagraphs":
                self.note("torch.compile(backend='cudagraphs') was run without graphs")
                options["backend"] = "aot_eager"
            elif options.get("backend", "inductor") == "inductor":
                mode = options.pop("mode", None)
                if mode in ("reduce-overhead", "max-autotune") or (options.get("options") or {}).get("triton.cudagraphs"):
                    self.mode.recorder.compiled_graph = "cuda_graph"
                if str(mode).startswith("max-autotune"):
                    self.note(f"torch.compile(mode={mode!r}): GEMMs are those of the libraries; those of Triton were not measured")
                if options.pop("dynamic", None):
                    self.note("torch.compile(dynamic=True): shapes were taken as fixed")
            out = plain(model, **options)
            if isinstance(out, torch.nn.Module):
                out.forward = hidden(out.forward)  # type: ignore[method-assign]
            return out if model is None or isinstance(out, torch.nn.Module) else hidden(out)

        torch.compile = compile  # type: ignore[assignment]

    def _prepare(self) -> None:
        if self._ready:
            return
        self._ready = True
        import torch._dynamo.convert_frame
        import torch._functorch.config
        import torch._inductor.async_compile
        import torch._inductor.compile_fx as front
        import torch._inductor.constant_folding as folding
        import torch._inductor.fx_passes.pad_mm as pad_mm

        torch._dynamo.convert_frame.DistributedDataParallel = torch.nn.parallel.DistributedDataParallel
        frame = torch._dynamo.convert_frame.ConvertFrame.__call__

        def convert(*args: Any, **kwargs: Any) -> Any:
            with _disable_current_modes(), self.mode.recorder.paused():
                return frame(*args, **kwargs)

        torch._dynamo.convert_frame.ConvertFrame.__call__ = convert  # type: ignore[method-assign]
        torch._dynamo.config.automatic_dynamic_shapes = False
        torch._dynamo.config.recompile_limit = 256
        torch._inductor.config.compile_threads = 2
        torch._functorch.config.enable_autograd_cache = False
        if hasattr(torch._functorch.config, "force_non_lazy_backward_lowering"):  # before 2.9
            torch._functorch.config.force_non_lazy_backward_lowering = True
        with contextlib.suppress(ImportError):  # missed only when a graph is compiled
            import triton.runtime  # noqa: F401  the hook of imports does the rest
        FakeTensorMode.avoid_device_init = property(lambda _: True)  # type: ignore[assignment,method-assign]
        guards = torch._C._dynamo.guards
        guards._empty_strided_cuda = self._empty
        guards._reinterpret_tensor = self._reinterpret
        torch._inductor.async_compile.AsyncCompile.triton = \
            lambda _, name, source, device_str="cuda": Kernel(self, name, source)  # type: ignore[method-assign]
        pad_mm.get_cached_should_pad = lambda _: True  # compute-bound GEMMs: a GPU would measure both
        fold = folding.ConstantFolder.run

        def run(folder: Any, *args: Any, **kwargs: Any) -> Any:
            with self.mode:
                return fold(folder, *args, **kwargs)

        folding.ConstantFolder.run = run
        plain = front.compile_fx

        def compile_fx(model: Any, inputs: Any, *args: Any, config_patches: Optional[Dict[str, Any]] = None, **kwargs: Any) -> Any:
            if not any(isinstance(t, FakeTensor) and t.device.type == "cuda" for t in (*inputs, *model.parameters(), *model.buffers())) \
                    and not any("cuda" in str(n.args) + str(n.kwargs) for n in model.graph.nodes):
                return model.forward  # only on the CPU
            if torch._inductor.config.compile_threads == 1:  # it calls itself with the patched settings
                return plain(model, inputs, *args, config_patches=config_patches, **kwargs)
            self.used = True
            try:
                return plain(model, inputs, *args, config_patches={**(config_patches or {}), **_SETTINGS}, **kwargs)
            except Exception as problem:
                self.note(f"a compiled graph was run operator by operator: {type(problem).__name__}: {str(problem).splitlines()[0][:200]}")
                return model.forward

        front.compile_fx = compile_fx

    # ---- Triton ----
    def on_triton(self, _: Any) -> None:
        """Patches Triton: its driver describes the simulated GPU, and launches are recorded."""
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.runtime import autotuner, driver, jit

        compiled = self

        class Driver:
            def __getattr__(self, name: str) -> Any:
                major, minor = torch.cuda.get_device_capability()
                return {"get_current_target": lambda: GPUTarget("cuda", major * 10 + minor, 32), "get_current_device": lambda: 0,
                        "get_active_torch_device": lambda: torch.device("cuda", 0), "get_current_stream": lambda _=None: 0,
                        "get_device_interface": lambda: torch.cuda}.get(name) or _no_driver(name)

        driver.set_active(Driver())

        def run(self: Any, *args: Any, grid: Any = None, warmup: bool = False, **kwargs: Any) -> None:
            compiled.note("kernels of Triton that the program brings are priced by the bytes of their tensors")
            # A tensor that is passed twice is moved once. Values that a kernel writes are unknown.
            tensors = {(t.data_ptr(), t.numel()): t for t in tensors_in((*args, *kwargs.values()))}
            compiled.launched(f"triton_red_fused_{self.fn.__name__.strip('_')}", list(tensors.values()), ())

        def first(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self.fn.run(*args, **{**kwargs, **self.configs[0].all_kwargs()})

        jit.JITFunction.run, autotuner.Autotuner.run = run, first

    def _empty(self, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        device = torch.device("cuda", torch.cuda.current_device())
        out = self.mode.fake.dispatch(aten.empty_strided.default, (), (list(size), list(stride)), {"dtype": dtype, "device": device})
        self.mode.recorder.memory.number_of(out)
        return out

    def _reinterpret(self, tensor: torch.Tensor, size: Sequence[int], stride: Sequence[int], offset: int = 0) -> torch.Tensor:
        return self.mode.fake.dispatch(aten.as_strided.default, (),
                                       (tensor, list(size), list(stride), tensor.storage_offset() + offset), {})


def _no_driver(name: str) -> Any:
    raise AttributeError(f"stepcast dryrun: Triton's driver was asked for {name}, which needs a real GPU")
