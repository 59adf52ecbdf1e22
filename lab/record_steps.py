"""Records training steps by their own programs, without a GPU: the records that the suite `dry_run` scores.

    python3 lab/record_steps.py OUT              a file for each step of data/measured, by the name of its case; existing files are kept
    python3 lab/record_steps.py --case NAME      the program itself: eight steps of one case
    python3 lab/record_steps.py --published OUT  a file for each published step of TorchTitan below, by its description
    python3 lab/record_steps.py --estimator FILE the estimate of PyTorch's RuntimeEstimator for each step of data/measured, as CSV

All but the third need the packages that the steps were measured with: torch 2.11, torchvision and transformers 5.17. It needs
TorchTitan 0.1.0, of the month of its later benchmarks, and tyro, tiktoken and tensorboard; it records the compiled programs with torch
2.11 and torchao 0.14.1 (older ones do not load there), and the others with torch 2.8, where an RMSNorm is several kernels, as it was then.
"""

from __future__ import annotations

import base64
import csv
import gzip
import importlib.metadata
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any, List, Tuple

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
    """The cases of all folders of data/measured, without duplicates."""
    names: List[str] = []
    measured = os.path.join(_ROOT, "data", "measured")
    for folder in sorted(os.listdir(measured)):
        path = os.path.join(measured, folder, "steps.csv")
        if os.path.isfile(path):
            with open(path, newline="", encoding="utf-8") as file:
                names += [row["case"] for row in csv.DictReader(file)]
    return list(dict.fromkeys(names))


# ---- Estimate of PyTorch ----
_DATA_SHEET = "NVIDIA H100"  # the only name in PyTorch's table of data sheets for both chips


