"""platform.json: the device as measured, in the form that stepcast reads (docs/platform-file.md)."""

from __future__ import annotations

import csv
import datetime
from pathlib import Path
from typing import Any, Dict

from stepcast.collect import driver
from stepcast.collect.files import write_json
from stepcast.collect.machine import Machine

_ARCHITECTURES = {"6": "pascal", "7.0": "volta", "7.2": "volta", "7.5": "turing", "8.0": "ampere", "8.6": "ampere",
                  "8.7": "ampere", "8.9": "ada", "9": "hopper", "10": "blackwell", "12": "blackwell"}


def write_platform_skeleton(out: Path, machine: Machine) -> None:
    """Writes it from rates.csv and kernels.csv in `out`, if they exist. Rates are the largest measured ones."""
    rates = {row["quantity"]: float(row["value"]) for row in _rows(out / "rates.csv")}
    nominal_GBps = driver.memory_bandwidth_GBps(machine.attributes)
    copy_GBps = rates.get("copy_GBps", 0.0)
    if not nominal_GBps:
        copy_GBps = max([copy_GBps] + [_moved_GBps(row) for row in _rows(out / "kernels.csv")])
    sources: Dict[str, str] = {"default": "driver"}
    device: Dict[str, Any] = {
        "name": machine.name, "vendor": "NVIDIA" if machine.is_cuda else "CPU", "architecture": _architecture(machine),
        "memory_GiB": round(machine.memory_bytes / 2**30, 3), "sm_count": machine.sm_count,
    }
    if copy_GBps > 0 or nominal_GBps:
        # The nominal figure is the bound. If it is unknown, the rate of the copy is used.
        device["memory_bandwidth_GBps"] = round(max(nominal_GBps or 0.0, copy_GBps), 1)
        if not nominal_GBps or copy_GBps > nominal_GBps:
            sources["memory_bandwidth_GBps"] = "measured"
    if machine.l2_bytes > 0:
        device["l2_MiB"] = round(machine.l2_bytes / 2**20, 3)
    if "clock_kHz" in machine.attributes:
        device["clock_MHz"] = machine.attributes["clock_kHz"] / 1000
    limit = machine.clocks().get("power_limit_W", "")
    if limit.replace(".", "", 1).isdigit():
        device["power_limit_W"] = float(limit)
    for dtype, rate in _matrix_rates(out, rates).items():
        device[f"peak_{dtype}_TFLOPs"] = float(f"{rate:.4g}")
        sources[f"peak_{dtype}_TFLOPs"] = "measured"
    link = max(rates.get("host_link_h2d_GBps", 0.0), rates.get("host_link_d2h_GBps", 0.0))
    for key, value in (("host_link_bandwidth_GBps", link), ("kernel_floor_us", rates.get("kernel_floor_us", 0.0)),
                       ("launch_overhead_us", _launch_us(out))):
        if value > 0:
            device[key] = float(f"{value:.4g}")
            sources[key] = "measured"
    device["sources"] = sources
    today = datetime.date.today().isoformat()
    copy_text = f"; a copy reads and writes {copy_GBps:.1f} GB/s" if copy_GBps > 0 else ""
    write_json(out / "platform.json", {
        "stepcast_platform": 1, "name": machine.slug,
        "description": f"{machine.name} as measured by stepcast.collect: a skeleton, to be calibrated",
        "documents": {
            "measured": {"source": "measured", "date": today, "software": machine.software,
                         "document": "largest rates measured by stepcast.collect, not data-sheet figures" + copy_text},
            "driver": {"source": "measured", "date": today, "software": machine.software,
                       "document": "as driver and operating system report it"},
        },
        "device": device, "node": {"gpus_per_node": 1},
    })


def _architecture(machine: Machine) -> str:
    if not machine.is_cuda:
        return "cpu"
    major = machine.capability.split(".")[0]
    return _ARCHITECTURES.get(machine.capability, _ARCHITECTURES.get(major, f"sm_{machine.capability}"))


def _matrix_rates(out: Path, rates: Dict[str, float]) -> Dict[str, float]:
    """TFLOP/s by element type: the best of the square GEMMs and of all measured shapes."""
    best = {dtype: rates[f"gemm_{dtype}_TFLOPs"] for dtype in ("fp32", "tf32", "fp16", "bf16")
            if rates.get(f"gemm_{dtype}_TFLOPs", 0) > 0}
    for row in _rows(out / "kernels.csv"):
        if row["op"] in ("gemm", "bmm"):
            flops = 2.0 * float(row["m"]) * float(row["n"]) * float(row["k"]) * float(row["batch"] or 1)
            rate = flops / float(row["time_us"]) / 1e6
            if rate > best.get(row["dtype"], 0.0) and (row["dtype"] in best or row["dtype"] == "fp8"):
                best[row["dtype"]] = rate
    return best


def _moved_GBps(row: Dict[str, str]) -> float:
    """Rate of a sum of two tensors or of a copy, in 1e9 bytes per second; 0 for other rows."""
    tensors = {"add": 3, "copy": 2}.get(row["op"], 0) if row["dtype"] == "fp32" else 0
    return tensors * 4.0 * float(row["rows"] or 0) * float(row["cols"] or 0) / float(row["time_us"]) / 1e3


def _launch_us(out: Path) -> float:
    for row in _rows(out / "overheads.csv"):
        if row["quantity"] == "launch_to_kernel_start":
            return float(row["time_us"])
    return 0.0


def _rows(file: Path) -> "list[Dict[str, str]]":
    if not file.is_file():
        return []
    with open(file, newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))
