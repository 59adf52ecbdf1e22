"""Writes _answers.pyi of the package: the classes of answers with the keys that docs/schemas/*.json give them.

    python3 python/make_stubs.py FILE
"""

import json
import keyword
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}

# Class: schema, what it derives from.
ANSWERS = {
    "Forecast": "forecast",
    "Replay": "replay",
    "Plan": "plan",
    "Sharding": "shard",
    "Comparison": "comparison",
    "Inspection": "inspect",
}

HEAD = '''# Written by python/make_stubs.py from docs/schemas/*.json.
from os import PathLike
from typing import Any, ClassVar, Iterator, KeysView, Mapping, TypeVar, Union

_A = TypeVar("_A", bound="Answer")

class Record:
    """An object of a document: its keys are attributes. Lists are tuples."""
    def __getitem__(self, key: str) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, key: object) -> bool: ...
    def keys(self) -> KeysView[str]: ...
    def get(self, key: str, default: Any = None) -> Any: ...
    def to_dict(self) -> dict[str, Any]: ...

class OpenRecord(Record):
    """One whose keys the schema leaves open: names of classes of operations, of groups."""
    def __getattr__(self, name: str) -> Any: ...

class Table:
    """Rows with named columns; an Arrow stream."""
    @staticmethod
    def of_rows(rows: list[dict[str, Any]]) -> Table: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, name: str) -> list[Any]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    @staticmethod
    def of_jsonl(path: Union[str, PathLike[str]]) -> "Table": ...
    def to_parquet(self, path: Union[str, PathLike[str]]) -> None: ...
    def to_csv(self, path: Union[str, PathLike[str], None] = None) -> str | None: ...
    def to_pandas(self) -> Any: ...
    def to_polars(self) -> Any: ...

class Answer(Record):
    """What a verb answers: a document of docs/json.md."""
    schema: str
    version: str
    @classmethod
    def from_dict(cls: type[_A], document: Mapping[str, Any]) -> _A: ...
    def to_json(self) -> str: ...
    @property
    def tables(self) -> tuple[str, ...]: ...
    def table(self, name: str) -> Table: ...

class AnyAnswer(Answer):
    """An answer of another schema; an Answer at run time."""
    def __getattr__(self, name: str) -> Any: ...

class Calibration(AnyAnswer): ...

def from_dict(document: Mapping[str, Any], tables: dict[str, Table] | None = None) -> AnyAnswer: ...
def from_json(text: str, tables: dict[str, Table] | None = None) -> AnyAnswer: ...
'''

METHODS = {
    "Forecast": [
        "def parts(self) -> list[tuple[str, float]]: ...",
        "def plot(self, ax: Any = None) -> Any: ...",
    ],
    "Replay": [],
}


class Stubs:
    """The classes of one schema."""

    def __init__(self, answer, document):
        self.answer, self.document, self.classes = answer, document, []
        self.named = {}

    def write(self):
        self.add_class(self.answer, self.document, "Answer", METHODS.get(self.answer, []))
        return "\n".join(self.classes)

    def add_class(self, name, schema, base, methods=()):
        lines = [f"class {name}({base}):"]
        at = len(self.classes)
        self.classes.append("")
        required = schema.get("required", [])
        for key, value in schema.get("properties", {}).items():
            if not key.isidentifier() or (base == "Answer" and key in ("schema", "version")):
                continue
            attribute = key + "_" if keyword.iskeyword(key) else key
            kind = self.type_of(value, f"{name}_{key}")
            if key not in required and "None" not in kind and kind != "Any":
                kind += " | None"
            lines.append(f"    {attribute}: {kind}")
            if description := value.get("description"):
                lines.append(f'    """{description}"""')
        lines += [f"    {method}" for method in methods]
        if len(lines) == 1:
            lines[0] += " ..."
        self.classes[at] = "\n".join(lines) + "\n"

    def type_of(self, schema, name):
        if "$ref" in schema:
            what = schema["$ref"].rsplit("/", 1)[-1]
            if what == "forecast.json":  # a replay holds two
                return "Forecast"
            if what not in self.named:
                self.named[what] = f"_{self.answer}_{what}"
                definition = self.document["$defs"][what]
                if "properties" in definition:
                    self.add_class(self.named[what], definition, "Record")
                else:
                    self.named[what] = self.type_of(definition, f"_{self.answer}_{what}")
            return self.named[what]
        if "anyOf" in schema or "oneOf" in schema:
            kinds = [self.type_of(one, f"{name}_{i}") for i, one in enumerate(schema.get("anyOf") or schema["oneOf"])]
            return " | ".join(dict.fromkeys(kinds))
        if "const" in schema or "enum" in schema:
            values = schema.get("enum", [schema.get("const")])
            return " | ".join(dict.fromkeys("None" if value is None else type(value).__name__ for value in values))
        types = schema.get("type")
        if types is None:
            return "Any"
        kinds = []
        for kind in types if isinstance(types, list) else [types]:
            if kind == "array":
                kinds.append(f"tuple[{self.type_of(schema.get('items', {}), name)}, ...]")
            elif kind == "object":
                if "properties" in schema:
                    own = name if name.startswith("_") else f"_{name}"
                    self.add_class(own, schema, "Record")
                    kinds.append(own)
                else:
                    kinds.append("OpenRecord")
            else:
                kinds.append(TYPES[kind])
        return " | ".join(dict.fromkeys(kinds))


def stubs():
    parts = [HEAD]
    for answer, name in ANSWERS.items():
        document = json.loads((ROOT / "docs" / "schemas" / f"{name}.json").read_text())
        parts.append(Stubs(answer, document).write())
    return "\n".join(parts)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(stubs())
