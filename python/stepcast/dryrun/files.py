"""Files with weights. Large files are not read, because their values have no effect, and none are written."""

from __future__ import annotations

import os
import zipfile
from typing import Any, Callable, Dict

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_map_only

from stepcast.dryrun.mode import leave_out

_LARGE = 1 << 28  # files of at least this many bytes are mapped instead of read


def _is_gpu(device: Any) -> bool:
    return isinstance(device, int) and not isinstance(device, bool) or str(device).startswith("cuda")


def _placed(tensor: torch.Tensor, device: Any) -> torch.Tensor:
    tensor = leave_out(tensor)
    return tensor.to(device if not isinstance(device, int) else f"cuda:{device}") if _is_gpu(device) else tensor


def on_safetensors(module: Any) -> None:
    """Maps safetensors files: their tensors have shapes and need no memory."""
    plain = module.safe_open

    class Slice:
        def __init__(self, inner: Any, device: Any) -> None:
            self._inner, self._device = inner, device

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def __getitem__(self, at: Any) -> torch.Tensor:
            return _placed(self._inner[at], self._device)

    class safe_open:
        """Replaces safetensors.safe_open."""

        def __init__(self, filename: Any, framework: str = "pt", device: Any = "cpu", **more: Any) -> None:
            self._device = device if framework in ("pt", "torch", "pytorch") else None
            self._file = plain(filename, framework, device="cpu", **more)

        def __enter__(self) -> Any:
            self._file.__enter__()
            return self

        def __exit__(self, *error: Any) -> Any:
            return self._file.__exit__(*error)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

        def get_tensor(self, name: str) -> Any:
            tensor = self._file.get_tensor(name)
            return tensor if self._device is None else _placed(tensor, self._device)

        def get_tensors(self) -> Any:
            return {name: self.get_tensor(name) for name in self._file.keys()}

        def get_slice(self, name: str) -> Any:
            inner = self._file.get_slice(name)
            return inner if self._device is None else Slice(inner, self._device)

    module.safe_open = safe_open


def on_safetensors_torch(module: Any) -> None:
    plain = module.save_file

    def save_file(tensors: Dict[str, torch.Tensor], filename: Any, metadata: Any = None, **more: Any) -> None:
        """Writes a file without the tensors of the GPU."""
        plain({k: t for k, t in tensors.items() if not isinstance(t, FakeTensor)}, filename, metadata, **more)

    module.save_file = save_file


def install(note: Callable[[str], None]) -> None:
    load, save = torch.load, torch.save

    def dry_load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        on_gpu: Dict[int, str] = {}  # storages of GPU tensors

        def place(storage: Any, location: str) -> Any:
            wanted = map_location
            if isinstance(map_location, dict):
                wanted = map_location.get(location, location)
            elif callable(map_location) and not isinstance(map_location, (str, torch.device)):
                storage, wanted = map_location(storage, location) or storage, location
                wanted = storage.device
            elif map_location is None:
                wanted = location
            if _is_gpu(wanted):
                on_gpu[storage._cdata] = "cuda" if str(wanted) == "cuda" else str(torch.device(wanted))
            return storage

        if isinstance(f, (str, os.PathLike)) and os.path.getsize(f) > _LARGE and zipfile.is_zipfile(f):
            kwargs["mmap"] = True
        out = load(f, place, *args, **kwargs)
        return tree_map_only(torch.Tensor, lambda t: t if isinstance(t, FakeTensor) else
                             _placed(t, on_gpu.get(t.untyped_storage()._cdata)), out)

    def dry_save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        note("torch.save writes shapes: tensors of the GPU have no values")
        save(tree_map_only(FakeTensor, lambda t: torch.zeros((), dtype=t.dtype).expand(t.shape), obj), f, *args, **kwargs)

    torch.load, torch.save = dry_load, dry_save
