#!/usr/bin/env python3
"""Runs the commands of docs/questions.md and holds what stands below each against what it prints.

    docs/questions.py --check STEPCAST      exit code 1 and the differences where the page is out of date
    docs/questions.py --write STEPCAST      writes the page anew (./dev docs does)

A block is ```console, a line `$ COMMAND` (a pipe of stepcast and of head, tail, grep, sed) and the output. Words have to be
the same; numbers may differ by one in a hundred, as compilers round differently. Commands run in the root of the checkout
and leave nothing behind: what they write goes to a folder that is named $OUT. Those that name $STEPCAST_DATA are left as
they stand where it is not set."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).with_name("questions.md")
ROOT = PAGE.parent.parent
BLOCK = re.compile(r"(```console\n)(\$ (?:.*\\\n)*.*\n)((?:(?!\$ |```).*\n)*)(```\n)")
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def output_of(command, program, folder):
    tools = pathlib.Path(folder) / "bin"
    tools.mkdir(exist_ok=True)
    link = tools / "stepcast"
    if not link.exists():
        link.symlink_to(program)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "OUT": folder, "LC_ALL": "C.UTF-8"}
    run = subprocess.run(["bash", "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
    text = (run.stdout + run.stderr).replace(folder, "$OUT")
    if os.environ.get("STEPCAST_DATA"):
        text = text.replace(os.environ["STEPCAST_DATA"], "$STEPCAST_DATA")
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def differs(written, printed):
    """What is different in a line of both; nothing where numbers alone moved a little."""
    if NUMBER.sub("#", written).split() != NUMBER.sub("#", printed).split():
        return True
    pairs = zip(NUMBER.findall(written), NUMBER.findall(printed))
    values = [(float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in pairs]
    return any(abs(a - b) > 0.01 * max(abs(a), abs(b)) + 0.11 for a, b in values)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("--check", "--write"):
        sys.exit(__doc__)
    program = pathlib.Path(sys.argv[2]).resolve()
    page = PAGE.read_text()
    problems, blocks = [], 0
    with tempfile.TemporaryDirectory() as folder:

        def again(match):
            nonlocal blocks
            blocks += 1
            begin, command, written, end = match.groups()
            if "$STEPCAST_DATA" in command and not os.environ.get("STEPCAST_DATA"):
                print(f"not run, as STEPCAST_DATA is not set: {command}", end="")
                return match.group()
            line = command[2:].replace("\\\n", " ")
            printed = output_of(line, program, folder)
            before, now = written.splitlines(), printed.splitlines()
            bad = len(before) != len(now) or any(differs(a, b) for a, b in zip(before, now))
            if bad:
                problems.append(f"$ {line.strip()}\nwritten:\n{written}printed:\n{printed}")
            return begin + command + printed + end

        rewritten = BLOCK.sub(again, page)
    if page.count("```console") != blocks:
        sys.exit(f"{PAGE}: {page.count('```console')} blocks, of which {blocks} could be read")
    if sys.argv[1] == "--write":
        PAGE.write_text(rewritten)
        print(f"{blocks} commands, {len(problems)} of them print something else now")
        return
    for problem in problems:
        print(problem)
    if problems:
        sys.exit(f"docs/questions.md is out of date in {len(problems)} of {blocks} places: ./dev docs writes it anew")


main()
