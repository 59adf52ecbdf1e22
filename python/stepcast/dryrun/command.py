"""Parses the command of a training: `torchrun train.py`, `python -m torch.distributed.run`, `accelerate launch`, `deepspeed`, a script."""

from __future__ import annotations

import os
import shutil
from typing import Dict, List, Optional, Set, Tuple


class CommandError(Exception):
    """An error as one line for the user."""


class Program:
    """A Python program with its arguments, and the interpreter that runs it."""

    def __init__(self, interpreter: str, script: str, arguments: List[str], is_module: bool) -> None:
        self.interpreter, self.script, self.arguments, self.is_module = interpreter, script, arguments, is_module
        self.launched = False  # by a launcher, which sets RANK, WORLD_SIZE, ...
        self.processes: Tuple[int, bool] = (0, False)  # number of processes (0: any), and whether it is for all nodes or for each
        self.environment: Dict[str, str] = {}


# Options of the launchers without a value; all others have one.
_TORCHRUN_FLAGS = {"--standalone", "-m", "--module", "--no-python", "--no_python", "--run-path", "--run_path"}
_ACCELERATE_FLAGS = {"-m", "--module", "--multi_gpu", "--use_deepspeed", "--use_fsdp", "--use_megatron_lm", "--use_xpu", "--cpu", "--no_python",
                     "--quiet", "-q", "--debug", "--dynamo_use_fullgraph", "--dynamo_use_dynamic", "--enable_cpu_affinity", "--tpu",
                     "--mps", "--use_parallelism_config"}
_DEEPSPEED_FLAGS = {"--force_multi", "--module", "--no_python", "--no_local_rank", "--bind_cores_to_rank", "--elastic_training"}


def _split(words: List[str], flags: Set[str]) -> Tuple[Dict[str, str], List[str]]:
    """The options of a launcher, and the program after them."""
    options: Dict[str, str] = {}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        at += 1
        if word == "--":
            break
        if "=" in word:
            name, value = word.split("=", 1)
            options[name.replace("-", "_").lstrip("_")] = value
        elif word in flags:
            options[word.replace("-", "_").lstrip("_")] = "1"
        else:
            options[word.replace("-", "_").lstrip("_")] = words[at] if at < len(words) else ""
            at += 1
    return options, words[at:]


def _script(interpreter: str, words: List[str], is_module: bool, launcher: str) -> Program:
    if not words:
        raise CommandError(f"{launcher} without a program; write: stepcast dryrun --gpus 8 --platform dgx-h100 -- {launcher} train.py")
    if not is_module and not os.path.isfile(words[0]):
        raise CommandError(f"there is no file {words[0]}")
    return Program(interpreter, words[0], words[1:], is_module)


def _told(program: Program, options: Dict[str, str], per_node: str, nodes: str) -> Program:
    """The number of processes that a launcher starts, if its options are numbers. Without a number of nodes, it is per node."""
    count, times = options.get(per_node, ""), options.get(nodes, "")
    if count.isdecimal() and (not times or times.isdecimal()):
        program.processes = int(count) * int(times or 1), bool(times)
    return program


def _interpreter_of(path: str) -> Optional[str]:
    """The Python interpreter in the first line of a console script."""
    with open(path, "rb") as file:
        first = file.read(512)
    lines = first.split(b"\n")
    if not first.startswith(b"#!"):
        return None
    if lines[0] == b"#!/bin/sh" and len(lines) > 1 and b"exec" in lines[1]:  # pip writes this form for a long path
        return lines[1].decode().split("'")[-2].split('"')[0] if b"'''exec'" not in lines[1] else lines[1].decode().split()[1].strip('"')
    words = lines[0][2:].decode().split()
    if not words or "python" not in os.path.basename(words[-1] if words[0].endswith("env") else words[0]):
        return None
    return shutil.which(words[-1]) if words[0].endswith("env") else words[0]


