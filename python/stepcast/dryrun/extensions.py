"""Replacements for packages with custom kernels that are not installed. Their functions record the operations and compute nothing.

`PACKAGES` is read by imports.py: the names of each package and of its modules.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

launched: Callable[..., None] = lambda *_: None  # records a kernel (name, read and written tensors); set by the session


# ---- flash-attn: uses the copy of its kernels in PyTorch ----
def flash_attn_varlen_func(q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Any, cu_seqlens_k: Any, max_seqlen_q: int, max_seqlen_k: int,
                           dropout_p: float = 0.0, softmax_scale: Optional[float] = None, causal: bool = False,
                           window_size: Any = (-1, -1), softcap: float = 0.0, alibi_slopes: Any = None, deterministic: bool = False,
                           return_attn_probs: bool = False, **_: Any) -> Any:
    out, lse, *_ = torch.ops.aten._flash_attention_forward(
        q, k, v, cu_seqlens_q, cu_seqlens_k, int(max_seqlen_q), int(max_seqlen_k), dropout_p, causal, False, scale=softmax_scale,
        window_size_left=window_size[0], window_size_right=window_size[1])
    return (out, lse, None) if return_attn_probs else out


def flash_attn_func(q: Tensor, k: Tensor, v: Tensor, *args: Any, **kwargs: Any) -> Any:
    return flash_attn_varlen_func(q, k, v, None, None, q.shape[1], k.shape[1], *args, **kwargs)


def flash_attn_qkvpacked_func(qkv: Tensor, *args: Any, **kwargs: Any) -> Any:
    return flash_attn_func(*qkv.unbind(-3), *args, **kwargs)


def flash_attn_kvpacked_func(q: Tensor, kv: Tensor, *args: Any, **kwargs: Any) -> Any:
    return flash_attn_func(q, *kv.unbind(-3), *args, **kwargs)


def flash_attn_varlen_qkvpacked_func(qkv: Tensor, cu_seqlens: Tensor, max_seqlen: int, *args: Any, **kwargs: Any) -> Any:
    return flash_attn_varlen_func(*qkv.unbind(-3), cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, *args, **kwargs)


def flash_attn_with_kvcache(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("stepcast dryrun: flash_attn_with_kvcache is for generation, which is not recorded")


def index_first_axis(x: Tensor, indices: Tensor) -> Tensor:
    return x[indices]


def unpad_input(hidden_states: Tensor, attention_mask: Tensor, unused_mask: Any = None) -> Any:
    lengths = attention_mask.sum(-1, dtype=torch.int32)
    indices = attention_mask.flatten().nonzero().flatten()
    return hidden_states.flatten(0, 1)[indices], indices, F.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0)), lengths.max().item(), lengths


def pad_input(hidden_states: Tensor, indices: Tensor, batch: int, seqlen: int) -> Tensor:
    out = hidden_states.new_zeros((batch * seqlen, *hidden_states.shape[1:]))
    out[indices] = hidden_states
    return out.view(batch, seqlen, *hidden_states.shape[1:])


def apply_rotary_emb(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False, inplace: bool = False, **_: Any) -> Tensor:
    """One kernel in the real package; here its parts."""
    width = 2 * cos.shape[-1]
    one, two = x[..., :width].chunk(2, -1)
    cos, sin = cos[..., None, :], sin[..., None, :]
    return torch.cat([one * cos - two * sin, two * cos + one * sin, x[..., width:]], -1)


# ---- xformers ----
class LowerTriangularMask:
    pass


def memory_efficient_attention(query: Tensor, key: Tensor, value: Tensor, attn_bias: Any = None, p: float = 0.0,
                               scale: Optional[float] = None, *, op: Any = None, **_: Any) -> Tensor:
    if query.dim() == 3:
        return memory_efficient_attention(query[:, :, None], key[:, :, None], value[:, :, None], attn_bias, p, scale)[:, :, 0]
    if isinstance(attn_bias, Tensor):
        q, k, v = (t.transpose(1, 2) for t in (query, key, value))
        return F.scaled_dot_product_attention(q, k, v, attn_bias, p, scale=scale).transpose(1, 2)
    return flash_attn_func(query, key, value, p, scale, attn_bias is not None)


# ---- Norms, of apex and Transformer Engine ----
class _Norm:
    def __init__(self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, memory_efficient: bool = False,
                 device: Any = None, dtype: Any = None, params_dtype: Any = None, **_: Any) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, device=device, dtype=dtype or params_dtype)  # type: ignore[call-arg]


class FusedLayerNorm(_Norm, nn.LayerNorm):
    pass


class FusedRMSNorm(_Norm, nn.RMSNorm):
    pass


def fused_layer_norm_affine(x: Tensor, weight: Tensor, bias: Tensor, normalized_shape: Any, eps: float = 1e-6, **_: Any) -> Tensor:
    return F.layer_norm(x, normalized_shape, weight, bias, eps)


def fused_rms_norm_affine(x: Tensor, weight: Tensor, normalized_shape: Any, eps: float = 1e-6, **_: Any) -> Tensor:
    return F.rms_norm(x, normalized_shape, weight, eps)


# ---- Optimizers, of apex, Transformer Engine and bitsandbytes ----
class FusedAdam(torch.optim.AdamW):
    def __init__(self, params: Any, lr: float = 1e-3, bias_correction: bool = True, betas: Any = (0.9, 0.999), eps: float = 1e-8,
                 adam_w_mode: bool = True, weight_decay: float = 0.0, *_: Any, **__: Any) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, fused=True)


class FusedSGD(torch.optim.SGD):
    def __init__(self, params: Any, lr: float, momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0,
                 nesterov: bool = False, **_: Any) -> None:
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov, fused=True)


class AdamW8bit(torch.optim.Optimizer):
    """Two states with one byte per element, and a scale for every 256 elements. Small tensors keep fp32."""

    _width = torch.uint8

    def __init__(self, params: Any, lr: float = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2,
                 *_: Any, min_8bit_size: int = 4096, **__: Any) -> None:
        self._least = min_8bit_size
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        loss = None if closure is None else closure()
        for parameter in (p for group in self.param_groups for p in group["params"] if p.grad is not None):
            state = self.state[parameter]
            if not state:
                small = parameter.numel() < self._least
                state.update({f"state{i}": torch.zeros_like(parameter, dtype=torch.float32 if small else self._width) for i in (1, 2)})
                if not small:
                    state.update({f"absmax{i}": torch.zeros(-(-parameter.numel() // 256), device=parameter.device) for i in (1, 2)})
            launched("triton_poi_fused_add_mul", [parameter, parameter.grad, *state.values()], [parameter, *state.values()])
        return loss


def multi_tensor_applier(op: Any, noop_flag_buffer: Tensor, tensor_lists: List[List[Tensor]], *args: Any) -> Any:
    return op(noop_flag_buffer, tensor_lists, *args)


def multi_tensor_l2norm(_: Any, lists: Any, per_tensor: bool = False) -> Any:
    norms = torch._foreach_norm(lists[0])
    return torch.linalg.vector_norm(torch.stack(norms)), torch.stack(norms) if per_tensor else None


def multi_tensor_scale(_: Any, lists: Any, scale: float) -> None:
    if lists[0][0] is lists[1][0]:
        torch._foreach_mul_(lists[0], scale)
    else:
        torch._foreach_copy_(lists[1], torch._foreach_mul(lists[0], scale))


# ---- Transformer Engine ----
_fp8 = {"on": False}


@contextlib.contextmanager
def fp8_autocast(enabled: bool = True, *_: Any, **__: Any) -> Iterator[None]:
    before, _fp8["on"] = _fp8["on"], enabled
    try:
        yield
    finally:
        _fp8["on"] = before


class _Fp8Linear(torch.autograd.Function):
    """Operands are cast to 8 bits, in their layout and transposed. All three GEMMs use the casts."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        x8, w8 = x.to(torch.float8_e4m3fn), weight.to(torch.float8_e4m3fn)
        ctx.save_for_backward(x8, w8)
        ctx.one = torch.ones((), device=x.device)
        return torch._scaled_mm(x8, w8.t(), ctx.one, ctx.one, out_dtype=x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x8, w8 = ctx.saved_tensors
        g8 = grad.to(torch.float8_e5m2)
        dx = torch._scaled_mm(g8, w8.t().contiguous().t(), ctx.one, ctx.one, out_dtype=grad.dtype)
        dw = torch._scaled_mm(g8.t().contiguous(), x8.t().contiguous().t(), ctx.one, ctx.one, out_dtype=grad.dtype)
        return dx, dw


class Linear(nn.Linear):
    def __init__(self, in_features: int, out_features: int, bias: bool = True, params_dtype: Any = None, device: Any = "cuda",
                 **_: Any) -> None:
        super().__init__(in_features, out_features, bias, device=device, dtype=params_dtype)

    def forward(self, input: Tensor, *_: Any, **__: Any) -> Tensor:
        if not _fp8["on"]:
            return super().forward(input)
        wide = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else input.dtype
        out = _Fp8Linear.apply(input.reshape(-1, input.shape[-1]).to(wide), self.weight.to(wide)).view(*input.shape[:-1], -1)
        return out if self.bias is None else out + self.bias


def _norm(kind: str, width: int, eps: float, dtype: Any, device: Any) -> nn.Module:
    return (FusedRMSNorm if kind == "RMSNorm" else FusedLayerNorm)(width, eps, dtype=dtype, device=device)


class LayerNormLinear(Linear):
    def __init__(self, in_features: int, out_features: int, eps: float = 1e-5, bias: bool = True, normalization: str = "LayerNorm",
                 params_dtype: Any = None, device: Any = "cuda", **_: Any) -> None:
        super().__init__(in_features, out_features, bias, params_dtype, device)
        self.norm = _norm(normalization, in_features, eps, params_dtype, device)

    def forward(self, input: Tensor, *_: Any, **__: Any) -> Tensor:
        return super().forward(self.norm(input))


class LayerNormMLP(nn.Module):
    def __init__(self, hidden_size: int, ffn_hidden_size: int, eps: float = 1e-5, bias: bool = True, normalization: str = "LayerNorm",
                 activation: str = "gelu", params_dtype: Any = None, device: Any = "cuda", **_: Any) -> None:
        super().__init__()
        self.gated = activation.endswith("glu")
        self.act = F.silu if activation in ("swiglu", "silu") else F.relu if activation in ("relu", "reglu") else F.gelu
        self.fc1 = LayerNormLinear(hidden_size, ffn_hidden_size * (1 + self.gated), eps, bias, normalization, params_dtype, device)
        self.fc2 = Linear(ffn_hidden_size, hidden_size, bias, params_dtype, device)

    def forward(self, x: Tensor, *_: Any, **__: Any) -> Tensor:
        x = self.fc1(x)
        gate, up = x.chunk(2, -1) if self.gated else (x, None)
        return self.fc2(self.act(gate) if up is None else self.act(gate) * up)


class DotProductAttention(nn.Module):
    def __init__(self, num_attention_heads: int, kv_channels: Any, num_gqa_groups: Optional[int] = None, attention_dropout: float = 0.1,
                 attn_mask_type: str = "causal", qkv_format: str = "sbhd", softmax_scale: Optional[float] = None, **_: Any) -> None:
        super().__init__()
        self.dropout, self.mask, self.format, self.scale = attention_dropout, attn_mask_type, qkv_format, softmax_scale

    def forward(self, q: Tensor, k: Tensor, v: Tensor, *_: Any, qkv_format: Optional[str] = None, attn_mask_type: Optional[str] = None,
                cu_seqlens_q: Any = None, cu_seqlens_kv: Any = None, max_seqlen_q: Any = None, max_seqlen_kv: Any = None,
                **__: Any) -> Tensor:
        order, causal = qkv_format or self.format, "causal" in (attn_mask_type or self.mask)
        more = {"dropout_p": self.dropout if self.training else 0.0, "softmax_scale": self.scale, "causal": causal}
        if order == "thd":
            return flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_kv, max_seqlen_q or q.shape[0], max_seqlen_kv or k.shape[0],
                                          **more).flatten(-2)
        if order == "sbhd":
            return flash_attn_func(*(t.transpose(0, 1) for t in (q, k, v)), **more).transpose(0, 1).flatten(-2)
        return flash_attn_func(q, k, v, **more).flatten(-2)


