"""Modules of the program: what is done when one is imported, and those that are here only where the real package is not."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from typing import Any, Callable, Dict


class Imports(importlib.abc.MetaPathFinder):
    """Calls back after a module was imported."""

    def __init__(self) -> None:
        self._after: Dict[str, Callable[[Any], None]] = {}
        sys.meta_path.insert(0, self)

    def after(self, name: str, call: Callable[[Any], None]) -> None:
        if name in sys.modules:
            call(sys.modules[name])
        else:
            self._after[name] = call

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        call = self._after.pop(name, None)
        if call is None:
            return None
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            call(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
