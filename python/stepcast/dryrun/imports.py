"""Import hooks: actions after a module was imported, and replacements for packages that are not installed."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
from typing import Any, Callable, Dict, Iterator, Optional

_EXTENSIONS = ("flash_attn", "xformers", "apex", "amp_C", "transformer_engine", "bitsandbytes")
_ALWAYS = ("flash_attn",)  # libraries check for it, and use it only if the program asks for it


class Imports(importlib.abc.MetaPathFinder):
    """An import finder that comes before all others."""

    def __init__(self, launched: Callable[..., None]) -> None:
        self._after: Dict[str, Callable[[Any], None]] = {}
        self._launched = launched
        self._looking = False
        sys.meta_path.insert(0, self)

    def after(self, name: str, call: Callable[[Any], None]) -> None:
        """Calls `call` with the module after its import."""
        if name in sys.modules:
            call(sys.modules[name])
        else:
            self._after[name] = call

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        package = name.partition(".")[0]
        if package in _EXTENSIONS and not self._looking:
            return self._extension(name, package)
        call = self._after.pop(name, None)
        spec = importlib.util.find_spec(name) if call is not None else None
        if call is None or spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            call(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def _real(self, package: str) -> bool:
        self._looking = True
        try:
            spec = importlib.util.find_spec(package)
            return spec is not None and not isinstance(spec.loader, _Loader)
        except ValueError:  # a module in sys.modules without a spec
            return True
        finally:
            self._looking = False

    def _extension(self, name: str, package: str) -> Any:
        if self._real(package) or package not in sys.modules and package not in _ALWAYS and _asked_by_library():
            return None
        from stepcast.dryrun import extensions

        extensions.launched = self._launched
        version, modules = extensions.PACKAGES[package]
        names = modules.get(name[len(package) + 1:])
        return None if names is None else importlib.machinery.ModuleSpec(name, _Loader(version, names, package, modules), is_package=True)

    def find_distributions(self, context: Any = None) -> Iterator[importlib.metadata.Distribution]:
        for package in _ALWAYS:
            if getattr(context, "name", None) in (None, package, package.replace("_", "-")) and not self._real(package):
                from stepcast.dryrun import extensions

                yield _Distribution(package, extensions.PACKAGES[package][0])


class _Loader(importlib.abc.Loader):
    def __init__(self, version: str, names: Dict[str, Any], package: str, modules: Dict[str, Any]) -> None:
        self._contents, self._package, self._modules = {"__version__": version, **names}, package, modules

    def exec_module(self, module: Any) -> None:
        def of_module(name: str) -> Any:
            full = f"{module.__name__}.{name}"
            if full[len(self._package) + 1:] in self._modules:
                return importlib.import_module(full)
            raise AttributeError(f"stepcast dryrun has no {full}: install {self._package}, or run the program without it")

        module.__dict__.update(self._contents, __getattr__=of_module)


class _Distribution(importlib.metadata.Distribution):
    def __init__(self, package: str, version: str) -> None:
        self._files = {"METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n", "top_level.txt": package}

    def read_text(self, filename: Any) -> Optional[str]:
        return self._files.get(str(filename))

    def locate_file(self, path: Any) -> Any:
        return path


def _asked_by_library() -> bool:
    """Whether the import comes from an installed package that also works without the extension, not from the program."""
    frame: Any = sys._getframe(2)
    while frame is not None and ("importlib" in frame.f_code.co_filename or frame.f_code.co_filename == __file__):
        frame = frame.f_back
    return frame is not None and "-packages" in frame.f_code.co_filename
