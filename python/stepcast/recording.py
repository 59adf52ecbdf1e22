"""Records what `stepcast replay` reads: profiler and execution traces of all ranks, for the same few steps.

This file is pure Python and needs only PyTorch, which is imported when recording begins. Copy it to machines without stepcast.
There are four ways to use it; the last one needs no change of the training code:

    with capture("traces", at=20, steps=3) as recording:       # 1. in the loop
        for batch in loader:
            train_step(batch)
            recording.step()

    Trainer(..., callbacks=[hf_callback("traces")])            # 2. Hugging Face
    patch_optimizer("traces")                                  # 3. counts the steps of the first optimizer
    $ stepcast capture --at 20 --steps 3 -o traces -- torchrun ... train.py      # 4.

The folder `traces/step-000020/` then contains `kineto_rank-00003-of-00008.json.gz`, `et_rank-00003-of-00008.json.gz` and
`meta/rank-00003-of-00008.json` for every rank. All ranks record the same steps. A thread writes the files during the training, so
that no rank waits in a collective for one that writes. docs/recording.md explains the files.
"""

import argparse
import atexit
import gzip
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import threading
import time

_VARIABLE = "STEPCAST_CAPTURE"
_BYTES_OF_EVENT = 300  # bytes of JSON per event; 275 to 370 in public traces
_GZIP_RATIO = 12  # traces become 14 to 27 times smaller
_MOST_RANKS = 128  # up to this number of ranks, "auto" records all
_CLOCK_ROUNDS = 20
_WRITERS_OF_HOST = 2  # at a time
_CLOCK_PATIENCE_S = 20.0


def _say(text):
    print(f"stepcast capture: {text}", file=sys.stderr, flush=True)


def _tried(function, default=None):
    """Reports a problem that should not stop the training."""
    try:
        return function()
    except Exception:
        return default


