"""What tests share: a machine, a folder, a run of made-up cases."""

import csv
import os
import sys
from pathlib import Path

from stepcast.collect.kernels.case import Bench, Scope
from stepcast.collect.machine import open_machine
from stepcast.collect.progress import State
from stepcast.collect.run import Run
from stepcast.collect.timing import Timer

PACKAGE = Path(__file__).resolve().parents[2]


def cpu_bench():
    machine = open_machine("cpu")
    return Bench(machine, Timer(machine.device), Scope(quick=True, cpu=True).effort)


def command(*arguments):
    return [sys.executable, "-m", "stepcast.collect", *map(str, arguments), "--device", "cpu"]


def environment():
    return {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONWARNINGS": "ignore"}


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def make_run(out, time_limit_s=1e9, clock=None, resume=False):
    machine = open_machine("cpu")
    state = State.open(Path(out), {"seed": 1}, resume)
    return Run(Path(out), machine, state, time_limit_s, **({"clock": clock} if clock else {}))
