"""The functions of libstepcast.so for Python. Internal: not for users of the package.

The library has a plain C interface (python/src/library.h), which ctypes loads into any Python. Thus one wheel serves all Python
versions. Calls release the global interpreter lock.
"""

import ctypes
import math
import os
import time
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint8, c_void_p, py_object

from stepcast._errors import InputError

__file__ = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libstepcast.so")
_LIBRARY = ctypes.CDLL(__file__)

_SIGNATURES = {
    "main": (c_int, c_int, POINTER(c_char_p)),
    "version_text": (c_char_p,),
    "problem": (c_void_p, POINTER(c_size_t)),
    "run_new": (c_void_p, c_char_p, c_size_t, c_int, c_int, c_char_p, c_size_t),
    "run_wait": (c_int, c_void_p, c_int),
    "run_said": (c_void_p, c_void_p, POINTER(c_double), POINTER(c_size_t)),
    "run_code": (c_int, c_void_p),
    "run_output": (c_void_p, c_void_p, POINTER(c_size_t)),
    "run_error": (c_void_p, c_void_p, POINTER(c_size_t)),
    "run_table_name": (c_void_p, c_void_p, c_size_t, POINTER(c_size_t)),
    "run_table": (c_void_p, c_void_p, c_size_t),
    "run_free": (None, c_void_p),
    "predict": (c_void_p, c_char_p, c_size_t, POINTER(c_double)),
    "forecast_new": (c_void_p, c_char_p, c_size_t, POINTER(c_double)),
    "forecast_text": (c_void_p, c_void_p, c_int, POINTER(c_size_t)),
    "forecast_free": (None, c_void_p),
    "sweep_points": (c_void_p, c_char_p, c_char_p, c_char_p, POINTER(c_size_t)),
    "session_new": (c_void_p,),
    "session_free": (None, c_void_p),
    "sweep_rows": (c_void_p, c_void_p, c_char_p, c_char_p, c_void_p, POINTER(c_int), POINTER(c_size_t)),
    "stop_new": (c_void_p,),
    "stop_request": (None, c_void_p),
    "stop_free": (None, c_void_p),
    "table_new": (c_void_p, c_char_p, c_size_t),
    "table_free": (None, c_void_p),
    "table_rows": (c_size_t, c_void_p),
    "table_csv": (c_void_p, c_void_p, POINTER(c_size_t)),
    "table_column_name": (c_void_p, c_void_p, c_size_t, POINTER(c_size_t)),
    "table_column": (c_int, c_void_p, c_size_t, POINTER(c_void_p), POINTER(POINTER(c_uint8))),
    "table_texts": (c_void_p, c_void_p, c_size_t, POINTER(POINTER(c_int64)), POINTER(c_size_t)),
    "table_schema_new": (c_void_p, c_void_p),
    "table_stream_new": (c_void_p, c_void_p),
    "capsules": (None, c_void_p),
}


class _Functions:
    def __init__(self):
        for name, (result, *arguments) in _SIGNATURES.items():
            function = getattr(_LIBRARY, f"stepcast_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)


_c = _Functions()
_c.capsules(ctypes.cast(ctypes.pythonapi.PyCapsule_GetPointer, c_void_p))
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = py_object, (c_void_p, c_char_p, c_void_p)


def _bytes(function, *arguments):
    """The text of a function that returns a pointer and a size; None for null."""
    size = c_size_t()
    at = function(*arguments, byref(size))
    return None if at is None else ctypes.string_at(at, size.value)


def _text(function, *arguments):
    given = _bytes(function, *arguments)
    return None if given is None else given.decode("utf-8", "replace")


def _problem():
    return _text(_c.problem)


def _words(words):
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        raise TypeError("expected a list of texts")
    if any("\0" in word for word in words):
        raise ValueError("found a text with a zero byte")
    return "".join(word + "\0" for word in words).encode()


def _plain(text):
    """The text for C, where a zero byte would end it."""
    if not isinstance(text, str):
        raise TypeError(f"found {type(text).__name__}, expected a text")
    if "\0" in text:
        raise ValueError("found a text with a zero byte")
    return text.encode()


def version():
    return _c.version_text().decode()


def main(words):
    """Runs the program; `words` begin with its name."""
    arguments = [os.fsencode(word) for word in words]
    return _c.main(len(arguments), (c_char_p * (len(arguments) + 1))(*arguments, None))


class Progress(str):
    """A progress text. `share` is the finished part of the current activity, from 0 to 1, or None."""

    def __new__(cls, text, share=None):
        one = super().__new__(cls, text)
        one.share = share
        return one


def run(words, tables, progress, reads_only_in=None, most_s=None):
    """Runs a verb. Returns the exit code, the printed text, the error, and the tables by name. `reads_only_in`: folders; the verb then
    reads only files in these and writes none. It fails after `most_s` seconds."""
    given = _words(words)
    if progress is not None and not callable(progress):
        raise TypeError("progress: expected something to call")
    folders = None if reads_only_in is None else _words(reads_only_in)
    handle = _c.run_new(given, len(given), bool(tables), progress is not None, folders, len(folders or b""))
    try:
        began, look_after_signals_ms = time.monotonic(), 50
        while True:
            state = _c.run_wait(handle, look_after_signals_ms)
            if state == 1:
                share = c_double()
                said = _text(_c.run_said, handle, byref(share))
                if progress is not None:
                    progress(Progress(said, None if math.isnan(share.value) else share.value))
            elif state == 2:
                break
            elif most_s is not None and time.monotonic() - began > most_s:
                return 1, "", f"took longer than {most_s:g} s", {}
        found, number = {}, 0
        while (name := _text(_c.run_table_name, handle, number)) is not None:
            found[name] = Table._of(_c.run_table(handle, number))
            number += 1
        error = _text(_c.run_error, handle)
        return _c.run_code(handle), _text(_c.run_output, handle), error, found
    finally:
        _c.run_free(handle)


def _keywords(keywords):
    """Names, kinds and values for the library; None if the command line must read them."""
    parts = []
    for name, value in keywords.items():
        if value is None or value is False:
            continue
        kind = type(value)
        if value is True:
            parts += (name, "t", "")
        elif kind is str:
            parts += (name, "s", value)
        elif kind is int:
            parts += (name, "i", str(value))
        elif kind is float and math.isfinite(value):
            parts += (name, "f", repr(value))
        elif (kind is list or kind is tuple) and all(type(one) is str for one in value):
            for one in value:
                parts += (name, "l", one)
        else:
            return None
    parts.append("")
    text = "\0".join(parts)
    if text.count("\0") != len(parts) - 1:
        return None
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


_FourNumbers = c_double * 4


def predict_timed(keywords):
    """For benchmarks: the forecast with the microseconds that the session took."""
    if not isinstance(keywords, dict):
        raise TypeError("expected a dict")
    given = _keywords(keywords)
    if given is None:
        return None, 0.0
    numbers = _FourNumbers()
    handle = _c.predict(given, len(given), numbers)
    return (None if handle is None else Forecast._of(handle, numbers)), numbers[3]


def predict(keywords):
    return predict_timed(keywords)[0]


def read_forecast(json):
    given = json.encode() if isinstance(json, str) else _plain(json)
    numbers = _FourNumbers()
    handle = _c.forecast_new(given, len(given), numbers)
    if handle is None:
        raise ValueError(_problem())
    return Forecast._of(handle, numbers)


def sweep_points(text, name, folder):
    points = _bytes(_c.sweep_points, _plain(text), _plain(name), _plain(folder))
    if points is None:
        raise ValueError(_problem())
    return points.decode().split("\0")[:-1]


def sweep_rows(lines, folder, stop=None):
    """The rows of sweep points, in one session. Signals are handled between points."""
    if not isinstance(lines, (list, tuple)):
        raise TypeError("expected a list of texts")
    place, rows, kind = _plain(folder), [], c_int()
    session = _c.session_new()
    try:
        for line in lines:
            found = _bytes(_c.sweep_rows, session, _plain(line), place, None if stop is None else stop._handle, byref(kind))
            if found is None:
                raise (ValueError if kind.value == 2 else RuntimeError)(_problem())
            rows += found.decode().split("\0")[:-1]
    finally:
        _c.session_free(session)
    return rows


class _Owner:
    """Owner of a library object, which it frees."""

    __slots__ = ("_handle",)
    _free = None

    def __init__(self):
        raise TypeError(f"{type(self).__name__} is made by the library")

    @classmethod
    def _of(cls, handle):
        made = cls.__new__(cls)
        made._handle = handle
        return made

    def __del__(self):
        handle = getattr(self, "_handle", None)
        if handle is not None:
            type(self)._free(handle)


class Stop(_Owner):
    __slots__ = ()
    _free = _c.stop_free

    def __init__(self):
        self._handle = _c.stop_new()

    def request(self):
        _c.stop_request(self._handle)


class Forecast(_Owner):
    __slots__ = ("step_time_ms", "step_time_p10_ms", "step_time_p90_ms")
    _free = _c.forecast_free

    @classmethod
    def _of(cls, handle, numbers):
        made = cls.__new__(cls)
        made._handle = handle
        made.step_time_ms, made.step_time_p10_ms, made.step_time_p90_ms = numbers[0], numbers[1], numbers[2]
        return made

    def _written(self, kind):
        text = _text(_c.forecast_text, self._handle, ord(kind))
        if text is None:
            raise InputError(_problem())
        return text

    def json(self):
        return self._written("j")

    def text(self):
        return self._written("t")

    def html(self):
        return self._written("h")


_KINDS = (c_int64, c_double, c_uint8)


class Table(_Owner):
    __slots__ = ("_names",)
    _free = _c.table_free

    @staticmethod
    def from_csv(text):
        given = text.encode() if isinstance(text, str) else _plain(text)
        return Table._of(_c.table_new(given, len(given)))

    def __len__(self):
        return _c.table_rows(self._handle)

    @property
    def column_names(self):
        names = getattr(self, "_names", None)
        if names is None:
            names = []
            while (name := _text(_c.table_column_name, self._handle, len(names))) is not None:
                names.append(name)
            self._names = names
        return list(names)

    def column(self, name):
        """The values as a list; None for missing values."""
        try:
            column = self.column_names.index(name)
        except ValueError:
            raise KeyError(name) from None
        n, at, valid = len(self), c_void_p(), POINTER(c_uint8)()
        kind = _c.table_column(self._handle, column, byref(at), byref(valid))
        if n == 0:
            return []
        if kind == 3:
            values = self._texts(column, n)
        else:
            values = list((_KINDS[kind] * n).from_address(at.value))
            if kind == 2:
                values = [value != 0 for value in values]
        there = ctypes.string_at(valid, n)
        return [value if is_there else None for value, is_there in zip(values, there)] if 0 in there else values

    def _texts(self, column, n):
        ends, size = POINTER(c_int64)(), c_size_t()
        at = _c.table_texts(self._handle, column, byref(ends), byref(size))
        text = ctypes.string_at(at, size.value)
        places = [0, *(c_int64 * n).from_address(ctypes.addressof(ends.contents))]
        return [text[places[i] : places[i + 1]].decode("utf-8", "replace") for i in range(n)]

    def csv(self):
        return _text(_c.table_csv, self._handle)

    def __arrow_c_schema__(self):
        return _new_capsule(_c.table_schema_new(self._handle), b"arrow_schema", _FREE_SCHEMA)

    def __arrow_c_stream__(self, requested_schema=None):
        return _new_capsule(_c.table_stream_new(self._handle), b"arrow_array_stream", _FREE_STREAM)


_FREE_SCHEMA = ctypes.cast(_LIBRARY.stepcast_free_schema_capsule, c_void_p)
_FREE_STREAM = ctypes.cast(_LIBRARY.stepcast_free_stream_capsule, c_void_p)
