"""Fused attention: every implementation of PyTorch on the device, forward and backward measured separately."""

from __future__ import annotations

import contextlib
from typing import Any, List, Optional

import torch

from stepcast.collect.kernels.case import ELEMENT_BYTES, Bench, Case, Prepared, Scope, draw, gradient_of
from stepcast.collect.sampling import Sampler
from stepcast.collect.skip import Skip

# Names in the schema -> backends of PyTorch. cuDNN's kernel for Hopper is listed as the third generation of flash attention.
_BACKENDS = {"flash2": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "flash3": "CUDNN_ATTENTION"}


def plan(scope: Scope) -> List[Case]:
    if scope.cpu:
        sampler = Sampler(scope.seed, "attention/any")
        return draw(scope.count(40, least=8), lambda: _case(scope, sampler, "fp32", ""))
    cases: List[Case] = []
    for dtype, kernel, full in (("bf16", "flash2", 40), ("bf16", "flash3", 30), ("bf16", "efficient", 15),
                                ("fp16", "flash2", 20), ("fp32", "efficient", 20)):
        sampler = Sampler(scope.seed, f"attention/{dtype}/{kernel}")
        cases += draw(scope.count(full, least=4), lambda: _case(scope, sampler, dtype, kernel))
    return cases


def _case(scope: Scope, sampler: Sampler, dtype: str, kernel: str) -> Optional[Case]:
    heads = sampler.choice((4, 8, 12, 12, 16, 20, 24, 32, 32, 40, 64))
    shape = {
        "batch": sampler.extent(1, 64, 1),
        "seq_len_tokens": sampler.extent(128, 16384, sampler.choice((128, 128, 64, 1))),
        "n_heads": heads, "n_kv_heads": heads if scope.cpu or sampler.chance(0.7) or heads % 4 != 0 else heads // 4,
        "head_dim": sampler.choice((64, 64, 128, 128, 80, 96, 32)), "causal": int(sampler.chance(0.6)),
    }
    if kernel:
        shape["kernel"] = kernel
    rows = shape["batch"] * shape["seq_len_tokens"]
    needed = 10.0 * ELEMENT_BYTES[dtype] * rows * heads * shape["head_dim"]
    flops = 4.0 * rows * shape["seq_len_tokens"] * heads * shape["head_dim"]
    limit = scope.max_flops(dtype)
    if scope.cpu:
        needed += 4.0 * rows * shape["seq_len_tokens"] * heads  # the scores may be stored
    if needed > scope.max_bytes or flops > limit:
        return None
    return Case("attention", dtype, shape, needed, lambda bench: _prepare(bench, dtype, shape))


def _prepare(bench: Bench, dtype: str, shape: "dict[str, Any]") -> Prepared:
    function = getattr(torch.nn.functional, "scaled_dot_product_attention", None)
    if function is None:
        raise Skip(f"PyTorch {torch.__version__} has no scaled_dot_product_attention")
    options = {}
    if shape["n_kv_heads"] != shape["n_heads"]:
        if not _takes_grouped_heads(function):
            raise Skip(f"PyTorch {torch.__version__} has no grouped heads in attention")
        options["enable_gqa"] = True

    def operand(heads: int) -> torch.Tensor:
        return bench.normal(shape["batch"], heads, shape["seq_len_tokens"], shape["head_dim"], dtype=dtype, grad=True)

    q, k, v = operand(shape["n_heads"]), operand(shape["n_kv_heads"]), operand(shape["n_kv_heads"])
    causal = bool(shape["causal"])

    def forward() -> torch.Tensor:
        return function(q, k, v, is_causal=causal, **options)

    def forward_on_backend() -> torch.Tensor:
        with _only(shape.get("kernel", "")):
            return forward()

    output = forward_on_backend()
    upstream = torch.randn_like(output)
    return Prepared({"forward": forward_on_backend, "backward": gradient_of(output, [q, k, v], upstream)})


def _takes_grouped_heads(function: Any) -> bool:
    return "enable_gqa" in (function.__doc__ or "")


def _only(kernel: str) -> "contextlib.AbstractContextManager[Any]":
    """Enables a single implementation. Raises Skip if this PyTorch does not have it."""
    if not kernel:
        return contextlib.nullcontext()
    name = _BACKENDS[kernel]
    module = getattr(torch.nn, "attention", None)
    if module is not None and hasattr(module, "sdpa_kernel"):
        if not hasattr(module.SDPBackend, name):
            raise Skip(f"PyTorch {torch.__version__} has no {name}")
        return module.sdpa_kernel(getattr(module.SDPBackend, name))
    if kernel == "flash3" or not hasattr(torch.backends.cuda, "sdp_kernel"):
        raise Skip(f"PyTorch {torch.__version__} has no {name}")
    return torch.backends.cuda.sdp_kernel(enable_flash=kernel == "flash2", enable_mem_efficient=kernel == "efficient",
                                          enable_math=False)
