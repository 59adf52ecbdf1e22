"""DistributedDataParallel without its C++ reducer, which reads data: the same buckets, order and copies in Python."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Optional

import torch
import torch.distributed as dist

_MiB = 1 << 20
_FIRST_BUCKET = 1 * _MiB


class _Bucket:
    """Gradients that are reduced in one message."""

    def __init__(self, parameters: List[torch.nn.Parameter]) -> None:
        self.parameters = parameters
        self.flat = torch.empty(sum(p.numel() for p in parameters), dtype=parameters[0].dtype, device=parameters[0].device)
        self.views: Dict[int, torch.Tensor] = {}
        at = 0
        for p in parameters:
            self.views[id(p)] = self.flat.narrow(0, at, p.numel()).view(p.shape)
            at += p.numel()
        self.missing = len(parameters)
        self.work: Any = None


class DistributedDataParallel(torch.nn.Module):
    """Replaces torch.nn.parallel.DistributedDataParallel in a dry run."""

    _active_ddp_module: Any = None

    def __init__(self, module: torch.nn.Module, device_ids: Any = None, output_device: Any = None, dim: int = 0,
                 broadcast_buffers: bool = True, init_sync: bool = True, process_group: Any = None, bucket_cap_mb: Optional[float] = None,
                 find_unused_parameters: bool = False, check_reduction: bool = False, gradient_as_bucket_view: bool = False,
                 static_graph: bool = False, delay_all_reduce_named_params: Any = None, param_to_hook_all_reduce: Any = None,
                 mixed_precision: Any = None, device_mesh: Any = None, skip_all_reduce_unused_params: bool = False, **_: Any) -> None:
        super().__init__()
        self.module = module
        self.process_group = process_group if process_group is not None else \
            device_mesh.get_group() if device_mesh is not None else dist.group.WORLD
        if self.process_group is None:
            raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
        self.device_ids, self.output_device, self.dim = device_ids, output_device, dim
        self.device = next(iter(module.parameters())).device
        self.device_type = self.device.type
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.bucket_bytes_cap = int((bucket_cap_mb if bucket_cap_mb is not None else 25) * _MiB)
        self.logger: Any = None
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._parameters_to_reduce = [p for n, p in module.named_parameters() if p.requires_grad and n not in ignored]
        if not self._parameters_to_reduce:
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient.")
        self._buckets = self._assign(list(reversed(self._parameters_to_reduce)))
        self._order: List[torch.nn.Parameter] = []
        self._rebuilt = False
        self._queued = False
        for parameter in self._parameters_to_reduce:
            parameter.register_post_accumulate_grad_hook(self._ready)

    def _assign(self, parameters: List[torch.nn.Parameter]) -> List[_Bucket]:
        buckets: List[_Bucket] = []
        open_ones: Dict[Any, List[torch.nn.Parameter]] = {}
        size: Dict[Any, int] = {}
        caps: Dict[Any, int] = {}
        for p in parameters:
            key = (p.dtype, p.device)
            open_ones.setdefault(key, []).append(p)
            size[key] = size.get(key, 0) + p.numel() * p.element_size()
            if size[key] >= caps.get(key, min(_FIRST_BUCKET, self.bucket_bytes_cap)):
                buckets.append(_Bucket(open_ones.pop(key)))
                size[key], caps[key] = 0, self.bucket_bytes_cap
        return buckets + [_Bucket(rest) for rest in open_ones.values()]

    # ---- Backward ----
    def _ready(self, parameter: torch.nn.Parameter) -> None:
        if not self.require_backward_grad_sync:
            return
        if not self._queued:
            self._queued = True
            torch.autograd.Variable._execution_engine.queue_callback(self._finish)
        if not self._rebuilt:
            self._order.append(parameter)
        bucket = next(b for b in self._buckets if id(parameter) in b.views)
        view = bucket.views[id(parameter)]
        if parameter.grad is not None and parameter.grad.data_ptr() != view.data_ptr() or not self.gradient_as_bucket_view:
            torch.mul(parameter.grad.detach(), 1.0 / self.process_group.size(), out=view)
        else:
            view.div_(self.process_group.size())
        bucket.missing -= 1
        for one in self._buckets:  # in bucket order
            if one.work is None and one.missing > 0:
                break
            if one.work is None:
                one.work = dist.all_reduce(one.flat, group=self.process_group, async_op=True)

    def _finish(self) -> None:
        for bucket in self._buckets:
            if bucket.work is None:
                bucket.work = dist.all_reduce(bucket.flat, group=self.process_group, async_op=True)
        if self.find_unused_parameters and not self.static_graph:
            used = torch.ones(len(self._parameters_to_reduce), dtype=torch.int32, device=self.device)
            dist.all_reduce(used, group=self.process_group, async_op=True).wait()
        for bucket in self._buckets:
            bucket.work.wait()
            for parameter in bucket.parameters:
                view = bucket.views[id(parameter)]
                if parameter.grad is None:
                    continue
                if self.gradient_as_bucket_view:
                    parameter.grad = view
                else:
                    parameter.grad.detach().copy_(view)
            bucket.work, bucket.missing = None, len(bucket.parameters)
        self._queued = False
        if not self._rebuilt:  # in the order in which gradients became ready
            self._rebuilt = True
            rest = [p for p in self._parameters_to_reduce if all(p is not q for q in self._order)]
            self._buckets = self._assign(self._order + rest)

    # ---- Forward ----
    @torch._disable_dynamo(recursive=False)
    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self.broadcast_buffers and self.require_forward_param_sync and torch.is_grad_enabled():
            self._sync_buffers()
        DistributedDataParallel._active_ddp_module = self  # torch.compile splits its graphs at the buckets
        try:
            return self.module(*inputs, **kwargs)
        finally:
            DistributedDataParallel._active_ddp_module = None

    @classmethod
    def _get_active_ddp_module(cls) -> Any:
        return cls._active_ddp_module

    def _sync_buffers(self) -> None:
        by_type: Dict[torch.dtype, List[torch.Tensor]] = {}
        for buffer in self.module.buffers():
            if buffer.device.type == "cuda":
                by_type.setdefault(buffer.dtype, []).append(buffer.detach())
        for buffers in by_type.values():
            flat = torch.cat([b.reshape(-1) for b in buffers])
            dist.broadcast(flat, dist.get_global_rank(self.process_group, 0), group=self.process_group)
            at = 0
            for buffer in buffers:
                buffer.copy_(flat.narrow(0, at, buffer.numel()).view(buffer.shape))
                at += buffer.numel()

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextlib.contextmanager
    def join(self, *_: Any, **__: Any) -> Iterator[None]:
        yield

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Communication hooks read data, so they are ignored: gradients are reduced unchanged."""

    def _register_builtin_comm_hook(self, kind: Any) -> None:
        pass

    _set_ddp_runtime_logging_sample_rate = _register_builtin_comm_hook

    def _set_static_graph(self) -> None:
        self.static_graph = True

    def _get_ddp_logging_data(self) -> Dict[str, Any]:
        return {}
