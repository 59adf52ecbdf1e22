"""Runs a function of a notebook: writes it with its objects to a file, and calls it in a process with simulated CUDA.

As a program, `function.py FILE` calls it until its step is recorded.
"""

from __future__ import annotations

import ctypes
import inspect
import io
import linecache
import os
import pickle
import sys
import types
from typing import Any, Callable, Dict, Optional, Set

_LARGE = 1 << 20  # bytes of a floating-point tensor with values that are not written, because they have no effect


class FunctionError(Exception):
    """An error as one line for the user."""


def storage(size: int, contents: Optional[bytes]) -> Any:
    """The storage of a CPU tensor."""
    import torch

    out = torch.UntypedStorage(size)
    if contents is None:
        out._stepcast_hollow = True
    else:
        ctypes.memmove(out.data_ptr(), contents, size)
    return out


def typed(untyped: Any, dtype: Any) -> Any:
    import torch

    return torch.storage.TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


def code(file: str, make: Any, parts: Any) -> Any:
    """The code with the name of its cell, for tracebacks."""
    return make(*parts).replace(co_filename=file)


def _dumps(what: Any) -> bytes:
    import cloudpickle

    torch: Any = sys.modules.get("torch")

    class Pickler(cloudpickle.CloudPickler):
        hollow: Set[int] = set()  # addresses of storages without contents

        def reducer_override(self, obj: Any) -> Any:
            if torch is not None and isinstance(obj, torch.Tensor) and obj.device.type == "cuda":
                raise FunctionError(f"it holds a tensor on {obj.device}; make it inside, or move it to the CPU first: .cpu()")
            if torch is not None and isinstance(obj, torch.storage.TypedStorage):  # tensors that share a storage keep sharing it
                if obj.dtype.is_floating_point and obj._untyped_storage.nbytes() >= _LARGE:
                    self.hollow.add(obj._untyped_storage._cdata)
                return typed, (obj._untyped_storage, obj.dtype)
            if torch is not None and isinstance(obj, torch.UntypedStorage):
                size = obj.nbytes()
                return storage, (size, None if obj._cdata in self.hollow else ctypes.string_at(obj.data_ptr(), size))
            if isinstance(obj, types.CodeType):
                return code, (obj.co_filename, *self.dispatch_table[types.CodeType](obj))
            return super().reducer_override(obj)

    with io.BytesIO() as out:
        Pickler(out).dump(what)
        return out.getvalue()


def _culprit(function: Callable[[], Any]) -> str:
    """The name of an object in the function that cannot be written."""
    held: Dict[str, Any] = {}
    if inspect.isfunction(function):
        used = inspect.getclosurevars(function)
        held = {**used.globals, **used.nonlocals}
    for name, value in held.items():
        try:
            _dumps(value)
        except Exception:
            return f"`{name}`, which it uses,"
    return "it"


def write(function: Callable[[], Any], path: str) -> None:
    """Raises FunctionError."""
    try:
        import cloudpickle  # noqa: F401
    except ImportError:
        raise FunctionError("a function is run in a process of its own, and cloudpickle, which takes it there, is not installed: "
                            "pip install cloudpickle") from None
    name = getattr(function, "__name__", type(function).__name__)
    try:
        text = _dumps(function)
    except FunctionError as problem:
        raise FunctionError(f"{name}: {problem}") from None
    except Exception as problem:  # an object's reducer may raise anything
        raise FunctionError(f"{name}: {_culprit(function)} cannot be taken to another process ({type(problem).__name__}: {problem}); "
                            "make it inside the function") from None
    # Code of notebook cells is in no file.
    cells = {file: entry for file, entry in linecache.cache.items() if len(entry) == 4 and not os.path.exists(file)}
    with open(path, "wb") as out:
        pickle.dump({"name": name, "path": sys.path, "cells": cells}, out)
        out.write(text)


def main(path: str) -> None:
    from stepcast.dryrun.session import Session

    session = Session.current
    with open(path, "rb") as file:
        about = pickle.load(file)
        sys.path[:] = about["path"]
        linecache.cache.update(about["cells"])
        function = pickle.load(file)
    session.who = f"{about['name']}()"
    session.job["program"]["command"] = [f"stepcast.dryrun({about['name']})"]
    steps = -1
    while steps < session.recorder.steps:  # as long as the function calls an optimizer
        steps = session.recorder.steps
        session.job["calls"] = session.job.get("calls", 0) + 1
        function()
        session.next_call()


if __name__ == "__main__":
    main(sys.argv[1])
