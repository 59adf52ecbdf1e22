"""The command line: python -m stepcast.collect kernels|steps|overheads|all --out DIR."""

from __future__ import annotations

import argparse
import signal
import sys
import warnings
from pathlib import Path
from typing import List, Optional

import torch

from stepcast.collect.device_rates import run_device_rates
from stepcast.collect.files import write_json
from stepcast.collect.kernels.case import Bench, Scope
from stepcast.collect.machine import Machine, environment, open_machine
from stepcast.collect.measure_kernels import run_kernels
from stepcast.collect.measure_overheads import run_overheads
from stepcast.collect.measure_steps import run_steps
from stepcast.collect.platform_skeleton import write_platform_skeleton
from stepcast.collect.progress import State, StateError, duration_text
from stepcast.collect.run import DeviceIsLost, Run, TimeIsUp
from stepcast.collect.timing import Timer

DONE, BAD_INPUT, CALL_AGAIN, INTERRUPTED = 0, 2, 3, 130

_DESCRIPTION = """Measures a device for stepcast: kernel times, training steps, host overheads, traces.

A call ends after --time-limit seconds at the latest; call it again with --resume until it says that all is done.
Exit code 0: done; 2: bad input, one line says why; 3: time is up, call again with --resume."""


def parse(arguments: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m stepcast.collect", description=_DESCRIPTION,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("kernels", "steps", "overheads", "all"))
    parser.add_argument("--out", type=Path, required=True, help="folder for all files")
    parser.add_argument("--quick", action="store_true", help="a sixth of the kernels, one size of each model: 3 minutes")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:N or cpu (default: %(default)s)")
    parser.add_argument("--time-limit", type=float, default=460, metavar="SECONDS",
                        help="end before this, to be resumed (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of shapes and indices (default: %(default)s)")
    return parser.parse_args(arguments)


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs one call and returns its exit code."""
    options = parse(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    warnings.filterwarnings("ignore")  # PyTorch's warnings about implementations that do not fit; these cases are reported
    try:
        machine = open_machine(options.device)
        return _collect(options, machine)
    except (StateError, ValueError, OSError) as error:
        print(f"stepcast.collect: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("stepcast.collect: interrupted; go on with --resume", file=sys.stderr)
        return INTERRUPTED


def _collect(options: argparse.Namespace, machine: Machine) -> int:
    scope = Scope(options.seed, options.quick, not machine.is_cuda)
    settings = {"seed": options.seed, "quick": options.quick, "device": machine.name, "pytorch": torch.__version__}
    state = State.open(options.out, settings, options.resume)
    options.out.mkdir(parents=True, exist_ok=True)
    if not state.done:
        write_json(options.out / "environment.json", environment(machine, settings))
    if machine.is_cuda:
        # fp32 means fp32: TF32 is measured under its own name.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
    run = Run(options.out, machine, state, options.time_limit)
    bench = Bench(machine, Timer(machine.device, machine.l2_bytes), scope.effort)
    code = DONE
    try:
        run_device_rates(run, scope, bench)
        if options.what in ("kernels", "all"):
            run_kernels(run, scope, bench)
        if options.what in ("overheads", "all"):
            run_overheads(run, scope, bench)
        if options.what in ("steps", "all"):
            del bench  # its buffers use memory that the models need
            run_steps(run, scope)
    except TimeIsUp:
        code = CALL_AGAIN
    except DeviceIsLost as error:
        print(f"stepcast.collect: the device is lost in {error}", file=sys.stderr)
        code = CALL_AGAIN
    if code == DONE or not (options.out / "platform.json").exists():
        write_platform_skeleton(options.out, machine)
    _summarize(run, code)
    return code


def _summarize(run: Run, code: int) -> None:
    measured = sum(1 for reason in run.state.done.values() if not reason)
    print(f"{measured} cases measured in {duration_text(sum(run.state.seconds.values()))}, "
          f"{len(run.state.done) - measured} skipped; files in {run.out}")
    for what, n in sorted(run.skipped().items()):
        print(f"  skipped {n}: {what}")
    if code == CALL_AGAIN:
        print("not done: call again with --resume")


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
