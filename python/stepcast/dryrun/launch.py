"""Runs a program once for each class of equal ranks, and writes a record of each to a folder."""

from __future__ import annotations

import collections
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, List, Optional

from stepcast.dryrun.command import CommandError, Program, parse

_HERE = os.path.dirname(os.path.abspath(__file__))


class DryRunError(Exception):
    """An error as one line for the user; `below` is the error of the program."""

    def __init__(self, text: str, below: str = "") -> None:
        super().__init__(text)
        self.below = below


# What the program sees of the device. `capability`: 90 for 9.0.
Gpu = collections.namedtuple("Gpu", "name memory_bytes sms capability l2_bytes per_node")


def libraries() -> str:
    """The folder of the simulated CUDA libraries."""
    places = [os.environ.get("STEPCAST_DRYRUN_LIBRARIES", ""), os.path.join(_HERE, "lib")]
    for place in places:
        if place and os.path.isfile(os.path.join(place, "libcuda.so.1")):
            return place
    raise DryRunError("the stand-ins for CUDA's libraries are not here (libcuda.so.1); they are in the wheel for Linux on "
                      "x86-64 and aarch64, and STEPCAST_DRYRUN_LIBRARIES names the folder of a build")


class Options:
    """Options of one dry run."""

    def __init__(self, **given: Any) -> None:
        self.gpus: Optional[int] = given.get("gpus")
        self.platform: str = given.get("platform") or ""
        self.out: str = given["out"]
        self.at: Optional[int] = given.get("at")
        self.timeout_s: float = given.get("timeout_s") or 900.0
        self.keep_going: bool = bool(given.get("keep_going"))
        self.guess: Dict[str, float] = given.get("guess") or {}
        self.compile: str = given.get("compile") or ""  # "eager", "compiled"; empty: as in the program
        self.progress: bool = given.get("progress", True)


