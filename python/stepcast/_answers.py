"""Answers: the documents of docs/json.md as immutable objects, and their lists as tables."""

import html
import json
import keyword
import os

from stepcast import _stepcast
from stepcast._errors import Error, InputError


def _as_written(number):
    """The number with nine significant digits, as the document of its answer writes it."""
    return float(f"{number:.9g}")


class Record:
    """An immutable object of a document, with its keys as attributes.

    A key that is not a Python name (`"all-reduce"`) is read with `record["all-reduce"]`. Lists are tuples.
    """

    __slots__ = ("_values", "_read")

    def __init__(self, values):
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_read", {})

    def _items(self):
        return self._values

    def __getitem__(self, key):
        values = self._items()
        if key not in self._read:
            self._read[key] = _frozen(values[key])
        return self._read[key]

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name]
        except KeyError:
            known = ", ".join(self._items())
            raise AttributeError(f"{type(self).__name__} has no {name!r}; it has {known}") from None

    def __setattr__(self, name, value):
        raise AttributeError(f"{type(self).__name__} cannot be changed; to_dict() is a copy that can")

    def __delattr__(self, name):
        self.__setattr__(name, None)

    def __iter__(self):
        return iter(self._items())

    def __len__(self):
        return len(self._items())

    def __contains__(self, key):
        return key in self._items()

    def keys(self):
        return self._items().keys()

    def get(self, key, default=None):
        return self[key] if key in self else default

    def __dir__(self):
        return [*super().__dir__(), *(key for key in self._items() if key.isidentifier())]

    def __eq__(self, other):
        return isinstance(other, Record) and self._items() == other._items()

    def __hash__(self):
        return hash(json.dumps(self._items(), sort_keys=True))

    def __reduce__(self):
        return (type(self), (self._items(),))

    def __repr__(self):
        text = ", ".join(f"{key}={_short(value)}" for key, value in self._items().items())
        return f"{type(self).__name__}({text})"

    def to_dict(self):
        """A copy as dicts, lists, texts, numbers, truth values and None."""
        return json.loads(json.dumps(self._items()))


def _frozen(value):
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return value


def _short(value):
    if isinstance(value, dict):
        return "{...}" if value else "{}"
    if isinstance(value, list):
        return f"[{len(value)} items]" if value else "[]"
    return repr(value)


class Table:
    """Rows with named columns. It is an Arrow stream, which frame libraries read without copies.

        table.to_pandas(); table.to_polars(); table.to_csv("layouts.csv"); table["step_time_ms"]; len(table)

    duckdb.sql("SELECT * FROM table"), pyarrow.table(table) and others read it too. None of them is required.
    """

    __slots__ = ("_table",)

    def __init__(self, table):
        self._table = table

    @staticmethod
    def of_rows(rows):
        """A table of dicts. Values in nested dicts become columns `outer.inner`, lists become JSON."""
        flat = [_flat(row) for row in rows]
        names = list(dict.fromkeys(name for row in flat for name in row))
        lines = [",".join(map(_field, names))]
        lines += [",".join(_field(row.get(name)) for name in names) for row in flat]
        return Table(_stepcast.Table.from_csv("\n".join(lines) + "\n"))

    def __reduce__(self):
        return (_table_of_csv, (self._table.csv(),))

    @property
    def columns(self):
        return tuple(self._table.column_names)

    def __len__(self):
        return len(self._table)

    def __getitem__(self, name):
        """The values of a column as a list."""
        return self._table.column(name)

    def __arrow_c_schema__(self):
        return self._table.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)

    def to_dict(self):
        """The columns by name, as lists."""
        return {name: self[name] for name in self.columns}

    def to_csv(self, path=None):
        """The table as CSV: as text, or into a file."""
        text = self._table.csv()
        if path is None:
            return text
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        return None

    @staticmethod
    def of_jsonl(path):
        """A table of the rows of a sweep in one file, as written by `stepcast sweep SPEC -o out --merge all.jsonl`."""
        try:
            with open(path, encoding="utf-8") as file:
                return Table.of_rows([json.loads(line) for line in file])
        except (OSError, ValueError, AttributeError) as problem:
            raise InputError(f"{path}: found no JSON object on each line ({problem}), expected what sweep --merge writes") from None

    def to_parquet(self, path):
        """Writes the whole table to a file with polars or, if that is missing, with pyarrow."""
        part = f"{os.fspath(path)}.part"
        try:
            try:
                self.to_polars().write_parquet(part)
            except ImportError:
                import pyarrow
                import pyarrow.parquet

                pyarrow.parquet.write_table(pyarrow.table(self), part)
            os.replace(part, path)
        except ImportError:
            raise InputError("Parquet is written by polars or pyarrow: `pip install polars`") from None
        except OSError as problem:
            raise InputError(f"{path}: {problem}") from None
        finally:
            if os.path.exists(part):
                os.remove(part)

    def to_pandas(self):
        import pandas

        if hasattr(pandas.DataFrame, "from_arrow"):
            try:
                return pandas.DataFrame.from_arrow(self)
            except ImportError:  # pandas needs pyarrow for this
                pass
        return pandas.DataFrame(self.to_dict(), columns=list(self.columns))

    def to_polars(self):
        import polars

        return polars.DataFrame(self)

    def __repr__(self):
        return f"Table({len(self)} rows: {', '.join(self.columns)})"

    def _repr_html_(self):
        rows = min(len(self), 20)
        columns = [(name, self[name][:rows]) for name in self.columns]
        body = [[values[i] for _, values in columns] for i in range(rows)]
        more = f"<p>{len(self)} rows</p>" if rows < len(self) else ""
        return _html_table(self.columns, body) + more


def _table_of_csv(text):
    return Table(_stepcast.Table.from_csv(text))


def _flat(row, prefix=""):
    flat = {}
    for key, value in row.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat


def _field(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        value = json.dumps(value)
    text = repr(value) if isinstance(value, float) else str(value)
    if any(c in text for c in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


class Answer(Record):
    """The answer of a verb: a document of docs/json.md."""

    __slots__ = ("_tables",)

    def __init__(self, values, tables=None):
        super().__init__(values)
        object.__setattr__(self, "_tables", tables or {})

    @classmethod
    def from_dict(cls, document):
        """The answer in a stored document: the result of to_dict(), or of the program with --json."""
        answer = from_dict(document)
        if not isinstance(answer, cls):
            raise InputError(f"found the schema {answer.get('schema')!r}, expected that of a {cls.__name__}")
        return answer

    def to_json(self):
        return json.dumps(self._items())

    def __reduce__(self):
        return (type(self), (self._items(), self._tables))

    @property
    def tables(self):
        """Names of the lists that table() returns."""
        lists = [key for key, value in self._items().items() if _is_rows(value)]
        return tuple(dict.fromkeys([*self._tables, *lists]))

    def table(self, name):
        """A list of the document, or one that is too long for the document, as a Table."""
        value = self._items().get(name)
        if name in self._tables:
            return self._tables[name]
        if not _is_rows(value):
            raise KeyError(f"no table {name!r}; there are: {', '.join(self.tables) or 'none'}")
        return Table.of_rows(value)

    def __repr__(self):
        verdict = self.get("verdict")
        return f"{type(self).__name__}({verdict!r})" if verdict else super().__repr__()

    def _repr_html_(self):
        rows = [(key, _short(value)) for key, value in self._items().items() if key not in ("schema", "version")]
        return _html_table(("", ""), rows)


def _is_rows(value):
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


class Forecast(Answer):
    """A forecast of a step: time, parts, memory, throughput and sources of the times (stepcast.forecast/1)."""

    __slots__ = ("_handle",)

    def __init__(self, values, tables=None, handle=None):
        super().__init__(values, tables)
        object.__setattr__(self, "_handle", handle)

    @classmethod
    def _of_handle(cls, handle):
        """A forecast in the library. The full document is made only when more than the step time is read."""
        forecast = _NEW(cls)
        _SET_HANDLE(forecast, handle)
        _SET_VALUES(forecast, None)
        return forecast

    def _items(self):
        if self._values is None:
            self.__init__(json.loads(self._handle.json()), handle=self._handle)
        return self._values

    @property
    def step_time_ms(self):
        return _as_written(self._handle.step_time_ms) if self._values is None else self["step_time_ms"]

    @property
    def step_time_p10_ms(self):
        return _as_written(self._handle.step_time_p10_ms) if self._values is None else self["step_time_p10_ms"]

    @property
    def step_time_p90_ms(self):
        return _as_written(self._handle.step_time_p90_ms) if self._values is None else self["step_time_p90_ms"]

    def _of_program(self):
        if self._handle is None:
            object.__setattr__(self, "_handle", _stepcast.read_forecast(self.to_json()))
        return self._handle

    def __str__(self):
        """The text that the program prints."""
        return self._of_program().text()

    def __repr__(self):
        name = self.model or self.traces or self.kind
        place = f" on {self.n_gpus} x {self.gpu}" if self.gpu else ""
        return (
            f"Forecast({name}{place}: {self.step_time_ms:.1f} ms, "
            f"p10 {self.step_time_p10_ms:.1f}, p90 {self.step_time_p90_ms:.1f})"
        )

    def parts(self):
        """The parts of the time of the last rank class to finish: (what, ms), in the order of docs/json.md."""
        rank = self.rank_classes[self.critical_class]
        parts = [(f"computation: {key}", ms) for key, ms in rank.computation_by_class_ms._items().items()]
        parts += [(f"exposed communication: {key}", ms) for key, ms in rank.exposed_comm_by_group_ms._items().items()]
        parts.append(("exposed copies", rank.exposed_memcpy_ms))
        parts += [(f"idle: {key}", ms) for key, ms in rank.idle_ms._items().items()]
        return [(what, ms) for what, ms in parts if ms > 0]

    def _repr_html_(self):
        """The page of `--report` without its script."""
        return self._of_program().html()

    def plot(self, ax=None):
        """Draws each part as a bar. Needs matplotlib (pip install stepcast[plot]). Returns the axes."""
        try:
            from matplotlib import pyplot
        except ImportError:
            raise Error("plot() needs matplotlib: pip install stepcast[plot]") from None
        parts = self.parts()[::-1]
        if ax is None:
            ax = pyplot.subplots(figsize=(8, 0.5 + 0.3 * len(parts)))[1]
        ax.barh([what for what, _ in parts], [ms for _, ms in parts])
        ax.set_xlabel("ms")
        ax.set_title(repr(self)[len("Forecast(") : -1])
        return ax


_NEW = object.__new__
_SET_HANDLE = Forecast._handle.__set__
_SET_VALUES = Record._values.__set__


class Replay(Answer):
    """Simulated recorded ranks, and the measured step (stepcast.replay/2)."""

    __slots__ = ()

    def _repr_html_(self):
        ranks = [
            (rank["rank"], *(f"{rank[key]:,.3f}" for key in ("measured_step_time_ms", "step_time_ms", "step_error_percent")))
            for rank in self._items()["ranks"]
        ]
        head = f"<p>{html.escape(self.verdict)}</p>"
        return head + _html_table(("rank", "measured ms", "simulated ms", "error %"), ranks) + self.simulated._repr_html_()

    @property
    def simulated(self):
        return Forecast(self._items()["simulated"])

    @property
    def measured(self):
        return Forecast(self._items()["measured"])


class Plan(Answer):
    """A search of layouts (stepcast.plan/1). table("priced") has all layouts that were priced."""

    __slots__ = ()

    def __repr__(self):
        best = self.chosen_layout
        said = "no layout fits" if best is None else (
            f"{best.layout}{', refined' if best.changes else ''}: {best.promised_step_time_ms:.1f} ms, "
            f"p10 {best.promised_step_time_p10_ms:.1f}, p90 {best.promised_step_time_p90_ms:.1f}")
        return f"Plan({self.model} on {self.n_gpus} x {self.gpu}: {said}; {self.layouts_counted.priced:,} layouts priced)"

    def _repr_html_(self):
        rows = [
            (one["layout"], *(f"{one[key]:,.1f}" for key in ("step_time_ms", "step_time_p10_ms", "step_time_p90_ms")),
             f"{100 * one['mfu']:.1f}", f"{one['peak_memory_GiB']:.1f}",
             next((one[key] for key in one if key.endswith("_flags")), ""))
            for one in self._items()["layouts"]
        ]
        return f"<p>{html.escape(repr(self)[5:-1])}</p>" + _html_table(("layout", "step ms", "p10", "p90", "MFU %", "GiB", "flags"), rows)


class Sharding(Answer):
    """A placement of embedding tables on GPUs (stepcast.shard/1)."""

    __slots__ = ()

    def _repr_html_(self):
        rows = [
            (one["name"], f"{one['step_time_ms']:,.3f}", f"{one['lookup_imbalance']:.2f}", "yes" if one["fits"] else "no")
            for one in self._items()["shardings"]
        ]
        return f"<p>{html.escape(self.verdict)}</p>" + _html_table(("sharding", "step ms", "imbalance", "fits"), rows)


class Comparison(Answer):
    """The differences between two steps (stepcast.comparison/1)."""

    __slots__ = ()

    def _repr_html_(self):
        rows = [(one["key"], *(f"{one[key]:,.3f}" for key in ("a_ms", "b_ms", "difference_ms"))) for one in self._items()["parts"]]
        return f"<p>{html.escape(self.verdict)}</p>" + _html_table(("", "a ms", "b ms", "difference ms"), rows)


class Inspection(Answer):
    """The contents of trace files (stepcast.inspect/1)."""

    __slots__ = ()


class Calibration(Answer):
    """The result and quality of a fit (stepcast.calibrate_.../1)."""

    __slots__ = ()


_CLASSES = {
    "stepcast.forecast": Forecast,
    "stepcast.replay": Replay,
    "stepcast.plan": Plan,
    "stepcast.shard": Sharding,
    "stepcast.comparison": Comparison,
    "stepcast.inspect": Inspection,
}


def _class_of(document):
    schema = document.get("schema")
    if not isinstance(schema, str):
        return Answer
    name = schema.rsplit("/", 1)[0]
    return _CLASSES.get(name) or (Calibration if name.startswith("stepcast.calibrate") else Answer)


def from_dict(document, tables=None):
    """The Answer in a document of docs/json.md, chosen by its schema."""
    if not isinstance(document, dict):
        raise TypeError(f"found {type(document).__name__}, expected a dict")
    cls = _class_of(document)
    try:
        values = json.loads(json.dumps(document, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as problem:
        raise InputError(f"this is not a document: {problem}") from None
    if cls is Forecast:
        _stepcast.read_forecast(json.dumps(values))  # raises an error that names the wrong or missing key
    return cls(values, tables)


def from_json(text, tables=None):
    """The Answer in a text of --json."""
    try:
        document = json.loads(text)
    except ValueError as problem:
        raise InputError(f"this is not JSON: {problem}") from None
    if not isinstance(document, dict):
        raise InputError(f"found a JSON {type(document).__name__}, expected an object")
    return _class_of(document)(document, tables)


def _html_table(head, rows):
    def cells(values, tag):
        return "".join(f"<{tag}>{html.escape(str(value))}</{tag}>" for value in values)

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table><thead><tr>{cells(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"
