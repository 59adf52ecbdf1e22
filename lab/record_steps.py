"""Records the steps of data/measured by their own programs, without a GPU: the records that the suite `dry_run` scores.

    python3 lab/record_steps.py OUT            a file for each step, by the name of its case; what is there is kept
    python3 lab/record_steps.py --case NAME    the program itself: eight steps of one case

Needs the packages that the steps were measured with: torch 2.11, torchvision and transformers 5.17.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import tempfile
from typing import List

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PACKAGE = os.path.join(_ROOT, "python")


def train(name: str) -> None:
    """Eight steps of a case, as `stepcast-collect` measured them."""
    import types

    import torch
    from stepcast.collect import measure_steps, step_cases
    from stepcast.collect.kernels.case import Scope

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    machine = types.SimpleNamespace(device=torch.device("cuda"), is_cuda=True, require_memory=lambda bytes_needed: None)
    case = next(case for case in step_cases.plan(Scope()) if case.name == name)
    training = measure_steps.build(case, machine)
    for _ in range(8):
        training.step()


def cases() -> List[str]:
    """Of all folders of data/measured, each once."""
    names: List[str] = []
    measured = os.path.join(_ROOT, "data", "measured")
    for folder in sorted(os.listdir(measured)):
        path = os.path.join(measured, folder, "steps.csv")
        if os.path.isfile(path):
            with open(path, newline="", encoding="utf-8") as file:
                names += [row["case"] for row in csv.DictReader(file)]
    return list(dict.fromkeys(names))


def record(out: str) -> int:
    """Records every case that `out` does not hold yet as CASE.et.json.gz; returns how many failed."""
    failed = 0
    os.makedirs(out, exist_ok=True)
    path = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", "")))
    packages = os.pathsep.join(part for part in (_PACKAGE, os.environ.get("PYTHONPATH", "")) if part)
    for name in cases():
        file = os.path.join(out, name + ".et.json.gz")
        if os.path.isfile(file):
            continue
        with tempfile.TemporaryDirectory() as folder:
            command = ["stepcast/dryrun/__main__.py", "record", "--gpus", "1", "--out", folder, "--", "python3", "lab/record_steps.py",
                       "--case", name]
            command[0] = os.path.join(_PACKAGE, command[0])
            done = subprocess.run([sys.executable, *command], cwd=_ROOT, check=False, env=dict(os.environ, PYTHONPATH=packages, PATH=path))
            if done.returncode == 0:
                shutil.move(os.path.join(folder, "rank0.et.json.gz"), file)
            failed += done.returncode != 0
    return failed


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--case":
        train(sys.argv[2])
    elif len(sys.argv) == 2 and not sys.argv[1].startswith("-"):
        sys.exit(2 if record(os.path.abspath(sys.argv[1])) else 0)
    else:
        sys.exit(__doc__)
