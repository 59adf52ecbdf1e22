"""The verbs of the program as functions. Keywords are flags, and answers are the documents of --json."""

import inspect as _inspect
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from stepcast import _flags, _stepcast
from stepcast._answers import Answer, Forecast, Table, from_json
from stepcast._errors import Differs, DoesNotFit, InputError, MachineError
from stepcast._program import PROGRAM

# A longer list is a mistake: each of its values would be a word of a command line.
_MOST_VALUES = 65536


def _text(flag, value):
    """One value as text of a command line."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, int):
        text = str(value)
    elif isinstance(value, float):
        text = repr(value)
        if math.isfinite(value) and value.is_integer() and abs(value) < 2**63:
            text = str(int(value))  # 1e12 tokens
    elif hasattr(value, "__fspath__"):
        text = os.fspath(value)
        if isinstance(text, bytes):
            text = os.fsdecode(text)
    elif hasattr(value, "__index__"):  # integers of NumPy
        text = str(value.__index__())
    elif hasattr(value, "__float__"):
        return _text(flag, float(value))
    else:
        raise TypeError(f"{flag}: found {type(value).__name__}, expected text, a number, a path, or a list of these")
    if "\0" in text:
        raise InputError(f"{flag}: found text with a zero byte")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise InputError(f"{flag}: found text that is not Unicode: {problem.reason}") from None
    return text


def _values(flag, value):
    """A value or a list of them, as texts."""
    if isinstance(value, (str, bytes)) or hasattr(value, "__fspath__") or not hasattr(value, "__iter__"):
        return [_text(flag, value)]
    if isinstance(value, (dict, set, frozenset)):  # a set has no order
        raise TypeError(f"{flag}: found a {type(value).__name__}, expected text, a number, a path, or a list of these")
    texts = []
    for item in value:
        if len(texts) == _MOST_VALUES:
            raise InputError(f"{flag}: found more than {_MOST_VALUES} values")
        texts.append(_text(flag, item))
    return texts


def _words(verb, positional, options):
    words = [*verb]
    for name, value in options.items():
        flag = "--" + name.strip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
            continue
        words.extend(f"{flag}={text}" for text in _values(flag, value))
    if positional:
        words.append("--")  # the following words are not flags, even if they begin with a dash
        words.extend(positional)
    return words


def _places(places):
    return [text for place in places for text in _values("a file or folder", place)]


def _answer(words, progress=None, tables=False):
    code, output, error, found = _stepcast.run(words, tables, progress)
    return _said(code, output, error, {name: Table(table) for name, table in found.items()})


def _said(code, output, error, tables=None):
    answer = from_json(output, tables=tables or {}) if output else None
    if error:
        problem = (MachineError if code == 1 else InputError)(error)
        problem.answer = answer
        raise problem
    if code == 3:
        raise DoesNotFit(next((note for note in answer.notes if note.startswith("does not fit")), "does not fit"), answer)
    if code == 4:
        raise Differs(f"the step times differ by {answer.step_difference_percent} %", answer)
    return answer


def _refuse(options, *names):
    for name in names:
        if name in options:
            raise TypeError(f"{name} is for people; answers have to_dict(), and str() is the text")


def _takes(flags, first=""):
    """Names the flags of the verb in the signature of a function, which notebooks complete and check."""

    def name(function):
        given = _inspect.signature(function)
        names = dict.fromkeys([*first.split(), *flags.__annotations__])
        before = [one for one in given.parameters.values() if one.kind is not _inspect.Parameter.VAR_KEYWORD]
        named = [_inspect.Parameter(flag, _inspect.Parameter.KEYWORD_ONLY, default=None) for flag in names
                 if flag not in given.parameters]
        function.__signature__ = given.replace(parameters=[*before, *named])
        return function

    return name


@_takes(_flags.PredictFlags, "gpus trace")
def predict(model=None, *, progress=None, **options):
    """Forecasts a training step from a description, or from recorded traces on another platform (`trace=`).

        predict("llama-3-70b", platform="dgx-h100", gpus=512, tp=4, pp=4, gbs=512, sequence_parallel=True)
        predict(trace="traces/", platform="8xmi300x", what_if=["host=1.5x"])

    Keywords are the flags of `stepcast predict` and those of Megatron-LM. Several batches, several numbers of GPUs and
    `sensitivity=True` give an Answer of another schema: predict_series() is the same function with that type.
    """
    _refuse(options, "json", "help")
    if model is not None:
        options["model"] = model
    plain = _stepcast.predict(options) if progress is None else None
    if plain is not None:
        return Forecast._of_handle(plain)
    trace = options.pop("trace", None)
    words = _words(["predict", "--json"], [], options)
    if trace is not None:
        words.extend(f"--trace={place}" for place in _values("--trace", trace))
    return _answer(words, progress)


@_takes(_flags.PredictFlags, "gpus trace")
def predict_series(model=None, *, progress=None, **options):
    """predict() for several numbers of GPUs or batches, or with `sensitivity=True`: an Answer with a row for each.

    predict_series("llama-3-8b", gpus=[8, 16, 32]).table("points").to_pandas()
    """
    return predict(model, progress=progress, **options)


@_takes(_flags.PredictFlags, "gpus trace")
def what_to_change(model=None, *, progress=None, **options):
    """Suggests changes that shorten a step or make it fit: `.sentence`, and `.actions` with saving, reason and command.

        what_to_change("llama-3-8b", gpus=64, pp=4).actions[0].command
        what_to_change(trace="traces/").actions[0].reason

    Keywords are those of predict(), which does not compute suggestions. Returns None for several pools of GPUs, the largest batch,
    or more than 128 recorded ranks.
    """
    _refuse(options, "json", "help")
    if model is not None:
        options["model"] = model
    trace = _values("--trace", options.pop("trace", []))
    words = _words(["predict", "--json", "--advice=on"], [], options)
    return _answer([*words, *(f"--trace={place}" for place in trace)], progress).what_to_change


@_takes(_flags.DryrunFlags)
def dryrun(step, *, progress=None, **options):
    """Forecasts a PyTorch training step that runs on the CPU of this machine; no GPU is needed.

        dryrun(train_step, gpus=8, platform="dgx-h100")      # a function without arguments, called in a separate process
        dryrun(["torchrun", "train.py"], gpus=8)             # a program, as `stepcast dryrun ... -- torchrun train.py`

    The function makes one optimizer step, or builds a model and trains. Models that it uses may be on the CPU: it moves them to the
    GPU that it sees in the process. Records are kept in the folder `output` (default "dryrun") for predict(trace=...).
    """
    from stepcast.dryrun import function as _function

    _refuse(options, "json", "help")
    with tempfile.TemporaryDirectory(prefix="stepcast-") as folder:
        if callable(step):
            file = os.path.join(folder, "function")
            try:
                _function.write(step, file)
            except _function.FunctionError as problem:
                raise InputError(str(problem)) from None
            command = [sys.executable, _function.__file__, file]
        else:
            command = _values("step", step)
        return _said(*_run_program(_words(["dryrun", "--json"], command, options), progress))


def _run_program(words, progress):
    """Exit code, output and error of the package's program. An interrupt ends all processes that it started."""
    environment = {"STEPCAST_PYTHON": sys.executable, **os.environ}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        try:
            running = subprocess.Popen([PROGRAM, *words], stdout=output, stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
                                       start_new_session=True, env=environment)
        except OSError as problem:
            raise MachineError(f"{PROGRAM}: {problem.strerror}; reinstall the package") from None
        said = []
        try:
            with running.stderr:
                for line in running.stderr:
                    if not line.startswith("stepcast dryrun: "):
                        said.append(line)
                    elif progress is not None:
                        progress(_stepcast.Progress(line.rstrip("\n")))
            code = running.wait()
        except BaseException:
            os.killpg(running.pid, signal.SIGINT)
            running.wait()
            raise
        output.seek(0)
        error = "".join(said).rstrip("\n").removeprefix("stepcast: error: ") if code not in (0, 3, 4) else ""
        return code, output.read(), error


