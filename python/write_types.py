#!/usr/bin/env python3
"""Writes what type checkers and notebooks know of the package, from the program's own flags and the schemas of its answers.

    python/write_types.py STEPCAST [--check]        ./dev docs calls it; --check: exit code 1 where a file is out of date

python/stepcast/_flags.py has a TypedDict of keywords for each verb, from `stepcast VERB --help-all` and the flags of Megatron-LM
that `stepcast completion bash` lists. python/stepcast/_answers.pyi has a class for each object of docs/schemas/*.json."""

import json
import keyword
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGS, ANSWERS = ROOT / "python/stepcast/_flags.py", ROOT / "python/stepcast/_answers.pyi"
VERBS = {"predict": "Predict", "plan": "Plan", "shard": "Shard", "replay": "Replay", "inspect": "Inspect", "compare": "Compare",
         "dryrun": "Dryrun"}
# Not keywords: for people, or parameters of the function itself.
LEFT_OUT = {"help", "help-all", "json", "format", "details", "version"}
NAMED = {"predict": {"model", "gpus", "trace"}, "plan": {"model"}, "shard": {"model"}}
# Schema -> class of the package, and its docstring's subject.
CLASSES = {"forecast": "Forecast", "plan": "Plan", "replay": "Replay", "shard": "Sharding", "comparison": "Comparison",
           "inspect": "Inspection"}