class _Recipe:
    """Accepted without effect."""

    HYBRID = E4M3 = E5M2 = None
    __init__ = lambda self, *_, **__: None  # noqa: E731


_FLASH = {f.__name__: f for f in (flash_attn_func, flash_attn_qkvpacked_func, flash_attn_kvpacked_func, flash_attn_varlen_func,
                                  flash_attn_varlen_qkvpacked_func, flash_attn_with_kvcache, index_first_axis, unpad_input, pad_input,
                                  apply_rotary_emb)}
_NORMS = {"FusedLayerNorm": FusedLayerNorm, "MixedFusedLayerNorm": FusedLayerNorm, "FusedRMSNorm": FusedRMSNorm,
          "MixedFusedRMSNorm": FusedRMSNorm, "fused_layer_norm_affine": fused_layer_norm_affine,
          "fused_rms_norm_affine": fused_rms_norm_affine}
_TE = {c.__name__: c for c in (Linear, LayerNormLinear, LayerNormMLP, DotProductAttention, fp8_autocast)} | {
    n: functools.partial(c, device="cuda") for n, c in (("LayerNorm", FusedLayerNorm), ("RMSNorm", FusedRMSNorm))} | {"autocast": fp8_autocast, "FusedAdam": FusedAdam, "FusedSGD": FusedSGD}
