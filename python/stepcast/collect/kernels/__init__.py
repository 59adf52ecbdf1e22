"""Kernels: what is measured on its own. A new family is one module with `plan`, and one line here."""

from __future__ import annotations

from typing import List

from stepcast.collect.kernels import (attention, convolution, elements, lookup, movement, optimizer, products, rows)
from stepcast.collect.kernels.case import Case, Scope, interleave

FAMILIES = (products, attention, rows, elements, movement, lookup, convolution, optimizer)


def plan(scope: Scope) -> List[Case]:
    """All cases of a run, in the order in which they are measured."""
    return interleave([family.plan(scope) for family in FAMILIES], scope.seed)
