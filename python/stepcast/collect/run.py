"""One call of the collector: measures cases one after the other until all are done or the time is over."""

from __future__ import annotations

import contextlib
import gc
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Sequence

import torch

from stepcast.collect import schema
from stepcast.collect.machine import Machine
from stepcast.collect.progress import Meter, State, StateError
from stepcast.collect.skip import is_fatal, reason_of
from stepcast.collect.table import Table

Row = Dict[str, Any]

_CLOCKS_EVERY_S = 10.0


class TimeIsUp(Exception):
    """The time of the call is over; the next call continues."""


class DeviceIsLost(Exception):
    """The device does not respond any more. A new process can continue after the case that caused it."""


@dataclass(frozen=True)
class Item:
    """Something to measure. `measure` returns its rows, or raises the reason why it is skipped."""

    name: str
    planned_s: float
    measure: Callable[[], List[Row]]
    what: str = ""  # for the progress line; empty: the name


class Run:
    """State, clock and files of one call."""

    def __init__(self, out: Path, machine: Machine, state: State, time_limit_s: float,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.out = out
        self.machine = machine
        self.state = state
        self._clock = clock
        self._deadline = clock() + time_limit_s
        self._clocks_at = float("-inf")
        self._n_measured = 0

    def section(self, name: str, file: str, columns: Sequence[str], items: Sequence[Item]) -> None:
        """Measures the unfinished `items` into the CSV `file`. Raises TimeIsUp."""
        left = [item for item in items if self._key(name, item) not in self.state.done]
        with self._table(file, columns) as table:
            if not left:
                return
            meter = Meter(name, len(items), sum(item.planned_s for item in items))
            for item in items:
                if item not in left:
                    meter.add(item.planned_s, self.state.seconds.get(self._key(name, item), 0))
            for item in left:
                meter.show(item.what or item.name)
                # A case that would end after the deadline waits for the next call, but every call measures at least one.
                if self._n_measured > 0 and self._clock() + item.planned_s > self._deadline:
                    meter.show("time is up", always=True)
                    raise TimeIsUp
                self._record_clocks(name)
                meter.add(item.planned_s, self._measure(self._key(name, item), item, file, table))
            meter.show("done", always=True)

    def _measure(self, key: str, item: Item, file: str, table: Table) -> float:
        """Seconds that the case took. Its rows are in the table, and it counts as done, measured or skipped."""
        if not self.state.begin(key):
            return 0
        self._n_measured += 1
        start, rows, skipped = self._clock(), [], ""
        try:
            rows = item.measure()
        except KeyboardInterrupt:
            self.state.abandon(key)
            raise
        except Exception as error:  # one case must not end a run with hundreds of cases
            skipped = reason_of(error)
            if is_fatal(error):
                self.state.finish(key, self._clock() - start, skipped)
                raise DeviceIsLost(f"{item.name}: {skipped}") from None
        for row in rows:
            row.setdefault("gpu", self.machine.name)
            row.setdefault("software", self.machine.software)
            row.setdefault("case", item.name)
        table.add(rows)
        self.state.table_bytes[file] = table.size_bytes
        seconds = self._clock() - start
        self.state.finish(key, seconds, skipped)
        self._tidy_up()
        return seconds

    def skipped(self) -> Dict[str, int]:
        """Number of skipped cases by "section/operation/type: reason"."""
        counts: Counter = Counter()
        for case, reason in self.state.done.items():
            if reason:
                counts["/".join(case.split("/")[:3]) + ": " + reason] += 1
        return dict(counts)

    @staticmethod
    def _key(section: str, item: Item) -> str:
        return f"{section}/{item.name}"

    @contextlib.contextmanager
    def _table(self, file: str, columns: Sequence[str]) -> Iterator[Table]:
        try:
            table = Table(self.out / file, columns, self.state.table_bytes.get(file, 0))
        except ValueError as error:
            raise StateError(str(error)) from None
        self.state.table_bytes[file] = table.size_bytes
        try:
            yield table
        finally:
            table.close()

    def _record_clocks(self, section: str) -> None:
        """Records clocks and power from time to time, so that throttling is visible in the data."""
        if not self.machine.is_cuda or self._clock() - self._clocks_at < _CLOCKS_EVERY_S:
            return
        self._clocks_at = self._clock()
        row = {name: value for name, value in self.machine.clocks().items() if name in schema.CLOCK_COLUMNS}
        with self._table("clocks.csv", schema.CLOCK_COLUMNS) as table:
            table.add([{"seconds_since_epoch": int(time.time()), "section": section, **row}])
            self.state.table_bytes["clocks.csv"] = table.size_bytes

    def _tidy_up(self) -> None:
        """Frees memory when fragments accumulate."""
        if self.machine.is_cuda and torch.cuda.memory_reserved() > 0.3 * self.machine.memory_bytes:
            gc.collect()
            torch.cuda.empty_cache()
