"""Embedding lookups, forward and backward, with controlled reuse of rows: the operators of PyTorch, and FBGEMM's table-batched
ones if fbgemm_gpu is installed. The backward of the latter updates the rows."""

from __future__ import annotations

import importlib
import zlib
from types import ModuleType
from typing import List, Optional, Tuple

import torch
from torch.nn import functional

from stepcast.collect import reuse
from stepcast.collect.kernels.case import ELEMENT_BYTES, Bench, Case, Prepared, Scope, draw, gradient_of
from stepcast.collect.sampling import Sampler
from stepcast.collect.skip import Skip

PATTERNS = (reuse.UNIFORM, reuse.zipf(0.6), reuse.zipf(0.9), reuse.zipf(1.05), reuse.zipf(1.3),
            reuse.histogram("hot"), reuse.histogram("mixed"), reuse.histogram("cold"))


def plan(scope: Scope) -> List[Case]:
    cases: List[Case] = []
    for op, full in (("embedding_bag", 120), ("embedding", 40)):
        for dtype in ("fp32",) if scope.cpu else ("fp32", "fp16"):
            sampler = Sampler(scope.seed, f"{op}/{dtype}")
            n = scope.count(full if dtype == "fp32" else full // 4, least=24 if scope.cpu else 4)
            cases += draw(n, lambda: _case(scope, sampler, op, dtype))
    for dtype in ("fp32",) if scope.cpu else ("fp32", "fp16"):
        sampler = Sampler(scope.seed, f"table_batched/{dtype}")
        n = scope.count(120 if dtype == "fp32" else 30)
        cases += draw(n, lambda: _case(scope, sampler, "embedding_bag", dtype, table_batched=True))
    return cases


def _case(scope: Scope, sampler: Sampler, op: str, dtype: str, table_batched: bool = False) -> Optional[Case]:
    bag = op == "embedding_bag"
    tables = sampler.extent(1, 30, 1) if bag and sampler.chance(0.6) else 1
    rows = sampler.extent(1000, 10_000_000, 1)
    dim = sampler.choice((32, 48, 64, 64, 96, 128, 128, 192, 256)) if bag else sampler.extent(32, 8192)
    bags = sampler.extent(64, 65536, sampler.choice((64, 1)))
    pooling = sampler.choice((1, 2, 4, 8, 10, 20, 32, 50, 100)) if bag else 1
    pattern = sampler.choice(PATTERNS)
    lookups = tables * bags * pooling
    # The table, its gradient, and memory for sorting the indices.
    table_bytes = float(ELEMENT_BYTES[dtype]) * tables * rows * dim
    needed = (1 if table_batched else 2) * table_bytes + 64.0 * lookups + 3.0 * ELEMENT_BYTES[dtype] * tables * bags * dim
    if needed > (2 if scope.cpu else 5) * scope.max_bytes or lookups * dim > (2e6 if scope.cpu else 5e9):
        return None
    if lookups > 1.6e7:  # drawing more indices takes longer than the measurement
        return None
    shape = {"rows": rows, "dim": dim, "bags": bags, "tables": tables, "pooling": pooling}
    if table_batched:
        fused = {**shape, "fused_update": 1}
        return Case(op, dtype, {**fused, "index_pattern": str(pattern)}, needed,
                    lambda bench: _prepare_table_batched(bench, dtype, fused, pattern), label="table_batched_lookup")
    return Case(op, dtype, {**shape, "index_pattern": str(pattern)}, needed,
                lambda bench: _prepare(bench, op, dtype, shape, pattern))


def _prepare(bench: Bench, op: str, dtype: str, shape: "dict[str, int]", pattern: reuse.Pattern) -> Prepared:
    """All tables in one tensor, as in table-batched lookups, so that one call covers all."""
    tables, rows = shape["tables"], shape["rows"]
    parts, columns = _draw(shape, pattern)
    indices = torch.cat([part + table * rows for table, part in enumerate(parts)]).to(bench.device)
    weight = bench.normal(tables * rows, shape["dim"], dtype=dtype, grad=True)
    if op == "embedding":
        def forward() -> torch.Tensor:
            return functional.embedding(indices, weight)
    else:
        offsets = torch.arange(0, indices.numel(), shape["pooling"], device=bench.device)

        def forward() -> torch.Tensor:
            return functional.embedding_bag(indices, weight, offsets, mode="sum")
    output = forward()
    backward = gradient_of(output, [weight], torch.randn_like(output))
    return Prepared({"forward": forward, "backward": backward}, columns)


def _prepare_table_batched(bench: Bench, dtype: str, shape: "dict[str, int]", pattern: reuse.Pattern) -> Prepared:
    """FBGEMM's operator for all tables. Its backward sorts the indices and updates rows with row-wise Adagrad."""
    operators, locations, precisions = (_fbgemm("split_table_batched_embeddings_ops_training"),
                                        _fbgemm("split_table_batched_embeddings_ops_common"),
                                        _fbgemm("split_embedding_configs"))
    place = ((locations.EmbeddingLocation.DEVICE, operators.ComputeDevice.CUDA) if bench.machine.is_cuda else
             (locations.EmbeddingLocation.HOST, operators.ComputeDevice.CPU))
    lookups = operators.SplitTableBatchedEmbeddingBagsCodegen(
        [(shape["rows"], shape["dim"], *place)] * shape["tables"],
        optimizer=precisions.EmbOptimType.EXACT_ROWWISE_ADAGRAD, learning_rate=1e-6,
        weights_precision=precisions.SparseType.FP32 if dtype == "fp32" else precisions.SparseType.FP16)
    lookups.init_embedding_weights_uniform(-0.02, 0.02)
    parts, columns = _draw(shape, pattern)
    indices = torch.cat(parts).to(bench.device)
    offsets = torch.arange(0, indices.numel() + 1, shape["pooling"], device=bench.device)

    def forward() -> torch.Tensor:
        return lookups(indices, offsets)
    output = forward()
    upstream = torch.randn_like(output)
    return Prepared({"forward": forward, "backward": lambda: output.backward(upstream, retain_graph=True)}, columns)


def _fbgemm(module: str) -> ModuleType:
    """Raises Skip if it is not installed, or built for another version of PyTorch."""
    try:
        return importlib.import_module(f"fbgemm_gpu.{module}")
    except (ImportError, OSError) as error:
        raise Skip(f"no fbgemm_gpu: {error}") from None


def _draw(shape: "dict[str, int]", pattern: reuse.Pattern) -> "Tuple[List[torch.Tensor], dict[str, float]]":
    """Indices by table, and their recorded properties."""
    generator = torch.Generator()
    generator.manual_seed(zlib.crc32(repr((sorted(shape.items()), str(pattern))).encode()))
    parts = [reuse.draw_indices(pattern, shape["bags"] * shape["pooling"], shape["rows"], generator)
             for _ in range(shape["tables"])]
    distinct = sum(torch.unique(part).numel() for part in parts)
    return parts, {"distinct_fraction": distinct / max(sum(part.numel() for part in parts), 1)}