def _environment(program: Program, options: Options, gpu: Gpu, rank: int, folder: str) -> Dict[str, str]:
    world = options.gpus or 1
    local = min(gpu.per_node, world)
    env = dict(os.environ)
    env["LD_PRELOAD"] = os.path.join(libraries(), "libcuda.so.1") + ":" + env.get("LD_PRELOAD", "")
    env.update(STEPCAST_GPU_NAME=gpu.name, STEPCAST_GPU_BYTES=str(gpu.memory_bytes), STEPCAST_GPU_SMS=str(gpu.sms),
               STEPCAST_GPU_CAPABILITY=str(gpu.capability), STEPCAST_GPU_L2_BYTES=str(gpu.l2_bytes),
               STEPCAST_GPU_COUNT=str(local), STEPCAST_CUDA_MAJOR=str(_cuda_major(program)), KINETO_LOG_LEVEL="9")
    env.pop("CUDA_VISIBLE_DEVICES", None)
    if "CUDA_HOME" not in env and shutil.which("nvcc") is None:
        env["CUDA_HOME"] = _toolkit(folder, env["STEPCAST_CUDA_MAJOR"])
    env.setdefault("WANDB_MODE", "disabled")
    env.setdefault("PYTORCH_JIT", "0")  # TorchScript's executor reads data in the backward pass
    env.setdefault("PYTHONUNBUFFERED", "1")  # output before a failure is shown
    env["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(folder, "inductor")  # deleted with the run
    if options.compile == "eager":
        env["TORCH_COMPILE_DISABLE"] = env["TORCHDYNAMO_DISABLE"] = "1"
    if program.launched or world > 1:
        env.update(RANK=str(rank), LOCAL_RANK=str(rank % local), WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(local),
                   GROUP_RANK=str(rank // local), GROUP_WORLD_SIZE=str(-(-world // local)), ROLE_RANK=str(rank),
                   ROLE_WORLD_SIZE=str(world), MASTER_ADDR="localhost", MASTER_PORT="29500", TORCHELASTIC_RUN_ID="dryrun",
                   TORCHELASTIC_RESTART_COUNT="0", TORCHELASTIC_MAX_RESTARTS="0")
    env.update(program.environment)
    return env


def _toolkit(folder: str, major: str) -> str:
    """A folder with an nvcc that only prints its version, for libraries that ask for it when they are imported."""
    path = os.path.join(folder, "cuda", "bin", "nvcc")
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\n[ "$1" = -V ] || [ "$1" = --version ] || {{ echo "stepcast dryrun: nothing is compiled for a GPU" >&2; exit 1; }}\n'
                   f'echo "Cuda compilation tools, release {major}.0, V{major}.0.0"\n')
    os.chmod(path, 0o755)
    return os.path.join(folder, "cuda")


def _cuda_major(program: Program) -> int:
    """The version of libcudart in the interpreter's torch, by file names: 13 unless only 12 is there."""
    prefix = os.path.dirname(os.path.dirname(os.path.abspath(program.interpreter)))
    found = glob.glob(os.path.join(prefix, "lib*", "python3*", "site-packages", "nvidia", "cuda_runtime", "lib", "libcudart.so.*"))
    newer = glob.glob(os.path.join(prefix, "lib*", "python3*", "site-packages", "nvidia", "cu13"))
    return 12 if found and not newer and found[0].endswith(".12") else 13


class DryRun:
    """One dry run of a command."""

    def __init__(self, program: Program, command: List[str], options: Options, gpu: Gpu) -> None:
        self.program, self.command, self.options, self.gpu = program, command, options, gpu
        self.started = time.monotonic()

    def progress(self, text: str, ended: bool = False) -> None:
        """A progress line, overwritten on a terminal; elsewhere one line for each rank."""
        on_terminal = sys.stderr.isatty()
        if self.options.progress and (on_terminal or ended):
            print(("\r\033[K" if on_terminal else "") + text, end="\n" if ended else "", file=sys.stderr, flush=True)

    def run(self) -> List[Dict[str, Any]]:
        """The records of all classes of ranks. Raises DryRunError."""
        world = self.options.gpus or 1
        os.makedirs(self.options.out, exist_ok=True)
        for old in glob.glob(os.path.join(self.options.out, "rank*.et.json.gz")):
            os.remove(old)
        work = tempfile.mkdtemp(prefix="stepcast-dryrun-")
        done: Dict[int, Dict[str, Any]] = {}
        waiting, active = [0], {}
        try:
            while waiting or active:
                if not active:
                    rank = waiting.pop(0)
                    active[rank] = self._start(rank, work)
                for rank, child in list(active.items()):
                    ended = child.poll() is not None
                    status = self._status(rank, work)
                    if ended:
                        done[rank] = self._recorded(rank, child, status, work)
                        del active[rank]
                    elif time.monotonic() - self.started > self.options.timeout_s:
                        raise self._late(rank, status, work)
                    needed = status.get("needs", rank)  # the rank with objects that this one waits for
                    if needed not in active and needed not in done:
                        active[needed] = self._start(needed, work)
                    waiting += [p for p in status.get("peers", []) if p < world and p not in waiting]
                    self.progress(f"stepcast dryrun: rank {rank}: {status.get('steps', 0)} optimizer steps, "
                                  f"{status.get('operators', 0)} operators, {time.monotonic() - self.started:.0f} s")
                waiting = sorted(p for p in waiting if p not in active and p not in done)
                time.sleep(0.1)
            return self._classes(done, world)
        finally:
            for child in active.values():
                _end(child)
            shutil.rmtree(work, ignore_errors=True)

    def _classes(self, done: Dict[int, Dict[str, Any]], world: int) -> List[Dict[str, Any]]:
        ran = sorted(done)
        stages = next((s for status in done.values() for s in status.get("stages", []) if set(ran) <= set(s)), None)
        classes = []
        for rank in ran:
            if len(ran) == 1:
                ranks = list(range(world))
            elif stages is not None and len(stages) > 0 and world % len(stages) == 0:
                # Ranks of a stage are adjacent or in strides. Ranks of one stage differ only by their position inside it.
                step = stages[1] - stages[0] if len(stages) > 1 else world
                ranks = [r for r in range(world) if (r // step) % len(stages) == stages.index(rank)] if step > 0 else [rank]
            else:
                ranks = next((k for status in done.values() for k in status.get("kinds", []) if rank in k), [rank])
            classes.append({"rank": rank, "ranks": ranks, **done[rank]})
            _set_ranks(os.path.join(self.options.out, f"rank{rank}.et.json.gz"), ranks)
        return classes

    def _start(self, rank: int, work: str) -> Any:
        folder = os.path.join(work, f"rank{rank}")
        os.makedirs(folder)
        world = self.options.gpus or 1
        local = min(self.gpu.per_node, world)
        distributed = self.program.launched or world > 1
        job = {"rank": rank, "world_size": world, "platform": self.options.platform, "gpu": self.gpu.name, "at": self.options.at,
               "guess": self.options.guess, "keep_going": self.options.keep_going, "compile": self.options.compile,
               "status": os.path.join(folder, "status"), "shared": work if distributed else "",
               "trace": os.path.join(self.options.out, f"rank{rank}.et.json.gz"),
               "preload_before": os.environ.get("LD_PRELOAD"),
               "program": {"script": self.program.script, "module": self.program.is_module, "command": self.command,
                           "arguments": [a.replace("{local_rank}", str(rank % local)) for a in self.program.arguments]}}
        job_file = os.path.join(folder, "job.json")
        with open(job_file, "w", encoding="utf-8") as file:
            json.dump(job, file)
        with open(os.path.join(folder, "log"), "wb") as out:
            return subprocess.Popen([self.program.interpreter, os.path.join(_HERE, "child.py"), job_file], stdout=out,
                                    stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
                                    env=_environment(self.program, self.options, self.gpu, rank, folder))

    @staticmethod
    def _status(rank: int, work: str) -> Dict[str, Any]:
        try:
            with open(os.path.join(work, f"rank{rank}", "status"), encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return {}

    @staticmethod
    def _tail(rank: int, work: str) -> str:
        with open(os.path.join(work, f"rank{rank}", "log"), encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]

    def _error(self, rank: int, text: str, below: str) -> DryRunError:
        return DryRunError(f"rank {rank}: {text}" if (self.options.gpus or 1) > 1 else text, below)

    def _late(self, rank: int, status: Dict[str, Any], work: str) -> DryRunError:
        return self._error(rank, f"no step was recorded in {self.options.timeout_s:g} s ({status.get('steps', 0)} optimizer "
                           "steps seen); give more time with --timeout", self._tail(rank, work))

    def _recorded(self, rank: int, child: Any, status: Dict[str, Any], work: str) -> Dict[str, Any]:
        _end(child)
        if status.get("state") == "recorded":
            self.progress(f"stepcast dryrun: rank {rank}: step {status['steps']}, {status['operators']} GPU operators, "
                          f"{status['seconds']:.0f} s", ended=True)
            return status
        tail = self._tail(rank, work)
        if status.get("state") == "failed":
            error, said = status.get("error", ""), "\n".join(tail.splitlines()[-10:])
            if error.startswith("exit code "):
                raise self._error(rank, f"{status['message']}: {error}", said)
            raise self._error(rank, status["message"], error or said)
        code = child.returncode
        why = "was killed (the machine may be out of memory)" if code in (-9, 137) else \
            f"crashed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
        raise self._error(rank, f"the program {why} before a step was recorded", tail)


def _set_ranks(path: str, ranks: List[int]) -> None:
    """Adds the ranks that a record represents."""
    import gzip

    with gzip.open(path, "rt", encoding="utf-8") as file:
        text = file.read()
    at = text.index('"ranks": [')
    end = text.index("]", at)
    with gzip.open(path, "wt", compresslevel=3, encoding="utf-8") as file:
        file.write(text[:at] + '"ranks": [' + ", ".join(map(str, ranks)) + text[end:])


def _end(child: Any) -> None:
    """Ends the process and all processes that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except (ProcessLookupError, PermissionError):
            break
        try:
            child.wait(timeout=3)
        except subprocess.TimeoutExpired:
            continue
    child.wait()


def dry_run(command: List[str], options: Options, gpu: Gpu) -> List[Dict[str, Any]]:
    """Runs `command`; raises DryRunError."""
    try:
        program = parse(command)
    except CommandError as problem:
        raise DryRunError(str(problem)) from None
    processes, on_all = program.processes
    gpus = options.gpus or 1
    if processes and (gpus != processes if on_all else gpus % processes):
        fits = f"--gpus {processes}" if on_all else f"--gpus {processes}, {2 * processes}, {3 * processes}, ..."
        raise DryRunError(f"--gpus is {gpus}, and the command starts {processes} processes{'' if on_all else ' on each node'}; "
                          f"write {fits}, or change the command")
    return DryRun(program, command, options, gpu).run()
