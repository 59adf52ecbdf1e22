"""Kernels that are measured individually. To add a family, write a module with `plan`, and one line here."""

from __future__ import annotations

from typing import List

from stepcast.collect.kernels import (attention, convolution, elements, lookup, movement, optimizer, products, rows)
from stepcast.collect.kernels.case import Case, Scope, interleave

FAMILIES = (products, attention, rows, elements, movement, lookup, convolution, optimizer)


def plan(scope: Scope) -> List[Case]:
    """All cases of a run, in the order of measurement."""
    return interleave([family.plan(scope) for family in FAMILIES], scope.seed)
