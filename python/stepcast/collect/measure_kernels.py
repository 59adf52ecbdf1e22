"""The section `kernels`: measures every case of the plan into kernels.csv."""

from __future__ import annotations

from typing import Any, Dict, List

from stepcast.collect import kernels, schema
from stepcast.collect.kernels.case import Bench, Case, Scope
from stepcast.collect.run import Item, Row, Run
from stepcast.collect.skip import Skip, is_fatal, reason_of


def run_kernels(run: Run, scope: Scope, bench: Bench) -> None:
    """Raises TimeIsUp."""
    planned_s = 0.1 if scope.cpu else 0.2 if scope.quick else 0.28
    items = [Item(case.name, planned_s, lambda case=case: measure(case, bench), f"{case.label or case.op} {case.dtype}")
             for case in kernels.plan(scope)]
    run.section("kernels", "kernels.csv", schema.KERNEL_COLUMNS, items)


def measure(case: Case, bench: Bench) -> List[Row]:
    """One row per direction. If none could be measured, raises Skip or the exception of PyTorch."""
    bench.machine.require_memory(case.needed_bytes)
    prepared = case.prepare(bench)
    rows: List[Row] = []
    failed = ""
    for direction, call in prepared.calls.items():
        try:
            timing = bench.timer.measure(call, bench.effort)
        except RuntimeError as error:
            if is_fatal(error):
                raise
            failed = f"{direction}: {reason_of(error)}"
            continue
        rows.append({"op": case.op, "label": case.label, "direction": direction, "dtype": case.dtype,
                     **_cells(case.shape), **prepared.columns, "time_us": timing.time_us,
                     "time_us_p10": timing.p10_us, "time_us_p90": timing.p90_us, "n_repetitions": timing.n,
                     "cache": bench.timer.cache})
    if not rows:
        raise Skip(failed or "nothing to measure")
    return rows


def _cells(shape: Dict[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in shape.items() if value != ""}
