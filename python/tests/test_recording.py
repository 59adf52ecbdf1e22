"""The recorder against a stand-in for PyTorch that writes down what is asked of it, and a folder that the real one wrote."""

import gzip
import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import stepcast
from stepcast import recording

# What the recorder uses of PyTorch; every call is a line of CALLS.
STAND_IN = {
    "__init__.py": """
        import os
        __version__ = "9.9"
        def note(*words):
            with open(os.environ["CALLS"] + os.environ.get("RANK", "0"), "a") as file:
                print(*words, file=file)
        class version: cuda = "13.0"; hip = None
        class cuda:
            @staticmethod
            def is_available(): return False
        from torch import distributed, optim, profiler
    """,
    "distributed.py": """
        def is_available(): return True
        def is_initialized(): return False
    """,
    "optim/__init__.py": "from torch.optim.optimizer import Optimizer\n",
    "optim/optimizer.py": """
        hooks = []
        def register_optimizer_step_post_hook(hook): hooks.append(hook)
        class Optimizer:
            def step(self):
                for hook in hooks: hook(self, (), {})
    """,
    "profiler.py": """
        import enum, json, torch
        ProfilerAction = enum.Enum("ProfilerAction", "NONE WARMUP RECORD RECORD_AND_SAVE")
        ProfilerActivity = enum.Enum("ProfilerActivity", "CPU CUDA")
        class ExecutionTraceObserver:
            def register_callback(self, file): self.file = file
            def unregister_callback(self):
                torch.note("observer closed")
                with open(self.file, "w") as file: json.dump({"nodes": []}, file)
        class profile:
            def __init__(self, activities, schedule, record_shapes, with_stack, profile_memory, execution_trace_observer=None):
                torch.note("profile", [a.name for a in activities], record_shapes, with_stack, profile_memory, execution_trace_observer is not None)
                self.schedule, self.step_num, self.current_action = schedule, 0, schedule(0)
            def start(self): torch.note("start", self.step_num, self.current_action.name)
            def step(self):
                self.step_num += 1
                self.current_action = self.schedule(self.step_num)
                torch.note("step", self.step_num, self.current_action.name)
            def stop(self): torch.note("stop")
            def export_chrome_trace(self, name):
                torch.note("export", name.rsplit("/", 1)[1])
                with open(name, "w") as file: json.dump({"traceEvents": []}, file)
    """,
}


@pytest.fixture
def run(tmp_path):
    """Runs a training script with the stand-in; returns what it printed, its exit code and the calls of rank 0."""
    for name, text in STAND_IN.items():
        file = tmp_path / "stand_in" / "torch" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))

    def go(script, *wrapper, ranks=(0,), env=()):
        (tmp_path / "train.py").write_text(textwrap.dedent(script))
        base = {**os.environ, "PYTHONPATH": str(tmp_path / "stand_in"), "CALLS": str(tmp_path / "calls"), **dict(env)}
        done = []
        for rank in ranks:
            environment = {**base, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(max(ranks) + 1)}
            done.append(subprocess.run([*wrapper, sys.executable, str(tmp_path / "train.py")], env=environment, check=False,
                                       capture_output=True, text=True, timeout=600, cwd=tmp_path))
        calls = tmp_path / "calls0"
        return done, calls.read_text().splitlines() if calls.exists() else []

    return go


LOOP = """
    import torch
    from stepcast.recording import capture
    with capture("out", at=5, steps=2, warmup=2) as recording:
        for step in range(9):
            recording.step()
"""

CALLS = [
    "profile ['CPU'] True False False True",
    "start 3 WARMUP",
    "step 4 WARMUP",
    "step 5 RECORD",
    "step 6 RECORD_AND_SAVE",
    "step 7 NONE",
    "stop",
    "observer closed",
    "export kineto_rank-00000-of-00001.json",
]


