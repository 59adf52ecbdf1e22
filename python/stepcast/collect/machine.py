"""The measured device, and the facts that are needed to interpret the numbers later."""

from __future__ import annotations

import datetime
import os
import platform as host_platform
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Optional

import torch

from stepcast.collect import driver
from stepcast.collect.skip import Skip


@dataclass
class Machine:
    """One device of one host. Sizes in bytes, clocks in MHz."""

    device: torch.device
    name: str  # the name in PyTorch: "NVIDIA H200"
    software: str  # "PyTorch 2.7.1 CUDA 12.6 driver 570.86"; without commas
    memory_bytes: int
    l2_bytes: int
    sm_count: int
    capability: str = ""  # "9.0"
    attributes: Dict[str, int] = field(default_factory=dict)  # of the driver
    smi_id: str = ""

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def slug(self) -> str:
        """The name as part of a file name: `nvidia-h200`."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    def free_bytes(self) -> int:
        """Free memory of the device in bytes."""
        if self.is_cuda:
            free, _ = torch.cuda.mem_get_info(self.device)
            return free + torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return _host_memory_bytes("MemAvailable")

    def require_memory(self, n_bytes: float, share: float = 0.8) -> None:
        """Raises Skip if `n_bytes` exceed the fraction `share` of the free memory."""
        free = self.free_bytes()
        if n_bytes > share * free:
            raise Skip(f"needs {n_bytes / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are free")

    def clocks(self) -> Dict[str, str]:
        """Current clocks, power and temperature; empty if the driver does not report them."""
        return driver.smi(self.smi_id) if self.is_cuda else {}


def open_machine(device_text: str) -> Machine:
    """The device `cuda`, `cuda:1` or `cpu`. Raises ValueError with one line if it cannot be used."""
    device = torch.device(device_text)
    if device.type == "cpu":
        # One thread: several threads on busy cores would wait for each other, and the times would be useless.
        torch.set_num_threads(1)
        model = _cpu_field("model name") or host_platform.machine()
        return Machine(device, f"CPU {_plain(model)}", _software(""), _host_memory_bytes("MemTotal"),
                       _cpu_cache_bytes(), torch.get_num_threads())
    if device.type != "cuda":
        raise ValueError(f"--device {device_text}: expected cuda, cuda:N or cpu")
    if not torch.cuda.is_available():
        raise ValueError("PyTorch finds no CUDA device: check the driver (nvidia-smi) and that this PyTorch was built "
                         "with CUDA, or measure the host with --device cpu")
    index = torch.cuda.current_device() if device.index is None else device.index
    device = torch.device("cuda", index)
    torch.cuda.set_device(device)
    properties = torch.cuda.get_device_properties(device)
    attributes = driver.attributes(index)
    uuid = getattr(properties, "uuid", None)
    smi_id = f"GPU-{uuid}" if uuid else _visible(index)
    answered = driver.smi(smi_id)
    l2_bytes = attributes.get("l2_bytes", getattr(properties, "L2_cache_size", 0))
    return Machine(device, _plain(properties.name), _software(answered.get("driver", "")), properties.total_memory,
                   l2_bytes, properties.multi_processor_count, f"{properties.major}.{properties.minor}", attributes,
                   smi_id)


def environment(machine: Machine, settings: Dict[str, Any]) -> Dict[str, Any]:
    """The content of environment.json: hardware, software, date and settings of a run."""
    libraries: Dict[str, Any] = {}
    for name in ("transformers", "torchvision", "triton", "numpy"):
        try:
            libraries[name] = __import__(name).__version__
        except Exception:  # a broken optional package counts as missing
            libraries[name] = None
    return {
        "date": datetime.date.today().isoformat(),
        "gpu": machine.name, "device": str(machine.device), "compute_capability": machine.capability or None,
        "sm_count": machine.sm_count, "memory_GiB": round(machine.memory_bytes / 2**30, 3),
        "l2_MiB": round(machine.l2_bytes / 2**20, 3), "driver_attributes": machine.attributes,
        "clocks_at_start": {k: v for k, v in machine.clocks().items() if k != "uuid"},
        "software": machine.software, "pytorch": torch.__version__, "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if machine.is_cuda else None, "python": sys.version.split()[0],
        "libraries": libraries, "system": f"{host_platform.system()} {host_platform.release()}",
        "cpu": _cpu_field("model name"), "cpu_cores": os.cpu_count(), "cpu_threads": torch.get_num_threads(),
        "settings": settings,
    }


def _software(driver_version: str) -> str:
    text = f"PyTorch {torch.__version__}"
    if torch.version.cuda:
        text += f" CUDA {torch.version.cuda}"
    return text + (f" driver {driver_version}" if driver_version else "")


def _visible(index: int) -> str:
    """The name for nvidia-smi of CUDA device `index`, which CUDA_VISIBLE_DEVICES may have renumbered."""
    names = [n.strip() for n in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if n.strip()]
    return names[index] if index < len(names) else str(index)


def _plain(name: str) -> str:
    """The text without characters that CSV would have to quote."""
    return re.sub(r"\s+", " ", re.sub(r"[^A-Za-z0-9 ._/()+-]", " ", name)).strip()


def _cpu_field(name: str) -> Optional[str]:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith(name):
                return line.split(":", 1)[1].strip()
    except (OSError, IndexError):
        pass
    return None


def _cpu_cache_bytes() -> int:
    """Size of the last-level cache of the first core; 0 if the system does not report it."""
    largest = 0
    for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = file.read_text(encoding="utf-8").strip()
        scale = {"K": 2**10, "M": 2**20}.get(text[-1:], 1)
        digits = text.rstrip("KM")
        largest = max(largest, int(digits) * scale if digits.isdigit() else 0)
    return largest


def _host_memory_bytes(name: str) -> int:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 4 << 30
