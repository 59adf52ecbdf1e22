"""DLRM: embedding tables, a bottom and a top MLP, dot products of all pairs of features."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Tuple

import torch
from torch import nn
from torch.nn import functional

from stepcast.collect import reuse
from stepcast.collect.sampling import Sampler


@dataclass(frozen=True)
class TableShape:
    """One table: rows, lookups per sample, pattern of its indices."""

    rows: int
    pooling: int
    pattern: reuse.Pattern


@dataclass(frozen=True)
class DlrmShape:
    """`dim` applies to every table. MLPs are lists of layer widths, input first."""

    name: str
    dim: int
    tables: Tuple[TableShape, ...]
    bottom: Tuple[int, ...]
    top: Tuple[int, ...]  # without its input, which follows from the number of tables

    @property
    def n_features(self) -> int:
        return len(self.tables) + 1

    def description(self) -> Dict[str, Any]:
        """For a JSON file: everything that a forecast of the step needs."""
        return {"name": self.name, "embedding_dim": self.dim, "bottom_mlp": self.bottom, "top_mlp": self.top,
                "interaction": "dot", "tables": [{**asdict(t), "pattern": str(t.pattern)} for t in self.tables]}


def seeded_tables(seed: int, index: int, small: bool = False) -> DlrmShape:
    """Table set number `index` of `seed`: number, rows, pooling and reuse of its tables are random."""
    s = Sampler(seed, f"dlrm/{index}")
    patterns = (reuse.UNIFORM, reuse.zipf(0.9), reuse.zipf(1.05), reuse.histogram("hot"), reuse.histogram("mixed"),
                reuse.histogram("cold"))
    dim = 16 if small else s.choice((32, 64, 128))
    n = s.extent(3, 6, 1) if small else s.extent(6, 30, 1)
    tables = tuple(TableShape(s.extent(100, 5000, 1) if small else s.extent(1000, 4_000_000, 1),
                              s.choice((1, 1, 2, 5, 10) if small else (1, 1, 2, 5, 10, 20, 40)), s.choice(patterns))
                   for _ in range(n))
    bottom = (13, 32, dim) if small else (13, s.choice((256, 512)), s.choice((128, 256)), dim)
    top = (32, 1) if small else (s.choice((512, 1024)), s.choice((256, 512)), 256, 1)
    return DlrmShape(f"dlrm_{index}", dim, tables, bottom, top)


class Dlrm(nn.Module):
    def __init__(self, s: DlrmShape) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(t.rows, s.dim, mode="sum", sparse=True) for t in s.tables)
        self.bottom = _mlp(s.bottom, last_relu=True)
        self.top = _mlp((s.dim + s.n_features * (s.n_features - 1) // 2,) + s.top, last_relu=False)
        pairs = torch.tril_indices(s.n_features, s.n_features, offset=-1)
        self.register_buffer("first", pairs[0])
        self.register_buffer("second", pairs[1])

    def forward(self, dense: torch.Tensor, indices: List[torch.Tensor], offsets: List[torch.Tensor],
                clicks: torch.Tensor) -> torch.Tensor:
        x = self.bottom(dense)
        looked_up = [table(i, o) for table, i, o in zip(self.tables, indices, offsets)]
        features = torch.stack([x] + [t.to(x.dtype) for t in looked_up], dim=1)
        products = torch.bmm(features, features.transpose(1, 2))[:, self.first, self.second]
        score = self.top(torch.cat((x, products), dim=1)).squeeze(1)
        return functional.binary_cross_entropy_with_logits(score.float(), clicks)


def make_batch(s: DlrmShape, batch: int, seed: int, device: torch.device) -> "tuple[tuple[Any, ...], List[float]]":
    """Arguments of a step, and the fraction of distinct rows in the lookups of each table."""
    generator = torch.Generator()
    generator.manual_seed(seed)
    indices = [reuse.draw_indices(t.pattern, batch * t.pooling, t.rows, generator) for t in s.tables]
    distinct = [reuse.distinct_fraction(i) for i in indices]
    offsets = [torch.arange(0, batch * t.pooling, t.pooling, device=device) for t in s.tables]
    dense = torch.randn(batch, s.bottom[0], generator=generator).to(device)
    clicks = torch.randint(0, 2, (batch,), generator=generator).float().to(device)
    return (dense, [i.to(device) for i in indices], offsets, clicks), distinct


def _mlp(widths: Tuple[int, ...], last_relu: bool) -> nn.Sequential:
    layers: List[nn.Module] = []
    for i, (n_in, n_out) in enumerate(zip(widths, widths[1:])):
        layers.append(nn.Linear(n_in, n_out))
        if last_relu or i + 2 < len(widths):
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)