def estimate_steps(file: str) -> None:
    """Writes the estimated milliseconds of a step of each case, after a step that sets up the optimizer, or the reason for a failure.
    `file` begins with the GPUs and their bandwidths in GB/s."""
    import types

    import torch
    import torch.utils._runtime_estimation as rates
    from stepcast.collect import measure_steps, step_cases
    from stepcast.collect.kernels.case import Scope
    from stepcast.dryrun import mode, patches
    from torch.distributed._tools.runtime_estimator import RuntimeEstimator

    # PyTorch's version does not move tied fake parameters
    torch.nn.Module._apply = patches._apply(torch.nn.Module._apply)
    torch._C._set_only_lift_cpu_tensors(True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    machine = types.SimpleNamespace(device=torch.device("cuda"), is_cuda=True, require_memory=lambda bytes_needed: None)
    with open(file, encoding="utf-8") as given:
        gpus = json.load(given)
    wanted, rows = cases(), []
    for case in step_cases.plan(Scope()):
        if case.name not in wanted:
            continue
        estimates, reason = [""] * len(gpus), ""
        try:
            with mode._Fake(allow_non_fake_inputs=True):
                training = measure_steps.build(case, machine)
                training.step()
                for i, (_, bandwidth) in enumerate(gpus):
                    rates.get_gpu_dram_gbps = lambda bandwidth=bandwidth: bandwidth  # Triton would ask the driver
                    with RuntimeEstimator()("operator-level-cost-model") as estimator:
                        training.step()
                    estimates[i] = f"{estimator.total_runtime:.4f}"
        except Exception as problem:
            reason = f"{type(problem).__name__}: {problem}".splitlines()[0][:120]
        rows += [(case.name, gpu, ms, reason) for (gpu, _), ms in zip(gpus, estimates)]
        print(*rows[-1], flush=True)
    with open(file, "w", newline="", encoding="utf-8") as out:
        csv.writer(out, lineterminator="\n").writerows([("case", "gpu", "estimate_ms", "reason"), *sorted(rows)])


def estimate(file: str) -> int:
    """Runs estimate_steps() in a process that sees a GPU."""
    sys.path.insert(0, _PACKAGE)
    from stepcast.dryrun import launch
    from stepcast.dryrun.command import Program

    gpus, measured = [], os.path.join(_ROOT, "data", "measured")
    for folder in sorted(os.listdir(measured)):
        steps = os.path.join(measured, folder, "steps.csv")
        if os.path.isfile(steps):
            with open(os.path.join(_ROOT, "platforms", folder + ".json"), encoding="utf-8") as platform, \
                    open(steps, newline="", encoding="utf-8") as rows:
                gpus.append((next(csv.DictReader(rows))["gpu"], json.load(platform)["device"]["memory_bandwidth_GBps"]))
    with open(file, "w", encoding="utf-8") as out:
        json.dump(gpus, out)
    with tempfile.TemporaryDirectory() as folder:
        seen = launch.Gpu(_DATA_SHEET, 80 << 30, 132, 90, 50 << 20, 1)
        env = launch._environment(Program(sys.executable, __file__, [], False), launch.Options(gpus=1, out=folder), seen, 0, folder)
        env["PYTHONPATH"] = os.pathsep.join(part for part in (_PACKAGE, os.environ.get("PYTHONPATH", "")) if part)
        return subprocess.run([sys.executable, __file__, "--estimate", file], env=env, check=False).returncode


# ---- Published steps ----
# TorchTitan's benchmarks of December 2024 and June 2025: the description of a row of llm_runs.csv, and the equivalent arguments.
_H100, _H200 = "H100-96GB-HBM2e-500W", "H200-SXM"
_GPU_BYTES = {_H100: 95 << 30, _H200: 141 << 30}
_OP = ["--activation_checkpoint.mode", "selective", "--activation_checkpoint.selective_ac_option", "op"]
_FULL = ["--activation_checkpoint.mode", "full"]
_COMPILE = ["--training.compile"]
_FLOAT8 = ["--model.converters", "float8", "--float8.filter_fqns", "output"]
_ROWWISE = [*_COMPILE, *_FLOAT8, "--float8.recipe_name", "rowwise"]
_TENSORWISE = [*_COMPILE, *_FLOAT8, "--float8.enable_fsdp_float8_all_gather", "--float8.precompute_float8_dynamic_scale_for_fsdp"]


# Compiled programs of December 2024 did not compile the loss, as their peak memory shows.
_PLAIN_LOSS = """from torchtitan.components.loss import cross_entropy_loss
from torchtitan.protocols.train_spec import get_train_spec
get_train_spec("llama3").build_loss_fn = lambda job_config: cross_entropy_loss
"""


def published() -> List[Tuple[str, str, int, List[str]]]:
    """Name of the record, GPU, GPUs, arguments. The name: set, model, GPU, GPUs, dtype, framework, tp and cp, tokens of a sequence."""
    rows = []

    def add(model: str, gpu: str, gpus: int, dtype: str, tensor: int, context: int, batch: int, tokens: int, more: List[str]) -> None:
        framework = "TorchTitan torch.compile" if "--training.compile" in more else "TorchTitan"
        name = f"torchtitan_h100 {model} {gpu} {gpus} {dtype} {framework} tp{tensor} cp{context} {tokens}".replace(" ", "_")
        rows.append((name, gpu, gpus, ["--model.flavor", model.rpartition("-")[2].upper(), "--training.local_batch_size", str(batch),
                                       "--training.seq_len", str(tokens), "--parallelism.tensor_parallel_degree", str(tensor),
                                       "--parallelism.context_parallel_degree", str(context), *more]))

    earlier = ["--experimental.custom_import", "plain_loss"]
    for gpus in (8, 128):
        for dtype, more in (("bf16", []), ("bf16", _COMPILE), ("float8", _TENSORWISE)):
            add("llama3.1-8b", _H100, gpus, dtype, 1, 1, 2, 8192, [*more, *_OP, *earlier])
    for context, tokens in ((1, 32768), (2, 65536), (4, 131072), (8, 262144)):
        add("llama3.1-8b", _H100, 8, "float8", 1, context, 1, tokens, [*_TENSORWISE, *_FULL, *earlier])
    add("llama3.1-70b", _H100, 256, "float8", 8, 1, 16, 8192, [*_TENSORWISE, *_FULL, *earlier])
    for model, gpus, batch, kept in (("llama3-70b", 256, 16, _FULL), ("llama3-8b", 64, 12, _OP)):
        for dtype, more in (("bf16", _COMPILE), ("float8 tensorwise", _TENSORWISE), ("float8 rowwise", _ROWWISE)):
            add(model, _H100, gpus, dtype, 8, 1, batch, 8192, [*more, *kept])
    for gpus in (32, 64):
        add("llama3.1-8b", _H200, gpus, "float8", 1, 1, 2, 8192, [*_TENSORWISE, *_OP])
    return rows


def _made_up_text(folder: str) -> List[str]:
    """What TorchTitan reads: a tokenizer with as many words as Llama 3's, and documents; and the loss of some programs."""
    os.makedirs(os.path.join(folder, "data"))
    with open(os.path.join(folder, "plain_loss.py"), "w", encoding="utf-8") as file:
        file.write(_PLAIN_LOSS)
    with open(os.path.join(folder, "tokenizer.model"), "wb") as file:
        words = itertools.chain(((i,) for i in range(256)), itertools.product(range(256), repeat=3))
        for i, word in enumerate(itertools.islice(words, 128000)):
            file.write(base64.b64encode(bytes(word)) + f" {i}\n".encode())
    with open(os.path.join(folder, "data", "data.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": "words of a text " * 600}) + "\n" for _ in range(1024))
    return ["--model.tokenizer_path", "tokenizer.model", "--training.dataset", "c4_test", "--training.dataset_path", "data"]


_LEFT_OUT = ("seq_id", "fw_tid", "fw_parent", "scope", "rf_id", "tid", "op_schema", "module", "allocated_bytes")


