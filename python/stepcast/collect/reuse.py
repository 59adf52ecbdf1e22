"""Indices for embedding lookups with a wanted pattern of reuse.

How often a batch looks up the same row decides whether a lookup runs at the speed of memory or of the cache. Patterns
are uniform, Zipf, or a histogram of reuse factors: which share of the lookups goes to rows that the batch looks up so
many times. The share of distinct rows that came out is counted and recorded with every measurement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence, Tuple

import torch

# Upper bounds of the bins of reuse factors: (0, 1], (1, 2], (2, 4], ... (32768, 65536].
REUSE_BOUNDS = tuple(2**i for i in range(17))

# Shares of lookups by bin, shaped like those of advertising models: from a batch of small tables that are read over and
# over to one that hardly repeats a row. Made up for this purpose; no measured histogram is copied.
HISTOGRAMS = {
    "hot": (.02, .02, .03, .05, .06, .07, .07, .07, .08, .08, .08, .08, .08, .08, .06, .04, .03),
    "mixed": (.08, .06, .08, .10, .11, .10, .08, .06, .05, .05, .05, .05, .04, .04, .03, .01, .01),
    "cold": (.40, .25, .15, .10, .05, .03, .02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
}


@dataclass(frozen=True)
class Pattern:
    """`uniform`, `zipf` with its exponent, or `histogram` with shares of lookups by bin of REUSE_BOUNDS."""

    kind: str
    exponent: float = 0
    shares: Tuple[float, ...] = ()
    name: str = ""

    def __str__(self) -> str:
        if self.kind == "zipf":
            return f"zipf_{self.exponent:g}"
        return self.name or self.kind


UNIFORM = Pattern("uniform")


def zipf(exponent: float) -> Pattern:
    return Pattern("zipf", exponent=exponent)


def histogram(name: str) -> Pattern:
    return Pattern("histogram", shares=HISTOGRAMS[name], name=name)


def draw_indices(pattern: Pattern, n_lookups: int, n_rows: int, generator: torch.Generator) -> torch.Tensor:
    """`n_lookups` row numbers below `n_rows`, int64 on the CPU, hot rows scattered over the table."""
    if pattern.kind == "uniform":
        return torch.randint(0, n_rows, (n_lookups,), generator=generator)
    if pattern.kind == "zipf":
        ranks = _zipf_ranks(pattern.exponent, n_lookups, n_rows, generator)
    else:
        ranks = _histogram_ranks(pattern.shares, n_lookups, n_rows, generator)
    return _scatter(ranks, n_rows)


def distinct_fraction(indices: torch.Tensor) -> float:
    """Distinct rows over lookups."""
    return torch.unique(indices).numel() / max(indices.numel(), 1)


def expected_distinct_fraction(shares: Sequence[float]) -> float:
    """Distinct rows over lookups that a histogram asks for: a lookup of a row that is used r times is 1/r row."""
    return sum(share / factor for share, factor in zip(shares, _factors())) / sum(shares)


def _factors() -> Tuple[int, ...]:
    """The reuse factor that represents each bin: whole numbers near its geometric middle."""
    return tuple(max(1, round(bound / math.sqrt(2))) if bound > 2 else bound for bound in REUSE_BOUNDS)


def _zipf_ranks(exponent: float, n_lookups: int, n_rows: int, generator: torch.Generator) -> torch.Tensor:
    """Ranks with probability ~ (rank + 1)^-exponent, by inversion of the continuous distribution."""
    u = torch.rand(n_lookups, generator=generator, dtype=torch.float64)
    if abs(exponent - 1) < 1e-6:
        x = torch.exp(u * math.log(n_rows + 1))
    else:
        e = 1 - exponent
        x = (1 + u * ((n_rows + 1) ** e - 1)) ** (1 / e)
    return (x.long() - 1).clamp_(0, n_rows - 1)


def _histogram_ranks(shares: Sequence[float], n_lookups: int, n_rows: int,
                     generator: torch.Generator) -> torch.Tensor:
    """Each bin gets its share of the lookups and as many rows of its own as its reuse factor asks for."""
    total = sum(shares)
    parts, next_rank, left, over = [], 0, n_lookups, 0
    # From the hottest bin down: what does not make a whole row of a bin goes to the next cooler one.
    for share, factor in reversed(list(zip(shares, _factors()))):
        n = min(int(round(share / total * n_lookups)) + over, left)
        n_of_rows, over = divmod(n, factor)
        parts.append(torch.arange(next_rank, next_rank + n_of_rows).repeat_interleave(factor))
        next_rank += n_of_rows
        left -= n_of_rows * factor
    parts.append(torch.arange(next_rank, next_rank + left))
    # A table that has fewer rows than the pattern asks for wraps around.
    ranks = torch.cat(parts) % n_rows
    return ranks[torch.randperm(ranks.numel(), generator=generator)]


def _scatter(ranks: torch.Tensor, n_rows: int) -> torch.Tensor:
    """Rank -> row by a stride without common divisor: rows that are used together do not lie together."""
    stride = max(1, int(n_rows * 0.6180339887))
    while math.gcd(stride, n_rows) != 1:
        stride += 1
    return (ranks * stride) % n_rows
