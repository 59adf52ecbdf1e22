"""Seeded random shapes: log-uniform, on and off the multiples that kernels prefer."""

from __future__ import annotations

import math
import random
from typing import Sequence, TypeVar

T = TypeVar("T")

# Most extents in models are multiples of 64. Kernels use slower variants for extents that are not multiples of 8.
ALIGNMENTS = (64, 64, 64, 128, 8, 1)


class Sampler:
    """Random draws for one family of cases. The same seed and name give the same draws, independently of other draws."""

    def __init__(self, seed: int, name: str) -> None:
        self.random = random.Random(f"{seed}/{name}")

    def log_uniform(self, low: float, high: float) -> float:
        """A number between `low` and `high`; all octaves are equally likely."""
        return math.exp(self.random.uniform(math.log(low), math.log(high)))

    def extent(self, low: int, high: int, alignment: int = 0) -> int:
        """An integer from `low` to `high`, log-uniform, rounded to `alignment`. 0 draws one of ALIGNMENTS.

        Extents below four times the alignment are not rounded, because they would accumulate on a few values.
        """
        if alignment == 0:
            alignment = self.random.choice(ALIGNMENTS)
        value = int(round(self.log_uniform(low, high)))
        if value >= 4 * alignment:
            value = int(round(value / alignment)) * alignment
        return min(max(value, low), high)

    def choice(self, values: Sequence[T]) -> T:
        return self.random.choice(values)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability
