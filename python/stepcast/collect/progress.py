"""The state of a run, so that the next call continues it, and the estimated remaining time."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Optional, TextIO

from stepcast.collect.files import write_json

FORMAT = 1
# A case that was running when two calls ended is not tried again, because it may be the cause.
MOST_ATTEMPTS = 2


class StateError(Exception):
    """The folder cannot be used for this run. The text says why and what to do."""


class State:
    """DIR/progress.json: settings of the run, finished cases, and the length of each CSV file after the last one."""

    def __init__(self, path: Path, settings: Dict[str, Any]) -> None:
        self.path = path
        self.settings = settings
        self.done: Dict[str, str] = {}  # case -> "" or the reason why it was skipped
        self.seconds: Dict[str, float] = {}  # case -> its duration in s
        self.table_bytes: Dict[str, int] = {}
        self.running: Optional[str] = None
        self.attempts: Dict[str, int] = {}

    @staticmethod
    def open(out: Path, settings: Dict[str, Any], resume: bool) -> "State":
        """The state of the run in `out`, or a new one. Raises StateError if it is the state of another run."""
        path = out / "progress.json"
        state = State(path, settings)
        if not path.exists():
            return state
        if not resume:
            raise StateError(f"{out} holds a run already: continue it with --resume, or choose an empty folder")
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))
            if saved["format"] != FORMAT:
                raise StateError(f"{path}: format {saved['format']}, expected {FORMAT}: choose an empty folder")
            state.done = dict(saved["done"])
            state.seconds = dict(saved["seconds"])
            state.table_bytes = dict(saved["table_bytes"])
            state.running = saved["running"]
            state.attempts = dict(saved["attempts"])
            found = saved["settings"]
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(f"{path} cannot be read ({error}): choose an empty folder") from None
        for name, value in settings.items():
            if found.get(name) != value:
                raise StateError(f"{out} was begun with {name} {found.get(name)!r}, this call has {value!r}: "
                                 "call it as before, or choose an empty folder")
        return state

    def begin(self, case: str) -> bool:
        """Records that `case` is being measured. False if it has ended too many calls."""
        if self.attempts.get(case, 0) >= MOST_ATTEMPTS:
            self.finish(case, 0, f"the run ended in it {MOST_ATTEMPTS} times")
            return False
        self.attempts[case] = self.attempts.get(case, 0) + 1
        self.running = case
        self.save()
        return True

    def finish(self, case: str, seconds: float, skipped: str = "") -> None:
        self.done[case] = skipped
        self.seconds[case] = round(seconds, 3)
        self.attempts.pop(case, None)
        self.running = None
        self.save()

    def abandon(self, case: str) -> None:
        """`case` was given up for an external reason (an interrupt), which does not count against it."""
        self.attempts.pop(case, None)
        self.running = None
        self.save()

    def save(self) -> None:
        write_json(self.path, {"format": FORMAT, "settings": self.settings, "table_bytes": self.table_bytes,
                               "running": self.running, "attempts": self.attempts, "done": self.done,
                               "seconds": self.seconds})


@dataclass
class Meter:
    """Prints the progress of a section and its remaining time, at most once in `every_s` seconds."""

    section: str
    n_cases: int
    expected_s: float  # of all cases, before any measurement
    every_s: float = 5
    out: Optional[TextIO] = None  # None: standard error
    clock: Callable[[], float] = time.monotonic
    n_done: int = 0
    work_done: float = 0  # in units of the planned seconds of the finished cases
    spent_s: float = 0
    _last: float = float("-inf")

    def add(self, planned_s: float, spent_s: float) -> None:
        """Records a finished case: it was planned with `planned_s` seconds and took `spent_s`."""
        self.n_done += 1
        self.work_done += planned_s
        self.spent_s += spent_s

    def remaining_s(self) -> float:
        """Planned time of the unfinished cases, scaled by the pace so far."""
        left = max(self.expected_s - self.work_done, 0.0)
        pace = self.spent_s / self.work_done if self.work_done > 0 and self.spent_s > 1 else 1.0
        return left * pace

    def show(self, now: str, always: bool = False) -> None:
        if not always and self.clock() - self._last < self.every_s:
            return
        self._last = self.clock()
        print(f"{self.section}: {self.n_done} of {self.n_cases}, about {duration_text(self.remaining_s())} left; {now}",
              file=self.out or sys.stderr, flush=True)


def duration_text(seconds: float) -> str:
    """"45 s", "3 min 20 s"."""
    whole = int(round(seconds))
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"
