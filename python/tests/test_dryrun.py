"""`stepcast dryrun`: the stand-in of CUDA's runtime and what a command line runs. Programs run where PyTorch is installed."""

import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stepcast.dryrun.command import CommandError, parse
from stepcast.dryrun.memory import reserved_peak

SOURCE = Path(__file__).resolve().parents[1] / "dryrun" / "cudart.c"


def torch_libraries():
    spec = None if os.environ.get("STEPCAST_SKIP_TORCH") == "1" else importlib.util.find_spec("torch")
    if spec is None:
        pytest.skip("PyTorch is not installed, or STEPCAST_SKIP_TORCH=1")
    return glob.glob(os.path.join(os.path.dirname(spec.origin), "lib", "*.so"))


def test_every_imported_function_of_the_runtime_is_there():
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    wanted = set()
    for library in torch_libraries():
        names = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=False).stdout
        wanted.update(re.findall(r" U ((?:__)?cuda\w+)@", names))
    there = set(re.findall(r"\b((?:__)?cuda[A-Z]\w*)\(", SOURCE.read_text()))
    assert sorted(wanted - there) == []


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    return "train.py"


def test_python_runs_the_script(script):
    program = parse([sys.executable, "-u", script, "--lr", "1"])
    assert (program.script, program.arguments, program.launched) == (script, ["--lr", "1"], False)


def test_torchrun_as_a_module(script):
    program = parse([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "8", "--nnodes=2", script, "--lr", "1"])
    assert (program.script, program.arguments, program.launched) == (script, ["--lr", "1"], True)


def test_accelerate_sets_what_it_would(script):
    program = parse([sys.executable, "-m", "accelerate.commands.launch", "--mixed_precision", "bf16", "--num_processes", "8", script])
    assert program.environment["ACCELERATE_MIXED_PRECISION"] == "bf16"


@pytest.mark.parametrize("words, text", [([], "no program"), (["no-such-program"], "was not found"),
                                         ([sys.executable, "absent.py"], "there is no file")])
def test_bad_commands_are_one_line(words, text):
    with pytest.raises(CommandError, match=text) as problem:
        parse(words)
    assert "\n" not in str(problem.value)


def test_reserved_memory_counts_segments():
    MiB = 1 << 20
    assert reserved_peak([(1, 512)]) == 2 * MiB
    assert reserved_peak([(1, 5 * MiB), (2, 5 * MiB)]) == 20 * MiB
    assert reserved_peak([(1, 33 * MiB), (1, -33 * MiB), (2, 33 * MiB)]) == 34 * MiB