_ADAM8 = {n: AdamW8bit for n in ("AdamW8bit", "Adam8bit", "PagedAdamW8bit", "PagedAdam8bit")}

# Package -> (version, {submodule -> names}); "" is the package itself.
PACKAGES: Dict[str, Tuple[str, Dict[str, Dict[str, Any]]]] = {
    "flash_attn": ("2.8.3", {m: _FLASH for m in ("", "flash_attn_interface", "bert_padding", "layers", "layers.rotary")}),
    "xformers": ("0.0.32", {m: {"memory_efficient_attention": memory_efficient_attention, "LowerTriangularMask": LowerTriangularMask}
                            for m in ("ops", "ops.fmha", "ops.fmha.attn_bias")} | {"": {}}),
    "apex": ("0.1", {"": {}, "optimizers": {"FusedAdam": FusedAdam, "FusedSGD": FusedSGD}, "normalization": _NORMS,
                     "normalization.fused_layer_norm": _NORMS, "multi_tensor_apply": {"multi_tensor_applier": multi_tensor_applier}}),
    "amp_C": ("0.1", {"": {"multi_tensor_l2norm": multi_tensor_l2norm, "multi_tensor_scale": multi_tensor_scale}}),
    "transformer_engine": ("2.8.0", {"": {}, "pytorch": _TE, "pytorch.optimizers": _TE, "common": {},
                                     "common.recipe": {n: _Recipe for n in ("Format", "DelayedScaling", "Float8CurrentScaling",
                                                                         "MXFP8BlockScaling", "Float8BlockScaling")}}),
    "bitsandbytes": ("0.48.0", {"": {}, "optim": _ADAM8}),
}
