"""Indices for embedding lookups with a given pattern of reuse.

The reuse of rows in a batch decides whether lookups run at the speed of memory or of the cache. Patterns are uniform, Zipf, or
a histogram: the fraction of lookups for each range of reuse factors (lookups per row). The fraction of distinct rows that
results is recorded with every measurement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence, Tuple

import torch

# Upper bounds of the bins of reuse factors: (0, 1], (1, 2], (2, 4], ... (32768, 65536].
REUSE_BOUNDS = tuple(2**i for i in range(17))

# Fractions of lookups by bin, shaped like those of advertising models: from a batch of small, often reused tables to one
# that hardly repeats a row. Invented for this purpose; not copied from a measurement.
HISTOGRAMS = {
    "hot": (.02, .02, .03, .05, .06, .07, .07, .07, .08, .08, .08, .08, .08, .08, .06, .04, .03),
    "mixed": (.08, .06, .08, .10, .11, .10, .08, .06, .05, .05, .05, .05, .04, .04, .03, .01, .01),
    "cold": (.40, .25, .15, .10, .05, .03, .02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
}


@dataclass(frozen=True)
class Pattern:
    """`uniform`, `zipf` with its exponent, or `histogram` with fractions of lookups for the bins of REUSE_BOUNDS."""

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
    """`n_lookups` row numbers below `n_rows`, int64 on the CPU. Frequent rows are scattered over the table."""
    if pattern.kind == "uniform":
        return torch.randint(0, n_rows, (n_lookups,), generator=generator)
    if pattern.kind == "zipf":
        ranks = _zipf_ranks(pattern.exponent, n_lookups, n_rows, generator)
    else:
        ranks = _histogram_ranks(pattern.shares, n_lookups, n_rows, generator)
    return _scatter(ranks, n_rows)


def distinct_fraction(indices: torch.Tensor) -> float:
    """Distinct rows divided by lookups."""
    return torch.unique(indices).numel() / max(indices.numel(), 1)


def expected_distinct_fraction(shares: Sequence[float]) -> float:
    """Distinct rows divided by lookups, as given by a histogram: a lookup of a row that is used r times counts as 1/r row."""
    return sum(share / factor for share, factor in zip(shares, _factors())) / sum(shares)


def _factors() -> Tuple[int, ...]:
    """A reuse factor for each bin: integers near the geometric middle."""
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
    """Each bin gets its fraction of the lookups, and as many separate rows as its reuse factor implies."""
    total = sum(shares)
    parts, next_rank, left, over = [], 0, n_lookups, 0
    # From the most reused bin downwards: lookups that do not fill a row of a bin go to the next bin.
    for share, factor in reversed(list(zip(shares, _factors()))):
        n = min(int(round(share / total * n_lookups)) + over, left)
        n_of_rows, over = divmod(n, factor)
        parts.append(torch.arange(next_rank, next_rank + n_of_rows).repeat_interleave(factor))
        next_rank += n_of_rows
        left -= n_of_rows * factor
    parts.append(torch.arange(next_rank, next_rank + left))
    # If the table has fewer rows than the pattern needs, row numbers wrap around.
    ranks = torch.cat(parts) % n_rows
    return ranks[torch.randperm(ranks.numel(), generator=generator)]


def _scatter(ranks: torch.Tensor, n_rows: int) -> torch.Tensor:
    """Rank -> row by a stride without common divisor, so that rows that are used together are not neighbours."""
    stride = max(1, int(n_rows * 0.6180339887))
    while math.gcd(stride, n_rows) != 1:
        stride += 1
    return (ranks * stride) % n_rows
