"""Information of the NVIDIA driver about a GPU, without packages: libcuda through ctypes, clocks from nvidia-smi."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from typing import Dict, Optional

# CUdevice_attribute of cuda.h.
_ATTRIBUTES = {"clock_kHz": 13, "memory_clock_kHz": 36, "memory_bus_bits": 37, "l2_bytes": 38}

_SMI_FIELDS = {"driver": "driver_version", "sm_clock_MHz": "clocks.sm", "memory_clock_MHz": "clocks.mem",
               "max_sm_clock_MHz": "clocks.max.sm", "power_W": "power.draw", "power_limit_W": "power.limit",
               "temperature_C": "temperature.gpu", "ecc": "ecc.mode.current", "pcie_generation": "pcie.link.gen.max",
               "pcie_lanes": "pcie.link.width.max", "uuid": "uuid"}


def attributes(index: int) -> Dict[str, int]:
    """Attributes of GPU `index` in CUDA's order; empty without a driver."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return {}
    device, value, found = ctypes.c_int(), ctypes.c_int(), {}
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGet(ctypes.byref(device), index) != 0:
        return {}
    for name, number in _ATTRIBUTES.items():
        if cuda.cuDeviceGetAttribute(ctypes.byref(value), number, device) == 0 and value.value > 0:
            found[name] = value.value
    return found


def memory_bandwidth_GBps(found: Dict[str, int]) -> Optional[float]:
    """Nominal bandwidth from memory clock and bus width, with two transfers per clock as in HBM and GDDR."""
    if "memory_clock_kHz" not in found or "memory_bus_bits" not in found:
        return None
    return 2 * found["memory_clock_kHz"] * 1e3 * found["memory_bus_bits"] / 8 / 1e9


def smi(uuid_or_index: str) -> Dict[str, str]:
    """Clocks, power and driver of one GPU; empty if nvidia-smi is missing or fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    query = [program, f"--id={uuid_or_index}", f"--query-gpu={','.join(_SMI_FIELDS.values())}",
             "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    cells = [cell.strip() for cell in answer.strip().split("\n")[0].split(",")]
    return {name: cell for name, cell in zip(_SMI_FIELDS, cells) if not cell.startswith("[")}
