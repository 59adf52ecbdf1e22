#!/usr/bin/env python3
"""Writes python/stepcast/_flags.py: a TypedDict of keywords for each verb, which type checkers and notebooks read.

    python/write_flags.py STEPCAST [--check]        ./dev docs calls it; --check: exit code 1 where the file is out of date

The names and types are those of `stepcast VERB --help-all`, and the flags of Megatron-LM that `stepcast completion bash` lists."""

import keyword
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python/stepcast"))  # the package itself needs a build
from _help import options_of  # noqa: E402

FLAGS = ROOT / "python/stepcast/_flags.py"
VERBS = {"predict": "Predict", "plan": "Plan", "shard": "Shard", "replay": "Replay", "inspect": "Inspect", "compare": "Compare",
         "dryrun": "Dryrun"}
# Not keywords: for people, or parameters of the function itself.
LEFT_OUT = {"help", "help-all", "json", "format", "details", "version"}
NAMED = {"predict": {"model", "gpus", "trace"}, "plan": {"model"}, "shard": {"model"}}


def run(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout


def type_of_flag(token):
    """Of the token behind a flag in the help: "INT ...", "TEXT:{on,off}", "" for a switch."""
    if not token:
        return "bool"
    many = "..." in token
    kind = re.split(r"[:=\s]", token)[0]
    one = {"INT": "int", "UINT": "int", "FLOAT": "Number", "FILE": "Path"}.get(kind, "Text")
    if "|" in kind and one == "Text" and "INT" in kind:
        one = "Union[int, str]"
    return f"Union[{one}, Iterable[{one}]]" if many else one


def flags_of(program, verb):
    """Name of a keyword -> its type, in the order of the help."""
    return {name[2:]: type_of_flag(option["value"]) for option in options_of(run(program, verb, "--help-all"))
            for name in option["names"]}


def megatron_flags(program):
    """All words of `predict` that its help does not list."""
    words = re.search(r"'predict'\) words='([^']*)'", run(program, "completion", "bash")).group(1)
    return [word[2:] for word in words.split() if word.startswith("--")]


def keyword_of(flag):
    name = flag.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def flags_module(program):
    lines = ['"""Keywords of the verbs and their types. Written by python/write_flags.py (`./dev docs`)."""', "",
             "from collections.abc import Iterable", "from os import PathLike", "from typing import TypedDict, Union", "",
             "Path = Union[str, PathLike[str]]", "Number = Union[float, str]  # 15e12, \"15T\"", "Text = Union[str, float, PathLike[str]]",
             "Value = Union[bool, Text, Iterable[Text]]  # of a flag of Megatron-LM"]
    for verb, name in VERBS.items():
        flags = {flag: kind for flag, kind in flags_of(program, verb).items() if flag not in LEFT_OUT | NAMED.get(verb, set())}
        if verb == "predict":
            for flag in megatron_flags(program):
                if flag not in LEFT_OUT | NAMED[verb]:
                    flags.setdefault(flag, "Value")
        lines += ["", "", f"class {name}Flags(TypedDict, total=False):"]
        lines += [f"    {keyword_of(flag)}: {kind}" for flag, kind in flags.items()]
    return "\n".join(lines) + "\n"


def main(arguments):
    text = flags_module(arguments[0])
    if "--check" not in arguments[1:]:
        FLAGS.write_text(text)
    elif not FLAGS.exists() or FLAGS.read_text() != text:
        print(f"{FLAGS.name}: out of date, `./dev docs` writes it")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