def run(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout


def type_of_flag(token):
    """Of the token behind a flag in the help: "INT ...", "TEXT:{on,off}", "" for a switch."""
    if not token:
        return "bool"
    many = token.endswith("...")
    kind = re.split(r"[:=\s]", token.removesuffix("..."))[0]
    one = {"INT": "int", "UINT": "int", "FLOAT": "Number", "FILE": "Path"}.get(kind, "Text")
    if "|" in kind and one == "Text" and "INT" in kind:
        one = "Union[int, str]"
    return f"Union[{one}, Iterable[{one}]]" if many else one


def flags_of(program, verb):
    """Name of a keyword -> its type, in the order of the help."""
    found = {}
    for line in run(program, verb, "--help-all").splitlines():
        match = re.match(r"  ((?:-\w,)?--[\w,-]+)(?: ((?:[A-Z]|\d\||full\|)\S*(?: \.\.\.)?))?(?:\s{2,}|$)", line)
        for flag in match.group(1).split(",") if match else []:
            if flag.startswith("--"):
                found[flag[2:]] = type_of_flag(match.group(2) or "")
    return found


def megatron_flags(program):
    """All words of `predict` that its help does not list."""
    words = re.search(r"'predict'\) words='([^']*)'", run(program, "completion", "bash")).group(1)
    return [word[2:] for word in words.split() if word.startswith("--")]


def keyword_of(flag):
    name = flag.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def flags_module(program):
    lines = ['"""Keywords of the verbs and their types. Written by python/write_types.py (`./dev docs`)."""', "",
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


class Schemas:
    """The classes of all answers, as the text of a stub."""

    def __init__(self):
        self.classes = {}  # name -> lines of its members
        self.texts = {}

    def class_of(self, name, schema, root):
        """The class of an object with named members; one of another shape takes a number behind its name."""
        members = []
        needed = set(schema.get("required", []))
        for key, member in schema.get("properties", {}).items():
            attribute = keyword_of(key)
            if not attribute.isidentifier():
                continue
            kind = self.type_of(member, f"{name}{self.camel(key)}", root)
            if key not in needed and not kind.endswith("None"):
                kind += " | None"
            members.append(f"    {attribute}: Final[{kind}]")
        text = "\n".join(members) or "    pass"
        for other, known in self.classes.items():
            if known == text and other.rstrip("0123456789") == name:
                return other
        unique, n = name, 1
        while unique in self.classes:
            n += 1
            unique = f"{name}{n}"
        self.classes[unique] = text
        return unique

    @staticmethod
    def camel(key):
        return "".join(part[:1].upper() + part[1:] for part in re.split(r"\W|_", key))

    def type_of(self, schema, name, root):
        if "$ref" in schema:
            ref = schema["$ref"].split("/")[-1]
            if not schema["$ref"].startswith("#"):
                return "Record"
            return self.class_of(self.camel(ref), root["$defs"][ref], root)
        if "anyOf" in schema or "oneOf" in schema:
            kinds = [self.type_of(one, name, root) for one in schema.get("anyOf", schema.get("oneOf"))]
            return self.union(kinds)
        if "const" in schema or "enum" in schema:
            values = schema.get("enum", [schema.get("const")])
            return self.union(["None" if value is None else type(value).__name__ for value in values])
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        plain = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
        found = []
        for kind in kinds:
            if kind == "array":
                found.append(f"tuple[{self.type_of(schema.get('items', {}), name, root)}, ...]")
            elif kind == "object":
                found.append(self.class_of(name, schema, root) if schema.get("properties") else "Record")
            else:
                found.append(plain[kind])
        return self.union(found) if found else "Any"

    @staticmethod
    def union(kinds):
        kinds = list(dict.fromkeys(kinds))
        if "float" in kinds and "int" in kinds:
            kinds.remove("int")
        return " | ".join([kind for kind in kinds if kind != "None"] + (["None"] if "None" in kinds else []))


BASES = '''# Written by python/write_types.py (`./dev docs`): what _answers.py holds, with the members of docs/schemas/.

from collections.abc import Iterable, Iterator, KeysView
from os import PathLike
from typing import Any, Final

from typing_extensions import Self

class _Document:
    def __getitem__(self, key: str) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, key: object) -> bool: ...
    def keys(self) -> KeysView[str]: ...
    def get(self, key: str, default: Any = None) -> Any: ...
    def to_dict(self) -> dict[str, Any]: ...

class Record(_Document):
    def __getattr__(self, name: str) -> Any: ...

class Table:
    @staticmethod
    def of_rows(rows: Iterable[dict[str, Any]]) -> Table: ...
    @staticmethod
    def of_jsonl(path: str | PathLike[str]) -> Table: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, name: str) -> Any: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    def to_csv(self, path: str | PathLike[str] | None = None) -> str | None: ...
    def to_parquet(self, path: str | PathLike[str]) -> None: ...
    def to_pandas(self) -> Any: ...
    def to_polars(self) -> Any: ...

class Answer(_Document):
    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Self: ...
    def to_json(self) -> str: ...
    @property
    def tables(self) -> tuple[str, ...]: ...
    def table(self, name: str) -> Table: ...

class AnyAnswer(Answer):
    """An answer of another schema, at run time an Answer."""

    def __getattr__(self, name: str) -> Any: ...

class Calibration(AnyAnswer): ...

def from_dict(document: dict[str, Any], tables: dict[str, Table] | None = None) -> AnyAnswer: ...
def from_json(text: str | bytes, tables: dict[str, Table] | None = None) -> AnyAnswer: ...
'''
EXTRA = {
    "Forecast": "    def parts(self) -> dict[str, float]: ...\n    def plot(self, ax: Any = None) -> Any: ...",
    "Replay": "    @property\n    def simulated(self) -> Forecast: ...\n    @property\n    def measured(self) -> Forecast: ...",
}


def answers_stub():
    schemas = Schemas()
    bodies = {}
    for file, name in CLASSES.items():
        root = json.loads((ROOT / "docs" / "schemas" / f"{file}.json").read_text())
        found = schemas.class_of(f"_{name}Members", root, root)
        bodies[name] = schemas.classes.pop(found)
    for name, extra in EXTRA.items():
        for member in re.findall(r"def (\w+)", extra):
            bodies[name] = re.sub(rf"(?m)^    {member}: Final.*\n?", "", bodies[name])
        bodies[name] = bodies[name].rstrip("\n") + "\n" + extra
    text = BASES
    for name, members in schemas.classes.items():
        text += f"\nclass {name}(_Document):\n{members}\n"
    for name, members in bodies.items():
        text += f"\nclass {name}(Answer):\n{members}\n"
    return text


def main(arguments):
    program, check = arguments[0], "--check" in arguments[1:]
    stale = []
    for path, text in ((FLAGS, flags_module(program)), (ANSWERS, answers_stub())):
        if check and (not path.exists() or path.read_text() != text):
            stale.append(path.name)
        elif not check:
            path.write_text(text)
    if stale:
        print(f"{', '.join(stale)}: out of date, `./dev docs` writes them")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