def _short(value: Any) -> Any:
    """A tensor without its address, which is not used."""
    if isinstance(value, list):
        is_tensor = len(value) == 6 and isinstance(value[5], str)
        return [0, *value[1:]] if is_tensor else [_short(v) for v in value]
    return value


def _odd(shape: Any, strides: Any) -> Any:
    """The strides, or an empty list if they follow from the shape."""
    if any(isinstance(part, list) for part in shape):
        return [_odd(*part) for part in zip(shape, strides)]
    plain = [math.prod(shape[i + 1:]) for i in range(len(shape))]
    return [] if strides == plain else strides


def shorten(source: str, target: str) -> None:
    """Writes a trace with a tenth of the size: without attributes that no forecast reads, and without operators that start no GPU work.
    The steps are GPU-bound, so that the host time of these operators does not matter."""
    with gzip.open(source, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    kept, nodes = {2}, []
    for node in reversed(trace["nodes"]):  # operators come before those that they call
        about = {a["name"]: a["value"] for a in node["attrs"]}
        # An alias that is not written to.
        is_view = re.search(r"\(\w+\)", about.get("op_schema", "").rpartition("->")[2]) is not None
        if node["id"] not in kept and (is_view or "stream" not in about) and not about.keys() & {"runtime_before", "sync"} \
                and not node["name"].startswith("##"):
            continue
        kept.add(node["ctrl_deps"])
        short = {key: node[key] for key in ("id", "name", "ctrl_deps")}
        for side in ("inputs", "outputs"):
            if node[side]["values"] and not is_view:
                strides = _odd(node[side]["shapes"], node[side]["strides"])
                short[side] = {**node[side], "values": _short(node[side]["values"]), "strides": strides}
        short["attrs"] = [{"name": n, "value": v} for n, v in about.items() if n not in _LEFT_OUT]
        nodes.append(short)
    trace["nodes"] = nodes[::-1]
    with open(target, "wb") as out, gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=9, mtime=0) as file:
        file.write(json.dumps(trace, separators=(",", ":")).encode())


# ---- Recording ----
def _dry_run(options: List[str], command: List[str], folder: str, out: str) -> bool:
    """Records `command`, started in `folder`, into the folder `out`."""
    path = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", "")))
    packages = os.pathsep.join(part for part in (_PACKAGE, os.environ.get("PYTHONPATH", "")) if part)
    start = [sys.executable, os.path.join(_PACKAGE, "stepcast", "dryrun", "__main__.py"), "record", *options, "--out", out, "--"]
    return subprocess.run([*start, *command], cwd=folder, check=False, env=dict(os.environ, PYTHONPATH=packages, PATH=path)).returncode == 0


def record(out: str) -> int:
    """Records every case that is not yet in `out` as CASE.et.json.gz; returns how many failed."""
    failed = 0
    os.makedirs(out, exist_ok=True)
    for name in cases():
        file = os.path.join(out, name + ".et.json.gz")
        if os.path.isfile(file):
            continue
        with tempfile.TemporaryDirectory() as folder:
            if _dry_run(["--gpus", "1"], ["python3", "lab/record_steps.py", "--case", name], _ROOT, folder):
                shutil.move(os.path.join(folder, "rank0.et.json.gz"), file)
            else:
                failed += 1
    return failed


def record_published(out: str) -> int:
    """Records every published step that is not yet in `out`; returns how many failed."""
    failed = 0
    os.makedirs(out, exist_ok=True)
    compiled = importlib.metadata.version("torch").split(".")[:2] != ["2", "8"]
    with tempfile.TemporaryDirectory() as folder:
        text = _made_up_text(folder)
        for name, gpu, gpus, arguments in published():
            file = os.path.join(out, name + ".et.json.gz")
            if os.path.isfile(file) or compiled != ("--training.compile" in arguments):
                continue
            options = ["--gpus", str(gpus), "--device-name", gpu.partition("-")[0], "--memory-bytes", str(_GPU_BYTES[gpu]),
                       "--timeout", "1800"]
            command = ["torchrun", "--nproc-per-node", "8", "-m", "torchtitan.train", "--training.steps", "10", "--training.seed", "1",
                       *text, *arguments]
            if _dry_run(options, command, folder, os.path.join(folder, "record")):
                shorten(os.path.join(folder, "record", "rank0.et.json.gz"), file)
            else:
                failed += 1
    return failed


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--case":
        train(sys.argv[2])
    elif len(sys.argv) == 3 and sys.argv[1] == "--estimate":
        estimate_steps(sys.argv[2])
    elif len(sys.argv) == 3 and sys.argv[1] == "--estimator":
        sys.exit(estimate(os.path.abspath(sys.argv[2])))
    elif len(sys.argv) == 3 and sys.argv[1] == "--published":
        sys.exit(2 if record_published(os.path.abspath(sys.argv[2])) else 0)
    elif len(sys.argv) == 2 and not sys.argv[1].startswith("-"):
        sys.exit(2 if record(os.path.abspath(sys.argv[1])) else 0)
    else:
        sys.exit(__doc__)