def _accelerate(interpreter: str, words: List[str]) -> Program:
    options, rest = _split(words, _ACCELERATE_FLAGS)
    program = _script(interpreter, rest, "m" in options or "module" in options, "accelerate launch")
    program.launched = True
    if options.get("num_processes", "").isdecimal():
        program.processes = int(options["num_processes"]), True
    chosen = dict(_accelerate_config(options.get("config_file")))
    chosen.update(options)
    set_by = program.environment
    if "mixed_precision" in chosen:
        set_by["ACCELERATE_MIXED_PRECISION"] = str(chosen["mixed_precision"])
    if "gradient_accumulation_steps" in chosen:
        set_by["ACCELERATE_GRADIENT_ACCUMULATION_STEPS"] = str(chosen["gradient_accumulation_steps"])
    if "use_fsdp" in chosen or str(chosen.get("distributed_type", "")).upper() == "FSDP":
        set_by["ACCELERATE_USE_FSDP"] = "true"
    for name, value in chosen.items():
        if name.startswith(("fsdp_", "parallelism_config_", "dynamo_")):
            variable = name.upper().replace("TRANSFORMER_LAYER_CLS", "TRANSFORMER_CLS").replace("DYNAMO", "ACCELERATE_DYNAMO")
            set_by[variable] = value.lower() if value in ("True", "False") else value
    if "use_parallelism_config" in chosen or any(n.startswith("parallelism_config_") for n in chosen):
        set_by["ACCELERATE_USE_PARALLELISM_CONFIG"] = "true"
    if "use_deepspeed" in chosen or str(chosen.get("distributed_type", "")).upper() == "DEEPSPEED":
        set_by["ACCELERATE_USE_DEEPSPEED"] = "true"
        for name, to in (("zero_stage", "ACCELERATE_DEEPSPEED_ZERO_STAGE"), ("deepspeed_config_file", "ACCELERATE_DEEPSPEED_CONFIG_FILE")):
            if name in chosen:
                set_by[to] = str(chosen[name])
    return program


def _accelerate_config(path: Optional[str]) -> Dict[str, str]:
    """The simple part of an accelerate config: `name: value` lines. Those inside a block keep their name."""
    path = path or os.path.join(os.environ.get("HF_HOME", os.path.expanduser("~/.cache/huggingface")), "accelerate", "default_config.yaml")
    if not os.path.isfile(path):
        return {}
    found: Dict[str, str] = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, colon, value = line.split("#")[0].strip().partition(":")
            if colon and value.strip():
                found[name.strip()] = value.strip().strip("'\"")
    return found


def parse(words: List[str]) -> Program:
    """Raises CommandError."""
    if not words:
        raise CommandError("no program was given; write: stepcast dryrun --gpus 8 --platform dgx-h100 -- torchrun train.py")
    path = shutil.which(words[0])
    if path is None:
        raise CommandError(f"{words[0]} was not found; activate the environment that has PyTorch, or give the path of the command: "
                           ".venv/bin/torchrun train.py")
    name = os.path.basename(words[0])
    if name.startswith("python") or name.startswith("pypy"):
        rest = words[1:]
        while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c"):
            rest = rest[2:] if rest[0] in ("-W", "-X") else rest[1:]
        if rest[:1] == ["-c"]:
            raise CommandError("python -c cannot be run dry; put the program into a file")
        if rest[:1] != ["-m"]:
            return _script(path, rest, False, name)
        launchers = {"torch.distributed.run": "torchrun", "torch.distributed.launch": "torchrun", "accelerate.commands.launch": "accelerate",
                     "deepspeed.launcher.runner": "deepspeed"}
        known = launchers.get(rest[1]) if len(rest) > 1 else None
        if known is None and rest[1:3] != ["accelerate", "launch"]:
            return _script(path, rest[1:], True, "python -m")
        name, interpreter = known or "accelerate", path
        words = ["accelerate", "launch", *rest[2:]] if known == "accelerate" else rest[1:]
    else:
        interpreter = _interpreter_of(path) or ""
        if not interpreter:
            raise CommandError(f"{words[0]} is not a program of Python; give what it starts: torchrun train.py, python train.py, ...")
    if name == "torchrun":
        options, rest = _split(words[1:], _TORCHRUN_FLAGS)
        program = _told(_script(interpreter, rest, "m" in options or "module" in options, "torchrun"), options, "nproc_per_node", "nnodes")
    elif name == "accelerate":
        if words[1:2] != ["launch"]:
            raise CommandError(f"accelerate {' '.join(words[1:2])} trains nothing; write accelerate launch train.py")
        return _accelerate(interpreter, words[2:])
    elif name == "deepspeed":
        options, rest = _split(words[1:], _DEEPSPEED_FLAGS)
        program = _told(_script(interpreter, rest, "module" in options, "deepspeed"), options, "num_gpus", "num_nodes")
        if "no_local_rank" not in options:
            program.arguments.insert(0, "--local_rank={local_rank}")
    else:
        return Program(interpreter, path, words[1:], False)
    program.launched = True
    return program