def example_trace():
    """The folder of a generated example, which was not recorded: one step of a recommendation model on four GPUs.

        replay(example_trace()).verdict
    """
    return Path(__file__).parent / "example"


@_takes(_flags.ReplayFlags)
def replay(*places, progress=None, **options):
    """Simulates the recorded ranks in a folder (or in files), and compares them with the measured step.

        replay("traces/", all_steps=True).verdict
    """
    _refuse(options, "json", "help")
    return _answer(_words(["replay", "--json"], _places(places), options), progress)


@_takes(_flags.PlanFlags)
def plan(model=None, *, progress=None, **options):
    """Searches the layouts of a training: the fastest, the ones tied with it, and why others are worse.

        p = plan("gpt3-175b", platform="dgx-a100", gpus=1024, gbs=1536)
        p.chosen_layout.step_time_ms, p.table("priced").to_pandas()     # all layouts that were priced
    """
    _refuse(options, "json", "help")
    if model is not None:
        options["model"] = model
    return _answer(_words(["plan", "--json"], [], options), progress, tables=True)


@_takes(_flags.ShardFlags)
def shard(model=None, *, progress=None, **options):
    """Finds the best placement of embedding tables on GPUs by simulated step time: `shard("dlrm-mlperf-v1", gpus=8)`."""
    _refuse(options, "json", "help")
    if model is not None:
        options["model"] = model
    return _answer(_words(["shard", "--json"], [], options), progress)


