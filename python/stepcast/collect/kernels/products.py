"""GEMMs: linear layers of transformers and of DLRM's MLPs, random shapes, batched GEMMs."""

from __future__ import annotations

from typing import List, Optional

import torch

from stepcast.collect.kernels.case import ELEMENT_BYTES, Bench, Case, Prepared, Scope, draw, torch_dtype
from stepcast.collect.sampling import Sampler
from stepcast.collect.skip import Skip

_VOCABULARIES = (30522, 32000, 32128, 50257, 50304, 128256)


def plan(scope: Scope) -> List[Case]:
    dtypes = ("fp32", "tf32", "fp16", "bf16", "fp8")
    cases: List[Case] = []
    for dtype in dtypes:
        # On a CPU the rates of half types have no meaning; one case each shows that they work, or names the reason why not.
        n = scope.count(60, least=40 if scope.cpu else 0) if not scope.cpu or dtype == "fp32" else 1
        sampler = Sampler(scope.seed, f"gemm/{dtype}")
        cases += draw(n, lambda: _gemm(scope, sampler, dtype))
    for dtype in ("fp32", "bf16", "fp16"):
        n = scope.count(24) if not scope.cpu or dtype == "fp32" else 1
        sampler = Sampler(scope.seed, f"bmm/{dtype}")
        cases += draw(n, lambda: _bmm(scope, sampler, dtype))
    return cases


def _gemm(scope: Scope, sampler: Sampler, dtype: str) -> Optional[Case]:
    kind = sampler.choice(("transformer", "transformer", "mlp", "free"))
    if kind == "transformer":
        d = sampler.extent(64 if scope.cpu else 256, 12288, sampler.choice((64, 64, 128, 8)))
        m = sampler.extent(128, 32768, sampler.choice((128, 128, 64, 1)))
        n, k = sampler.choice(((3 * d, d), (d, d), (4 * d, d), (d, 4 * d), (8 * d // 3, d),
                               (sampler.choice(_VOCABULARIES), d)))
    elif kind == "mlp":
        m, n, k = sampler.extent(256, 65536, 256), sampler.extent(16, 4096), sampler.extent(13, 4096)
    else:
        m, n, k = (sampler.extent(16, 16384) for _ in range(3))
    if dtype == "fp8":
        m, n, k = (max(16, extent // 16 * 16) for extent in (m, n, k))
    needed = ELEMENT_BYTES[dtype] * (m * k + k * n + m * n) * 2.0
    if needed > scope.max_bytes or 2.0 * m * n * k > scope.max_flops(dtype):
        return None
    shape = {"m": m, "n": n, "k": k}
    if dtype == "fp8":
        shape.update(layout="TN", out_dtype="bf16")
        return Case("gemm", dtype, shape, needed * 3, lambda bench: _fp8(bench, m, n, k))
    return Case("gemm", dtype, shape, needed * 2, lambda bench: _linear(bench, dtype, m, n, k))


def _linear(bench: Bench, dtype: str, m: int, n: int, k: int) -> Prepared:
    if dtype == "tf32" and not bench.machine.is_cuda:
        raise Skip("TF32 is a mode of GPUs")
    allow = dtype == "tf32"
    x, w = bench.normal(m, k, dtype=dtype), bench.normal(n, k, dtype=dtype, scale=k**-0.5)
    g = bench.normal(m, n, dtype=dtype)

    def with_mode(call):
        if not bench.machine.is_cuda:
            return call

        def run():
            torch.backends.cuda.matmul.allow_tf32 = allow
            try:
                return call()
            finally:
                torch.backends.cuda.matmul.allow_tf32 = False
        return run

    # The GEMMs that autograd runs for y = x wT, with the operands in their original layout.
    return Prepared({"forward": with_mode(lambda: torch.nn.functional.linear(x, w)),
                     "input_gradient": with_mode(lambda: g.mm(w)),
                     "weight_gradient": with_mode(lambda: g.t().mm(x))})


def _fp8(bench: Bench, m: int, n: int, k: int) -> Prepared:
    stored = torch_dtype("fp8")
    if not hasattr(torch, "_scaled_mm"):
        raise Skip(f"PyTorch {torch.__version__} has no _scaled_mm")
    if bench.machine.is_cuda and float(bench.machine.capability) < 8.9:
        raise Skip("no units for fp8 before compute capability 8.9")
    x, w = (bench.normal(rows, k).to(stored) for rows in (m, n))
    one = torch.ones((), device=bench.device)
    return Prepared({"forward": lambda: torch._scaled_mm(x, w.t(), scale_a=one, scale_b=one,
                                                         out_dtype=torch.bfloat16)})


def _bmm(scope: Scope, sampler: Sampler, dtype: str) -> Optional[Case]:
    batch = sampler.extent(4, 2048, 1)
    if sampler.chance(0.6):  # unfused attention: scores, and scores times values
        length, head = sampler.extent(64, 4096, 64), sampler.choice((32, 64, 80, 96, 128))
        m, n, k = sampler.choice(((length, length, head), (length, head, length)))
    elif sampler.chance(0.5):  # the interaction of DLRM: features times features
        features, dim = sampler.extent(4, 60, 1), sampler.choice((16, 32, 64, 128))
        m, n, k, batch = features, features, dim, sampler.extent(256, 16384, 256)
    else:
        m, n, k = (sampler.extent(16, 2048) for _ in range(3))
    needed = ELEMENT_BYTES[dtype] * batch * (m * k + k * n + m * n) * 2.0
    if needed > scope.max_bytes or 2.0 * batch * m * n * k > scope.max_flops(dtype):
        return None
    return Case("bmm", dtype, {"batch": batch, "m": m, "n": n, "k": k}, needed,
                lambda bench: _batched(bench, dtype, batch, m, n, k))


def _batched(bench: Bench, dtype: str, batch: int, m: int, n: int, k: int) -> Prepared:
    a, b = bench.normal(batch, m, k, dtype=dtype), bench.normal(batch, k, n, dtype=dtype, scale=k**-0.5)
    g = bench.normal(batch, m, n, dtype=dtype)
    return Prepared({"forward": lambda: a.bmm(b), "input_gradient": lambda: g.bmm(b.transpose(1, 2)),
                     "weight_gradient": lambda: a.transpose(1, 2).bmm(g)})
