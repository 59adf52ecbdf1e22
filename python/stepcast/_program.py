"""The command `stepcast`: runs the program of the package. `capture`, `collect` and `serve` are verbs written in Python."""

import os
import subprocess
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "stepcast")


_PYTHON_VERBS = """
Verbs of the Python package:
  capture                     record a few steps of a training, without change of its code
  collect                     measure a GPU with PyTorch
  serve                       ask and see answers in a browser
"""


def main():
    words = sys.argv[1:]
    if words in (["--help"], ["-h"], ["help"]):
        code = subprocess.run([PROGRAM, "--help"], check=False).returncode
        print(_PYTHON_VERBS, end="")
        return code
    if words[:1] == ["capture"]:
        from stepcast.recording import main as capture

        return capture(words[1:])
    if words[:1] == ["collect"]:
        from stepcast.collect.__main__ import main as collect

        return collect(words[1:])
    if words[:1] == ["serve"]:
        from stepcast.serve import main as serve

        return serve(words[1:])
    try:
        os.execv(PROGRAM, ["stepcast", *words])
    except OSError as problem:
        print(f"stepcast: error: {PROGRAM}: {problem.strerror}; reinstall the package", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
