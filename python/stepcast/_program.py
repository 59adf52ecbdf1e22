"""The command `stepcast`: the program that came with the package; `capture` and `collect` are its Python verbs."""

import os
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "stepcast")


def main():
    words = sys.argv[1:]
    if words[:1] == ["capture"]:
        from stepcast.recording import main as capture

        return capture(words[1:])
    if words[:1] == ["collect"]:
        from stepcast.collect.__main__ import main as collect

        return collect(words[1:])
    try:
        os.execv(PROGRAM, ["stepcast", *words])
    except OSError as problem:
        print(f"stepcast: error: {PROGRAM}: {problem.strerror}; reinstall the package", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
