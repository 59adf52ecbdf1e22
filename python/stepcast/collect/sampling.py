"""Seeded draws of shapes: log-uniform, on and off the multiples that kernels like."""

from __future__ import annotations

import math
import random
from typing import Sequence, TypeVar

T = TypeVar("T")

# Most extents in models are multiples of 64; kernels choose slower variants for those that are not even a multiple of 8.
ALIGNMENTS = (64, 64, 64, 128, 8, 1)


class Sampler:
    """Draws of one family of cases: the same seed and name give the same draws, whatever else is drawn."""

    def __init__(self, seed: int, name: str) -> None:
        self.random = random.Random(f"{seed}/{name}")

    def log_uniform(self, low: float, high: float) -> float:
        """A number between `low` and `high`, each octave as likely as any other."""
        return math.exp(self.random.uniform(math.log(low), math.log(high)))

    def extent(self, low: int, high: int, alignment: int = 0) -> int:
        """A whole number from `low` to `high`, log-uniform, rounded to `alignment`; 0 draws one of ALIGNMENTS.

        Extents below four times the alignment stay unchanged: rounding would pile them up on a few values.
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
