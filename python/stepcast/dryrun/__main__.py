"""`python -m stepcast.dryrun record`: started by the verb `stepcast dryrun`, which forecasts the folder that this writes."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import sys
from typing import Dict, List, NoReturn

if __package__ in (None, ""):  # started by its path
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from stepcast.dryrun.launch import DryRunError, Gpu, Options, dry_run


def _guess(text: str) -> Dict[str, float]:
    name, _, value = text.partition("=")
    if name != "nonzero":
        raise argparse.ArgumentTypeError(f"unknown guess {name!r}; known: nonzero=SHARE")
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"nonzero={value} is not a share between 0 and 1")
    return {name: share}


_CAPABILITIES = {"pascal": 60, "volta": 70, "turing": 75, "ampere": 80, "ada": 89, "hopper": 90, "blackwell": 100}


def capability_of(architecture: str, device: str) -> int:
    """CUDA's compute capability, 90 for 9.0: from the architecture, and from the device if an architecture has several."""
    if architecture == "ampere" and not any(n in device for n in ("A100", "A30", "A800")):
        return 86
    if architecture == "blackwell" and "RTX" in device:
        return 120
    if architecture == "blackwell" and "B300" in device:
        return 103
    return _CAPABILITIES.get(architecture.split("_")[0].split()[0] if architecture else "", 90)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"stepcast: error: {message}", file=sys.stderr)
        sys.exit(2)


def main(words: List[str]) -> int:
    parser = _Parser(prog="stepcast dryrun")
    parser.add_argument("record")
    parser.add_argument("--out", required=True)
    parser.add_argument("--at", type=int)
    for name, otherwise in (("gpus", 1), ("platform", ""), ("device-name", "NVIDIA H100 80GB HBM3"), ("memory-bytes", 80 << 30), ("sms", 132),
                            ("architecture", "hopper"), ("l2-bytes", 50 << 20), ("gpus-per-node", 8), ("timeout", 900.0)):
        parser.add_argument(f"--{name}", type=type(otherwise), default=otherwise)
    parser.add_argument("--keep-going", action="store_true")
    ways = parser.add_mutually_exclusive_group()
    for way in ("eager", "compiled"):
        ways.add_argument(f"--{way}", dest="compile", action="store_const", const=way)
    parser.add_argument("--guess", type=_guess, default={})
    parser.add_argument("--summary", help="file to write the classes of ranks to, as JSON")
    at = words.index("--") if "--" in words else len(words)
    given, command = parser.parse_args(words[:at]), words[at + 1:]
    options = Options(gpus=given.gpus, platform=given.platform, out=given.out, at=given.at, timeout_s=given.timeout, keep_going=given.keep_going,
                      guess=given.guess, compile=given.compile)
    gpu = Gpu(given.device_name, given.memory_bytes, given.sms, capability_of(given.architecture, given.device_name), given.l2_bytes,
              max(given.gpus_per_node, 1))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG: this process ends with its parent, however that ends
    try:
        classes = dry_run(command, options, gpu)
    except DryRunError as problem:
        print(f"stepcast: error: {problem}", file=sys.stderr)
        if problem.below:
            print("\n".join("  " + line for line in problem.below.rstrip().splitlines()), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stepcast: stopped", file=sys.stderr)
        return 130
    if given.summary:
        with open(given.summary, "w", encoding="utf-8") as file:
            json.dump(classes, file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
