"""The process that runs the user's program for one rank. launch.py starts it by its path, so that only this package is added to
what the program sees."""

import ctypes
import json
import os
import runpy
import sys
import traceback

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_program(program: dict) -> None:
    sys.argv = [program["script"], *program["arguments"]]
    if program.get("module"):
        sys.path[0] = os.getcwd()
        runpy.run_module(program["script"], run_name="__main__", alter_sys=True)
        return
    sys.path[0] = os.path.dirname(os.path.abspath(program["script"]))
    runpy.run_path(program["script"], run_name="__main__")


def _own_error(error: BaseException) -> str:
    """The program's error without the stack frames of this package."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_HERE) and f.filename != "<frozen runpy>"]
    text = "".join(traceback.format_list(frames[-6:]))
    return "Traceback (most recent call last):\n" + text + "".join(traceback.format_exception_only(type(error), error))


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    del os.environ["LD_PRELOAD"]  # only for this process
    if job["preload_before"] is not None:
        os.environ["LD_PRELOAD"] = job["preload_before"]
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: this process ends with launch.py, however that ends
    sys.path.insert(0, os.path.dirname(os.path.dirname(_HERE)))
    from stepcast.dryrun.session import Session

    sys.path.pop(0)
    session = Session(job)
    error = None
    session.start()
    try:
        _run_program(job["program"])
    except SystemExit as end:
        if end.code not in (None, 0):
            error = end.code if isinstance(end.code, str) else f"exit code {end.code}"
    except KeyboardInterrupt:
        os._exit(130)
    except BaseException as problem:  # the program did not catch it
        error = _own_error(problem)
    session.finish(error)


if __name__ == "__main__":
    main()
