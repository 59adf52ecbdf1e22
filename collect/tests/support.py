"""What tests share: a machine, a folder, a run of made-up cases."""

import csv
import os
import sys
from pathlib import Path

from stepcast_collect.kernels.case import Bench, Scope
from stepcast_collect.machine import open_machine
from stepcast_collect.progress import State
from stepcast_collect.run import Run
from stepcast_collect.timing import Timer

COLLECT = Path(__file__).resolve().parent.parent


def cpu_bench():
    machine = open_machine("cpu")
    return Bench(machine, Timer(machine.device), Scope(quick=True, cpu=True).effort)


def command(*arguments):
    return [sys.executable, "-m", "stepcast_collect", *map(str, arguments), "--device", "cpu"]


def environment():
    return {**os.environ, "PYTHONPATH": str(COLLECT), "PYTHONWARNINGS": "ignore"}


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def make_run(out, time_limit_s=1e9, clock=None, resume=False):
    machine = open_machine("cpu")
    state = State.open(Path(out), {"seed": 1}, resume)
    return Run(Path(out), machine, state, time_limit_s, **({"clock": clock} if clock else {}))