class Recording:
    """Counts steps and records some of them; see capture()."""

    def __init__(self, directory, *, at=20, steps=3, warmup=2, ranks="auto", shapes=True, stacks=False,
                 memory=False, execution_trace=True):
        for name, value, least in (("at", at, 1), ("steps", steps, 1), ("warmup", warmup, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name}: found {value!r}, expected a whole number from {least} on")
        if warmup >= at:
            raise ValueError(f"warmup: found {warmup}, expected fewer steps than at={at}")
        if ranks not in ("auto", "all") and not all(isinstance(rank, int) for rank in ranks):
            raise ValueError(f"ranks: found {ranks!r}, expected 'auto', 'all' or a list of ranks")
        self.directory = os.fspath(directory)
        self.at, self.steps, self.warmup, self.ranks = at, steps, warmup, ranks
        self.shapes, self.stacks, self.memory, self.execution_trace = shapes, stacks, memory, execution_trace
        self.count = 0  # steps that ended
        self.files = []  # written files
        self._marks = []  # end times of steps before the profiler
        self._profiler = self._observer = self._writer = None
        self._done = False
        self._meta = {}
        self._lock = threading.Lock()

    # -- the loop

    def __enter__(self):
        self._marks = [time.perf_counter()]
        if self.at - self.warmup <= 0:
            self._begin()
        return self

    def __exit__(self, kind, problem, trace):
        self.close()
        return False

    def step(self):
        """Call at the end of every step."""
        with self._lock:
            if self._done:
                return
            self.count += 1
            if self._profiler is not None:
                self._profiler.step()
                if self.count >= self.at + self.steps:
                    self._end()
                return
            self._marks.append(time.perf_counter())
            if self.count == self.at - self.warmup:
                self._begin()

    def close(self):
        """Ends a running recording, and waits until all files are written."""
        with self._lock:
            if self._profiler is not None:
                _say(f"the training ended after {self.count} steps, within the recording: it is cut short")
                self._end()
            elif not self._done and self.count > 0:
                _say(f"nothing was recorded: the training took {self.count} steps, and recording begins at {self.at}")
            self._done = True
        if self._writer is not None:
            self._writer.join()

    # -- what is recorded

    def _begin(self):
        import torch

        self._rank, self._world = _rank_and_world(torch)
        self._local = int(os.environ.get("LOCAL_RANK", 0))
        self._meta = _machine(torch, self._rank, self._world, self._local)
        self._meta["unprofiled_step_ms"] = [1e3 * (b - a) for a, b in zip(self._marks, self._marks[1:])][-10:]
        self._meta["clock"] = {"before": _clock_offset(torch, self._rank, self._world, self._local, "before")}
        if not self._is_wanted():
            self._done = True
            return
        self._folder = os.path.join(self.directory, f"step-{self.at:06d}")
        os.makedirs(os.path.join(self._folder, "meta"), exist_ok=True)
        self._name = f"rank-{self._rank:05d}-of-{self._world:05d}"
        profiler = torch.profiler
        activities = [profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(profiler.ProfilerActivity.CUDA)
        options = {
            "activities": activities,
            "schedule": self._action(profiler.ProfilerAction),
            "record_shapes": self.shapes,
            "with_stack": self.stacks,
            "profile_memory": self.memory,
        }
        self._et_file = os.path.join(self._folder, f"et_{self._name}.json")
        observer = _tried(lambda: _observer(profiler, self._et_file)) if self.execution_trace else None
        self._profiler = None
        if observer is not None:
            # Passed to the profiler, so that both cover the same steps (PyTorch 2.4 and later).
            try:
                self._profiler = profiler.profile(execution_trace_observer=observer, **options)
            except TypeError:
                _tried(observer.unregister_callback)
                observer = None
                self._meta["notes"].append("this PyTorch gives profilers no execution trace: none is recorded")
        self._observer = observer
        if self._profiler is None:
            self._profiler = profiler.profile(**options)
        # Steps have the numbers of the training.
        self._profiler.step_num = self.count
        self._profiler.current_action = options["schedule"](self.count)
        if torch.cuda.is_available():
            _tried(torch.cuda.reset_peak_memory_stats)
        self._started = time.perf_counter()
        self._profiler.start()

    def _action(self, action):
        first, last = self.at, self.at + self.steps - 1

        def of_step(step):
            if step < first:
                return action.WARMUP
            if step < last:
                return action.RECORD
            return action.RECORD_AND_SAVE if step == last else action.NONE

        return of_step

    def _is_wanted(self):
        if self.ranks == "all" or (self.ranks == "auto" and self._world <= _MOST_RANKS):
            return True
        if self.ranks != "auto":
            return self._rank in self.ranks
        of_data = self._meta["parallel"].get("data_parallel_rank")
        return of_data == 0 if of_data is not None else self._rank < _MOST_RANKS // 2

    def _end(self):
        import torch

        profiler, self._profiler, self._done = self._profiler, None, True
        taken = self.count - (self.at - self.warmup)
        self._meta["profiled_step_ms"] = 1e3 * (time.perf_counter() - self._started) / max(1, taken)
        profiler.stop()
        if self._observer is not None:
            _tried(self._observer.unregister_callback)  # otherwise the file is truncated
        self._meta["memory"] = _memory(torch)
        self._meta["clock"]["after"] = _clock_offset(torch, self._rank, self._world, self._local, "after")
        before, after = self._meta["clock"]["before"], self._meta["clock"]["after"]
        if after and abs(after["offset_us"]) > 20:
            self._meta["notes"].append(
                f"the clock of {self._meta['host']} is {after['offset_us']:.0f} us off that of rank 0: "
                "arrivals at collectives are moved by as much"
            )
        if before and after:
            self._meta["clock"]["drift_us"] = after["offset_us"] - before["offset_us"]
        self._writer = threading.Thread(target=self._write, args=(profiler,), name="stepcast capture")
        self._writer.start()

    def _write(self, profiler):
        events = _tried(lambda: len(profiler.profiler.kineto_results.events()), 0)
        raw = events * _BYTES_OF_EVENT
        et_bytes = _tried(lambda: os.path.getsize(self._et_file), 0)
        self._meta["estimate"] = {"events": events, "json_bytes": raw, "gzip_bytes": raw // _GZIP_RATIO}
        # The ranks of a host write in turn, two at a time.
        time.sleep((self._local // _WRITERS_OF_HOST) * min(60.0, 0.5 + raw / 50e6))
        free = shutil.disk_usage(self._folder).free
        if raw + raw // _GZIP_RATIO + et_bytes > free:
            _say(f"rank {self._rank}: about {raw / 1e9:.1f} GB to write and {free / 1e9:.1f} GB free: left out; record fewer steps")
            self._meta["notes"].append("not written: the disk has no room")
        else:
            try:
                name = os.path.join(self._folder, f"kineto_{self._name}.json")
                profiler.export_chrome_trace(name)
                self.files.append(_zip(name))
                if self._observer is not None and os.path.exists(self._et_file):
                    self.files.append(_zip(self._et_file))
            except Exception as problem:
                _say(f"rank {self._rank}: could not write: {problem}")
                self._meta["notes"].append(f"not written: {problem}")
        name = os.path.join(self._folder, "meta", f"{self._name}.json")
        self._meta["files"] = [os.path.basename(file) for file in self.files]
        _write_json(name, self._meta)
        if self._rank == 0:
            _write_json(
                os.path.join(self._folder, "meta", "capture.json"),
                {"schema": "stepcast.capture/1", "at": self.at, "steps": self.steps, "warmup": self.warmup,
                 "world_size": self._world, "command": self._meta["command"]},
            )
            _say(f"{self.steps} steps from {self.at} on are in {self._folder}; next: stepcast replay {self._folder}")


def _write_json(name, document):
    with open(name + ".part", "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1, default=str)
    os.replace(name + ".part", name)


def _zip(name):
    with open(name, "rb") as plain, gzip.open(name + ".gz.part", "wb", compresslevel=4) as packed:
        shutil.copyfileobj(plain, packed, 1 << 20)
    os.replace(name + ".gz.part", name + ".gz")
    os.remove(name)
    return name + ".gz"


def _observer(profiler, file):
    # ExecutionGraphObserver is its name in PyTorch 1.13.
    kind = getattr(profiler, "ExecutionTraceObserver", None) or profiler.ExecutionGraphObserver
    observer = kind()
    observer.register_callback(file)
    return observer


def _rank_and_world(torch):
    distributed = torch.distributed
    if _tried(lambda: distributed.is_available() and distributed.is_initialized(), False):
        return distributed.get_rank(), distributed.get_world_size()
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def _machine(torch, rank, world, local):
    meta = {
        "schema": "stepcast.capture_rank/1",
        "rank": rank,
        "world_size": world,
        "local_rank": local,
        "host": socket.gethostname(),
        "time_ns": time.time_ns(),
        "command": sys.argv,
        "versions": {
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "cuda": _tried(lambda: torch.version.cuda),
            "hip": _tried(lambda: torch.version.hip),
            "cudnn": _tried(lambda: torch.backends.cudnn.version()),
            "nccl": _tried(lambda: ".".join(map(str, torch.cuda.nccl.version()))),
            "kernel": platform.release(),
        },
        "parallel": _parallel(),
        "environment": {
            key: value
            for key, value in sorted(os.environ.items())
            if key.startswith(("NCCL_", "TORCH_", "PYTORCH_", "CUDA_", "OMP_NUM_", "KINETO_"))
        },
        "gpu": None,
        "notes": [],
    }
    if _tried(lambda: torch.cuda.is_available(), False):
        device = torch.cuda.current_device()
        properties = torch.cuda.get_device_properties(device)
        meta["gpu"] = {
            "name": properties.name,
            "memory_bytes": properties.total_memory,
            "sm_count": _tried(lambda: properties.multi_processor_count),
            "uuid": _tried(lambda: str(properties.uuid)),
            "clock_MHz": _tried(lambda: torch.cuda.clock_rate(device)),
            "power_W": _tried(lambda: torch.cuda.power_draw(device) / 1e3),
        }
        meta["versions"]["driver"] = _tried(_driver)
    return meta


def _driver():
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, timeout=10).stdout.split()[0]


def _memory(torch):
    if not _tried(lambda: torch.cuda.is_available(), False):
        return None
    return {
        "peak_allocated_bytes": _tried(torch.cuda.max_memory_allocated),
        "peak_reserved_bytes": _tried(torch.cuda.max_memory_reserved),
    }


def _parallel():
    """The degrees of Megatron-LM, if it is used."""
    state = sys.modules.get("megatron.core.parallel_state")
    found = {}
    if state is None:
        return found
    for what in ("tensor_model_parallel", "pipeline_model_parallel", "context_parallel", "expert_model_parallel",
                 "data_parallel"):
        for part in ("world_size", "rank"):
            value = _tried(getattr(state, f"get_{what}_{part}", lambda: None))
            if isinstance(value, int):
                found[f"{what}_{part}"] = value
    return found


def _clock_offset(torch, rank, world, local, when):
    """The offset of this host's clock to that of rank 0. The first rank of every host and rank 0 exchange timestamps through the
    store of the process group, which blocks no collective. The round with the shortest time is used. None: a single process, or no
    such store."""
    distributed = torch.distributed
    if world < 2 or not _tried(distributed.is_initialized, False) or (local != 0 and rank != 0):
        return None
    return _tried(lambda: _exchange(distributed.distributed_c10d._get_default_store(), rank, world, when))


def _exchange(store, rank, world, when):
    from datetime import timedelta

    key = f"stepcast/{when}"
    per_host = int(os.environ.get("LOCAL_WORLD_SIZE", world))
    leaders = range(per_host, world, max(1, per_host))
    patience = timedelta(seconds=_CLOCK_PATIENCE_S)

    def read(name):
        store.wait([name], patience)
        return store.get(name)

    if rank == 0:
        for leader in leaders:
            for i in range(_CLOCK_ROUNDS):
                read(f"{key}/ask/{leader}/{i}")
                store.set(f"{key}/answer/{leader}/{i}", str(time.time_ns()))
        return {"offset_us": 0.0, "round_us": 0.0}
    best = None
    for i in range(_CLOCK_ROUNDS):
        begin = time.time_ns()
        store.set(f"{key}/ask/{rank}/{i}", "now")
        there = int(read(f"{key}/answer/{rank}/{i}"))
        end = time.time_ns()
        if best is None or end - begin < best[0]:
            best = (end - begin, (begin + end) / 2 - there)
    return {"offset_us": best[1] / 1e3, "round_us": best[0] / 1e3}


# ----------------------------------------------------------------------------------------------------- ways to record


def capture(directory, **options):
    """A context manager. Call its step() after every step of the training.

    directory  folder to write to, the same for all ranks
    at, steps  the first step to record, counted from 0, and their number; the profiler also runs in `warmup` steps before
    ranks      "auto" (all of up to 128, else one data-parallel replica), "all", or a list
    shapes, execution_trace    on: sizes of operators, dependencies through tensors
    stacks, memory             off: they make traces several times as large
    """
    return Recording(directory, **options)


def hf_callback(directory, **options):
    """For `Trainer(callbacks=[...])` of Hugging Face Transformers."""
    try:
        from transformers import TrainerCallback
    except ImportError:
        TrainerCallback = object

    class StepcastCallback(TrainerCallback):
        def __init__(self):
            self.recording = Recording(directory, **options)

        def on_train_begin(self, args=None, state=None, control=None, **others):
            self.recording.__enter__()

        def on_step_end(self, args=None, state=None, control=None, **others):
            self.recording.step()

        def on_train_end(self, args=None, state=None, control=None, **others):
            self.recording.close()

    return StepcastCallback()


def patch_optimizer(directory, **options):
    """Counts the steps of the first optimizer that makes one; the training loop stays unchanged. Returns the Recording."""
    from torch.optim import optimizer as module

    recording = Recording(directory, **options)
    first = []

    def stepped(optimizer, *others):
        if not first:
            first.append(optimizer)
            recording.__enter__()
            recording._marks.clear()  # the start of the first step is unknown
        if first[0] is optimizer:
            recording.step()

    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is not None:
        register(stepped)
    else:  # before PyTorch 2.1
        begin = module.Optimizer.__init__

        def initialise(self, *args, **keywords):
            begin(self, *args, **keywords)
            step = self.step

            def counted(*step_args, **step_keywords):
                result = step(*step_args, **step_keywords)
                stepped(self)
                return result

            self.step = counted

        module.Optimizer.__init__ = initialise
    atexit.register(recording.close)
    return recording


# ------------------------------------------------------------------------------------------------- without code change

_HOOK = '''"""Written by `stepcast capture`: records once an optimizer of PyTorch takes steps."""
import importlib.machinery, importlib.util, os, sys

_here = os.path.dirname(os.path.abspath(__file__))


def _next_sitecustomize():
    places = [place for place in sys.path if os.path.abspath(place or ".") != _here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", places)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _install():
    spec = importlib.util.spec_from_file_location("stepcast_recording", os.path.join(_here, "recording.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.install_hook()


try:
    _next_sitecustomize()
finally:
    _install()
'''


class _OnceImported:
    """Calls back after a module was imported, without importing it."""

    def __init__(self, name, then):
        self.name, self.then = name, then

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        import importlib.util

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def and_then(module):
            load(module)
            try:
                self.then()
            except Exception as problem:
                _say(f"not recording: {problem}")

        spec.loader.exec_module = and_then
        return spec


def install_hook():
    """Runs in the workers of `stepcast capture ... -- COMMAND` when Python starts."""
    text = os.environ.get(_VARIABLE)
    if text:
        options = json.loads(text)
        sys.meta_path.insert(0, _OnceImported("torch.optim.optimizer", lambda: patch_optimizer(**options)))


def main(words=None):
    parser = argparse.ArgumentParser(
        prog="stepcast capture",
        description="Runs a training command, and records a few of its steps on all ranks for `stepcast replay`.",
        epilog="example: stepcast capture --at 20 --steps 3 -o traces -- torchrun --nproc_per_node 8 train.py",
    )
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder to write to, the same on all hosts")
    parser.add_argument("--at", type=int, default=20, help="first step to record, counted from 0 (default: 20)")
    parser.add_argument("--steps", type=int, default=3, help="steps to record (default: 3)")
    parser.add_argument("--warmup", type=int, default=2, help="steps before that run with the profiler on (default: 2)")
    parser.add_argument("--ranks", default="auto", help="auto, all, or a list as 0,8,16 (default: auto)")
    parser.add_argument("--stacks", action="store_true", help="also the stacks of Python: several times the size")
    parser.add_argument("--memory", action="store_true", help="also every allocation")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="the training")
    asked = parser.parse_args(words)
    command = asked.command[1:] if asked.command[:1] == ["--"] else asked.command

    def fail(text):
        print(f"stepcast: error: capture: {text}", file=sys.stderr)
        return 2

    if not command:
        return fail("no command was given; write it behind --, as in: stepcast capture -o traces -- torchrun train.py")
    directory = os.path.abspath(asked.output)
    options = {"directory": directory, "at": asked.at, "steps": asked.steps, "warmup": asked.warmup,
               "ranks": asked.ranks, "stacks": asked.stacks, "memory": asked.memory}
    try:
        if asked.ranks not in ("auto", "all"):
            options["ranks"] = [int(rank) for rank in asked.ranks.split(",")]
        Recording(**options)
        # Next to the output, which all hosts of the job can access.
        hook = os.path.join(directory, ".hook")
        os.makedirs(hook, exist_ok=True)
        shutil.copyfile(os.path.abspath(__file__), os.path.join(hook, "recording.py"))
        with open(os.path.join(hook, "sitecustomize.py"), "w", encoding="utf-8") as file:
            file.write(_HOOK)
    except (ValueError, OSError) as problem:
        return fail(problem)
    environment = dict(os.environ)
    environment[_VARIABLE] = json.dumps(options)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [hook, environment.get("PYTHONPATH")]))
    try:
        code = subprocess.run(command, env=environment).returncode
    except OSError as problem:
        return fail(f"{command[0]}: {problem.strerror}")
    except KeyboardInterrupt:
        return 130
    shutil.rmtree(hook, ignore_errors=True)
    folder = os.path.join(directory, f"step-{asked.at:06d}")
    if code == 0 and not os.path.isdir(folder):
        print(f"stepcast: error: capture: nothing was recorded; the training takes fewer than {asked.at + asked.steps} "
              "steps, or its optimizer is not one of PyTorch's", file=sys.stderr)
        return 2
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