def test_the_steps_that_were_asked_for(run, tmp_path):
    (done,), calls = run(LOOP)
    assert done.returncode == 0, done.stderr
    assert calls == CALLS
    folder = tmp_path / "out" / "step-000005"
    assert sorted(path.name for path in folder.iterdir()) == [
        "et_rank-00000-of-00001.json.gz", "kineto_rank-00000-of-00001.json.gz", "meta"]
    with gzip.open(folder / "kineto_rank-00000-of-00001.json.gz") as file:
        assert json.load(file) == {"traceEvents": []}
    meta = json.loads((folder / "meta" / "rank-00000-of-00001.json").read_text())
    assert meta["versions"]["torch"] == "9.9" and len(meta["unprofiled_step_ms"]) == 3
    assert meta["files"] == ["kineto_rank-00000-of-00001.json.gz", "et_rank-00000-of-00001.json.gz"]
    assert json.loads((folder / "meta" / "capture.json").read_text())["steps"] == 2
    assert "next: stepcast replay" in done.stderr


TRAINING = """
    import torch
    optimizer, other = torch.optim.Optimizer(), torch.optim.Optimizer()
    for step in range(9):
        optimizer.step()
        other.step()
"""


def test_a_command_without_change_of_code(run, tmp_path):
    wrapper = [sys.executable, "-m", "stepcast", "capture", "--at", "5", "--steps", "2", "-o", str(tmp_path / "out"), "--"]
    done, calls = run(TRAINING, *wrapper, ranks=(0, 1))
    assert [one.returncode for one in done] == [0, 0], done[0].stderr
    assert calls == [call.replace("of-00001", "of-00002") for call in CALLS]
    names = sorted(path.name for path in (tmp_path / "out" / "step-000005").glob("kineto*"))
    assert names == ["kineto_rank-00000-of-00002.json.gz", "kineto_rank-00001-of-00002.json.gz"]
    assert not (tmp_path / "out" / ".hook").exists()


def test_other_sitecustomize_modules_are_still_run(run, tmp_path):
    (tmp_path / "stand_in").mkdir(exist_ok=True)
    (tmp_path / "stand_in" / "sitecustomize.py").write_text("import sys; sys.stdout.write('theirs ')\n")
    wrapper = [sys.executable, "-S", "-c", "import sys, runpy; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')",
               recording.__file__, "--at", "5", "-o", str(tmp_path / "out"), "--"]
    (done,), _ = run(TRAINING, *wrapper)
    assert done.returncode == 0, done.stderr
    assert "theirs" in done.stdout and (tmp_path / "out" / "step-000005").is_dir()