class Resharder:
    """Decides during the training of a recommendation model whether its tables should move, and compares proposed plans.

        job = Resharder("dlrm.toml", plan="plan.json", gpus=8, platform="dgx-a100")
        job.decide("batch.npz", proposed=["other.json"], output="next.json").verdict

    Keywords are the flags of `stepcast shard`. An answer lists the current plan as "now", "resharded" if a few moves are worth it,
    and the proposed plans, the best first, each with its step time and its moves.
    """

    def __init__(self, model=None, *, plan, **options):
        self._model, self._options = model, options
        self.plan = plan

    def decide(self, indices=None, *, proposed=(), output=None, progress=None):
        """Decides for the lookups in a .npz file. The best plan is written to `output` and becomes the current plan."""
        answer = shard(self._model, progress=progress, now=self.plan, plan=proposed, indices=indices, output=output,
                       **self._options)
        if output is not None:
            self.plan = output
        return answer


def calibrate(kind, *files, progress=None, **options):
    """Fits a platform to measurements: "collectives", "kernels", "iterations", "overheads", ...

        calibrate("iterations", "steps.csv", platform="dgx-h100", output="mine.json").mape_after
    """
    _refuse(options, "json", "help")
    return _answer(_words(["calibrate", _text("kind", kind), "--json"], _places(files), options), progress)


@_takes(_flags.InspectFlags)
def inspect(*places, progress=None, **options):
    """Shows what trace files contain and whether they are usable: `inspect("traces/").files[0].usable_for_replay`."""
    _refuse(options, "json", "help")
    return _answer(_words(["inspect", "--json"], _places(places), options), progress)


@_takes(_flags.CompareFlags)
def compare(a, b, *, progress=None, **options):
    """Compares two steps: answers, files of the program (--json, --report), or training logs.

        compare(predict("llama-3-8b", gpus=8), "train.log").parts[0]
    """
    _refuse(options, "json", "help")
    with tempfile.TemporaryDirectory() as folder:
        files = [_file_of(name, step, folder) for name, step in (("a", a), ("b", b))]
        return _answer(_words(["compare", "--json"], files, options), progress)


def _file_of(name, step, folder):
    if not isinstance(step, Answer):
        return _text(name, step)
    file = os.path.join(folder, f"{name}.json")
    with open(file, "w", encoding="utf-8") as out:
        out.write(step.to_json())
    return file


def sweep(spec, executor=None, *, progress=None):
    """Runs all combinations in a file of lists (docs/sweeps.md), or in such a dict, and returns a Table with a row for each.

        sweep({"model": "llama-3-70b", "gpus": [64, 128, 256], "tp": [4, 8], "gbs": 1024}).to_pandas()

    `executor` is a concurrent.futures.Executor or a similar object (Dask's `Client.get_executor()`); its workers run several points
    at a time. Without one, points run here on all cores. A point that cannot run has a row with the reason.
    """
    lines, folder = _points(spec)
    if executor is not None:
        return _run_points(lines, executor, partial(_sweep_rows, folder), getattr(executor, "_max_workers", None) or 16, progress)
    stop = _stepcast.Stop()
    with ThreadPoolExecutor() as executor:
        try:
            return _run_points(lines, executor, partial(_sweep_rows, folder, stop=stop), os.cpu_count() or 1, progress)
        except BaseException:  # such as Ctrl-C: the executor must not wait for running points
            stop.request()
            raise