@pytest.mark.parametrize("words, says", [
    ([], "required: -o"),
    (["-o", "out"], "no command was given"),
    (["-o", "out", "--at", "1", "--", "true"], "expected fewer steps than at=1"),
    (["-o", "out", "--ranks", "a", "--", "true"], "invalid literal"),
    (["-o", "out", "--", "no-such-program"], "No such file"),
    (["-o", "/proc/none", "--", "true"], "/proc/none"),
])
def test_wrong_commands(tmp_path, words, says):
    done = subprocess.run([sys.executable, "-m", "stepcast", "capture", *words], cwd=tmp_path, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr


def test_the_exit_code_is_that_of_the_training(run, tmp_path):
    wrapper = [sys.executable, "-m", "stepcast", "capture", "-o", str(tmp_path / "out"), "--"]
    (done,), _ = run("import sys; sys.exit(7)", *wrapper)
    assert done.returncode == 7
    (done,), _ = run(TRAINING, *wrapper)
    assert done.returncode == 2 and "nothing was recorded" in done.stderr


def test_a_training_that_ends_early(run, tmp_path):
    (done,), calls = run(LOOP.replace("range(9)", "range(6)"))
    assert done.returncode == 0 and "cut short" in done.stderr
    assert calls[-3:] == ["stop", "observer closed", "export kineto_rank-00000-of-00001.json"]
    (done,), _ = run(LOOP.replace("range(9)", "range(2)"))
    assert "nothing was recorded: the training took 2 steps" in done.stderr


def test_only_the_ranks_asked_for(run, tmp_path):
    done, _ = run(LOOP.replace("warmup=2", "warmup=2, ranks=[1]"), ranks=(0, 1))
    assert [one.returncode for one in done] == [0, 0]
    names = [path.name for path in (tmp_path / "out" / "step-000005").glob("kineto*")]
    assert names == ["kineto_rank-00001-of-00002.json.gz"]


def test_an_older_pytorch_without_execution_traces_in_the_profiler(run, tmp_path):
    old = STAND_IN["profiler.py"].replace(", execution_trace_observer=None", "").replace(
        ", execution_trace_observer is not None", "")
    (tmp_path / "stand_in" / "torch" / "profiler.py").write_text(textwrap.dedent(old))
    (done,), calls = run(LOOP)
    assert done.returncode == 0 and calls[0] == "observer closed"  # and nothing more of it
    meta = json.loads(next((tmp_path / "out").glob("*/meta/rank*")).read_text())
    assert "no execution trace" in meta["notes"][0]


def test_hugging_face_callback(run, tmp_path):
    (done,), calls = run("""
        import torch
        from stepcast.recording import hf_callback
        callback = hf_callback("out", at=5, steps=2)
        callback.on_train_begin()
        for step in range(9):
            callback.on_step_end(args=None, state=None, control=None, model=None)
        callback.on_train_end()
    """)
    assert done.returncode == 0 and calls == CALLS


def test_clocks_of_hosts():
    """Three hosts, clocks 500 us ahead of and 2 ms behind that of rank 0, as the store sees it."""
    import threading
    from unittest import mock

    class Store:
        def __init__(self):
            self.values, self.changed = {}, threading.Condition()

        def set(self, key, value):
            with self.changed:
                self.values[key] = value
                self.changed.notify_all()

        def wait(self, keys, patience):
            with self.changed:
                assert self.changed.wait_for(lambda: all(key in self.values for key in keys), patience.total_seconds())

        def get(self, key):
            return self.values[key].encode()

    ahead_us = {0: 0, 8: 500, 16: -2000}
    store, found, of_thread = Store(), {}, threading.local()

    def now_ns():
        return time.clock_gettime_ns(time.CLOCK_REALTIME) + 1000 * ahead_us[of_thread.rank]

    def exchange(rank):
        of_thread.rank = rank
        found[rank] = recording._exchange(store, rank, 24, "before")

    with mock.patch.dict(os.environ, LOCAL_WORLD_SIZE="8"), mock.patch.object(recording.time, "time_ns", now_ns):
        threads = [threading.Thread(target=exchange, args=(rank,)) for rank in ahead_us]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found[0]["offset_us"] == 0
    for rank in (8, 16):  # within the round that took least time
        assert abs(found[rank]["offset_us"] - ahead_us[rank]) <= found[rank]["round_us"]


def test_arguments():
    for options in ({"at": 0}, {"steps": 0}, {"at": 2, "warmup": 2}, {"ranks": "some"}, {"steps": 1.5}, {"at": True}):
        with pytest.raises(ValueError):
            stepcast.capture("out", **options)


REAL = Path(__file__).parent / "data" / "two_gloo_ranks"


@pytest.mark.parametrize("place", [REAL, REAL / "step-000006"])
def test_what_pytorch_wrote_is_understood(place):
    """Two ranks of PyTorch 2.15 on CPUs, recorded by `stepcast capture -- torchrun` (data/README.md)."""
    files = stepcast.inspect(place).files
    assert [(file.format, file.rank) for file in files] == [
        ("kineto", 0), ("kineto", 1), ("execution_trace", 0), ("execution_trace", 1)]
    for file in files[:2]:
        assert [step.step for step in file.steps] == [6, 7] and file.world_size == 2
        assert file.usable_for_replay is False and file.notes[0] == "no GPU work was recorded"
    assert all(file.nodes > 200 for file in files[2:])