def _points(spec):
    if isinstance(spec, dict):
        folder, name = os.getcwd(), "the sweep"
        try:
            text = json.dumps(spec, default=lambda value: os.fspath(value), allow_nan=False)
        except (TypeError, ValueError, RecursionError) as problem:
            raise InputError(f"this is not a sweep: {problem}") from None
    else:
        name = _text("the sweep", spec)
        folder = os.path.dirname(os.path.abspath(name))
        try:
            with open(name, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as problem:
            raise InputError(f"{name}: {problem}") from None
    try:
        return _stepcast.sweep_points(text, name, folder), folder
    except ValueError as problem:
        raise InputError(str(problem)) from None


def _run_points(lines, executor, rows_of, workers, progress):
    # Several parts for each worker, because points take different times.
    size = max(1, min(256, len(lines) // (4 * workers) or 1))
    pieces = [executor.submit(rows_of, lines[i : i + size]) for i in range(0, len(lines), size)]
    rows, done = [], 0
    try:
        for piece in pieces:
            rows.extend(json.loads(row) for row in piece.result())
            done += 1
            if progress is not None:
                progress(_stepcast.Progress(f"sweep: {len(rows)} of {len(lines)} points", len(rows) / len(lines)))
    except BaseException:
        for piece in pieces[done:]:
            piece.cancel()
        raise
    return Table.of_rows(rows)


def _sweep_rows(folder, lines, stop=None):
    from stepcast import _stepcast as here  # the module in the worker

    return here.sweep_rows(lines, folder, stop)


def import_ranks(traces, folder, executor=None, *, step=None, all_steps=False, progress=None):
    """Writes ranks as small files into a folder, for `replay` and `predict`. Returns their names.

        import_ranks(glob("traces/kineto_rank*.json.gz"), "ranks", executor=client.get_executor())

    Each of `traces` is the profiler trace of a rank, or a list of it and its execution trace. The workers of `executor` read them
    from their file system and write NAME.step. `executor` is a concurrent.futures.Executor or a similar object (Dask's
    `Client.get_executor()`; docs/python.md shows Ray). Without one, they are read here on all cores.
    """
    folder = _text("the folder", folder)
    os.makedirs(folder, exist_ok=True)
    options = {"step": step, "all_steps": all_steps}
    work = []
    for trace in traces:
        places = _places([trace] if isinstance(trace, (str, os.PathLike)) else list(trace))
        name = os.path.basename(places[0])
        for ending in (".gz", ".json"):
            name = name.removesuffix(ending)
        work.append((places, os.path.join(folder, name + ".step")))
    outputs = [output for _, output in work]
    if len(set(outputs)) < len(outputs):
        twice = next(name for name in outputs if outputs.count(name) > 1)
        raise InputError(f"{twice}: two of the traces would be written there; found the same name in two folders")
    if executor is not None:
        return _import_all(work, executor, options, progress)
    with ThreadPoolExecutor(os.cpu_count() or 1) as executor:
        return _import_all(work, executor, options, progress)


def _import_all(work, executor, options, progress):
    pieces = [executor.submit(_import_rank, places, output, options) for places, output in work]
    names = []
    try:
        for piece in pieces:
            names.append(piece.result())
            if progress is not None:
                progress(_stepcast.Progress(f"import: {len(names)} of {len(pieces)} ranks", len(names) / len(pieces)))
    except BaseException:
        for piece in pieces[len(names) :]:
            piece.cancel()
        raise
    return names


def _import_rank(places, output, options):
    from stepcast import _stepcast as here  # the module in the worker

    code, _, error, _ = here.run(_words(["import"], places, {"output": output, **options}), False, None)
    if error:
        raise (MachineError if code == 1 else InputError)(error)
    return output


def models():
    """The models with built-in names."""
    return _answer(["models", "--json"])


def platforms(name=None):
    """The built-in platforms, or the figures of one platform file."""
    return _answer(["platforms", "--json", *([] if name is None else [_text("name", name)])])
