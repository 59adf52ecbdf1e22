#!/usr/bin/env python3
"""Runs the commands of README.md and docs/*.md and compares what stands there with what they print.

    docs/output.py --check STEPCAST [PAGE...]      exit code 1 and the differences where a page is out of date
    docs/output.py --write STEPCAST [PAGE...]      writes the pages anew (./dev docs does)

A block of output is ```console, a line `$ COMMAND` (which may go on behind a backslash), and what it prints. A line
`<!--| FILTER-->` above the block shows a part: what the shell command FILTER leaves of it. Figures of the prose are defined
in a line `<!--$ NAME NAME = COMMAND-->`, where COMMAND reads the whole output of the last block and prints a word for each
name (all that it prints belongs to a single name). They are used as `<!--=NAME-->12.3<!--=-->`. Those of docs/accuracy/ need no
definition: `<!--=SUITE:TEST:OF:COLUMN:DECIMALS-->`. A line `<!--@ FILE-->` above any other block writes it to $OUT/FILE.

A mark `<!--! COMMAND-->` at the end of a paragraph or list item, or on the line below it, is the test of a statement that
something is not supported: COMMAND must end with exit code 2. Several marks may follow each other. Where a command cannot
show it, `<!--! test: FILE:NAME-->` names a test and the file under tests/ or python/tests/ that contains this NAME. --check
reports a paragraph, list item or table row with a word of REFUSAL and without a mark. Marks of a table are below it, one
for each such row.

A row of a table `| TEXT | N | MEAN % | `SUITE:TEST:OF` |` has its figures from docs/accuracy/, too, without mark-up.

Words have to be the same; numbers may differ by a thousandth or by one in the last place, as compilers round differently.
Commands run in bash, in the root of the checkout, and write to a folder that is named $OUT, one for each page. Those that
name $STEPCAST_DATA are left as they stand where it is not set; so are figures that rest on them.

Other blocks name their language; ```sh holds commands whose output is not shown. Output that is wider than 100 columns is
narrowed: gutters of tables shrink to two blanks, and longer lines are folded. No line of a console or sh block is above 100
columns, none outside of tables and blocks above 140, no cell of a table above 60 words."""

import concurrent.futures
import csv
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
WRITTEN_BY_THE_PROGRAM = {"accuracy.md", "performance.md"}
ITEM = re.compile(
    r"(?:^<!--\|(?P<filter>.*)-->\n)?^```console\n(?P<command>\$ (?:.*\\\n)*.*\n)(?P<printed>(?:(?!```|\$ ).*\n)*)```\n"
    r"|^<!--\$ (?P<names>[\w ]+?) = (?P<define>.*)-->\n"
    r"|^<!--@ (?P<file>\S+)-->\n```\w+\n(?P<content>(?:(?!```).*\n)*)```\n"
    r"|<!--! (?P<refused>.+?)-->"
    r"|<!--=(?P<use>[^<>]+?)-->(?P<value>[^<]*)<!--=-->"
    r"|^\|(?P<what>[^|\n]*)\| (?P<n>[\d,]+) \| (?P<mean>[\d.]+) % \| `(?P<row>\w+:\w+:[^`\n:]+)` \|\n",
    re.MULTILINE,
)
MARK = re.compile(r"<!--.*?-->")
REFUSAL = re.compile(r"\b(?:not supported|refused|refuses|rejected|rejects)\b", re.IGNORECASE)
LIST_ITEM = re.compile(r"(?:[-*+]|\d+\.) ")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
LONGEST_LINE, LONGEST_CELL, WIDEST_BLOCK = 140, 60, 100


class Shell:
    """Runs commands for one page; equal ones that read nothing run once."""

    def __init__(self, program, folder):
        self.folder = folder
        tools = pathlib.Path(folder) / "bin"
        tools.mkdir()
        (tools / "stepcast").symlink_to(program)
        path = f"{tools}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "OUT": folder, "LC_ALL": "C.UTF-8"}

    def start(self, command, text=""):
        return subprocess.run(
            ["bash", "-c", command], cwd=ROOT, env=self.environment, input=text, capture_output=True, text=True, timeout=900
        )

    def run(self, command, text=""):
        run = self.start(command, text)
        printed = (run.stdout + run.stderr).replace(self.folder, "$OUT")
        if os.environ.get("STEPCAST_DATA"):
            printed = printed.replace(os.environ["STEPCAST_DATA"], "$STEPCAST_DATA")
        return "".join(line.rstrip() + "\n" for line in printed.splitlines())


def narrowed(text):
    """Text with no line above WIDEST_BLOCK columns where that can be had by shorter gutters of tables and by folding."""
    lines, paragraphs = [], [list(rows) for _, rows in itertools.groupby(text.splitlines(), key=lambda row: bool(row.strip()))]
    for rows in paragraphs:
        widest, at = max(map(len, rows)), 2
        if len(rows) > 1:
            rows = [row.ljust(widest) for row in rows]
            while widest > WIDEST_BLOCK and at + 2 < widest:
                # Three blanks above each other in all rows: one of them goes.
                if all(row[at : at + 3] == "   " for row in rows) and any(row[:at].strip() for row in rows):
                    rows, widest = [row[:at] + row[at + 1 :] for row in rows], widest - 1
                else:
                    at += 1
        for row in map(str.rstrip, rows):
            indent = row[: len(row) - len(row.lstrip())] + "  "
            lines += [row] if len(row) <= WIDEST_BLOCK else textwrap.wrap(
                row, WIDEST_BLOCK, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "".join(line + "\n" for line in lines)


def value(number):
    return float(number.replace(",", ""))


def last_place(number):
    return 10.0 ** -len(number.partition(".")[2])


def differ(written, printed):
    """Whether more than the last places of numbers is different."""
    if NUMBER.sub("#", written).split() != NUMBER.sub("#", printed).split():
        return True
    pairs = list(zip(NUMBER.findall(written), NUMBER.findall(printed)))
    return any(abs(value(a) - value(b)) > max(0.001 * abs(value(b)), 1.01 * last_place(b)) for a, b in pairs)


def accuracy(name):
    """The figure SUITE:TEST:OF:COLUMN:DECIMALS of the written tables; None where there is none."""
    suite, test, of, column, decimals = name.split(":")
    with open(ROOT / "docs" / "accuracy" / f"{suite}.csv", newline="") as table:
        for row in csv.DictReader(table):
            if row["test"] == test and row["of"] == of:
                extras = dict(extra.rsplit(" ", 1) for extra in row["extras"].split("; ") if extra)
                text = row.get(column) or extras.get(column)
                return text and f"{float(text):,.{decimals}f}"
    return None


class Page:
    def __init__(self, path, program, folder):
        self.path, self.shell = path, Shell(program, folder)
        self.n_checked, self.problems = 0, []
        self.output = None  # of the last block; None where it was not run
        self.figures = {}  # name -> text; None where it was not computed
        self.text = path.read_text()

    def can_run(self, command):
        return "$STEPCAST_DATA" not in command or bool(os.environ.get("STEPCAST_DATA"))

    def compare(self, what, written, printed):
        self.n_checked += 1
        before, now = written.splitlines(), printed.splitlines()
        if len(before) != len(now) or any(differ(a, b) for a, b in zip(before, now)):
            self.problems.append(f"{self.path.relative_to(ROOT)}: {what}\nwritten:\n{written}\nprinted:\n{printed}")

    def block(self, match):
        command = match["command"][2:]
        if not self.can_run(command):
            self.output = None
            return match[0]
        self.output = self.shell.run(command.replace("\\\n", " "))
        shown = narrowed(self.shell.run(match["filter"], self.output) if match["filter"] else self.output)
        self.compare(f"$ {command.strip()}", match["printed"], shown)
        head = f"<!--|{match['filter']}-->\n" if match["filter"] else ""
        return f"{head}```console\n{match['command']}{shown}```\n"

    def define(self, match):
        names, command = match["names"].split(), match["define"]
        runs = self.can_run(command) and (self.output is not None or "stepcast " in command)
        values = [None] * len(names)
        if runs:
            printed = self.shell.run(command, self.output or "").strip()
            values = [printed] if len(names) == 1 else printed.split()
            if len(values) != len(names) or not all(values):
                self.problems.append(f"{self.path.relative_to(ROOT)}: {command}\nprinted: {printed}\nfor: {' '.join(names)}")
                values = [None] * len(names)
        self.figures.update(zip(names, values))
        return match[0]

    def use(self, match):
        name = match["use"]
        if ":" in name and name not in self.figures:
            self.figures[name] = accuracy(name)
        if name not in self.figures or (":" in name and self.figures[name] is None):
            self.problems.append(f"{self.path.relative_to(ROOT)}: nothing defines {name}")
        text = self.figures.get(name)
        if text is None:
            return match[0]
        self.compare(f"figure {name}", match["value"], text)
        return f"<!--={name}-->{text}<!--=-->"

    def scored(self, match):
        """A row with how many measurements there are, the mean error, and where both are in docs/accuracy/."""
        n, mean = accuracy(match["row"] + ":n:0"), accuracy(match["row"] + ":mape:2")
        if n is None or mean is None:
            self.problems.append(f"{self.path.relative_to(ROOT)}: docs/accuracy has no row {match['row']}")
            return match[0]
        mean = f"{float(mean):.{1 if float(mean) >= 1 else 2}f}"
        self.compare(f"row {match['row']}", f"{match['n']} {match['mean']}", f"{n} {mean}")
        return f"|{match['what']}| {n} | {mean} % | `{match['row']}` |\n"

    def check_refused(self, match):
        """The test behind a statement of something that is not supported: exit code 2, or a name in a file of tests."""
        command = match["refused"].strip()
        if test := re.fullmatch(r"test: ((?:python/)?tests/\S+?):(\S+)", command):
            file = ROOT / test[1]
            if not (file.is_file() and re.search(rf"\b{re.escape(test[2])}\b", file.read_text())):
                self.problems.append(f"{self.path.relative_to(ROOT)}: no test {test[2]} in {test[1]}")
        elif self.can_run(command):
            run = self.shell.start(command)
            if run.returncode != 2:
                self.problems.append(
                    f"{self.path.relative_to(ROOT)}: exit code {run.returncode} instead of 2: {command}\n{run.stdout}{run.stderr}"
                )
        self.n_checked += 1
        return match[0]

    def again(self, match):
        if match["refused"]:
            return self.check_refused(match)
        if match["row"]:
            return self.scored(match)
        if match["command"]:
            return self.block(match)
        if match["file"]:
            (pathlib.Path(self.shell.folder) / match["file"]).write_text(match["content"])
            return match[0]
        return self.define(match) if match["names"] else self.use(match)

    def check_form(self, text):
        """Blocks without a language, blocks that the pattern missed, long lines and long cells."""
        language = None
        for number, line in enumerate(text.splitlines(), 1):
            where = f"{self.path.relative_to(ROOT)}:{number}"
            if line.lstrip().startswith("```"):
                language = None if language else line.strip().strip("`") or "none"
                if language == "none":
                    self.problems.append(f"{where}: a block without a language (console, sh, text, ...)")
            elif language:
                if language in ("console", "sh") and len(line) > WIDEST_BLOCK and " " in line.strip():
                    self.problems.append(f"{where}: more than {WIDEST_BLOCK} columns in a block")
            elif line.startswith("|"):
                if max(len(cell.split()) for cell in line.split("|")) > LONGEST_CELL:
                    self.problems.append(f"{where}: a cell of more than {LONGEST_CELL} words")
            elif len(MARK.sub("", line)) > LONGEST_LINE:
                self.problems.append(f"{where}: more than {LONGEST_LINE} columns")
        if text.count("```console") != sum(bool(match["command"]) for match in ITEM.finditer(text)):
            self.problems.append(f"{self.path.relative_to(ROOT)}: a ```console block that does not begin with `$ COMMAND`")

    def check_marks(self, text):
        """Paragraphs, list items and tables with a word of REFUSAL and without its marks."""
        parts, fenced, begins = [], False, True  # parts: [first line, lines without marks, number of marks]
        for number, line in enumerate(text.splitlines(), 1):
            fence, plain = line.lstrip().startswith("```"), MARK.sub("", line).strip()
            fenced ^= fence
            if fenced or fence or not line.strip() or plain.startswith("#"):
                begins = True
                continue
            if begins or LIST_ITEM.match(plain):
                parts.append([number, [], 0])
            begins = False
            parts[-1][1] += [plain] if plain else []
            parts[-1][2] += line.count("<!--! ")
        for number, lines, n_marks in parts:
            table = bool(lines) and lines[0].startswith("|")
            n = sum(bool(REFUSAL.search(row)) for row in (lines if table else [" ".join(lines)]))
            if n > n_marks or (table and n != n_marks):
                where = f"{self.path.relative_to(ROOT)}:{number}"
                self.problems.append(f"{where}: {n} statements of something not supported, {n_marks} marks <!--! COMMAND-->")

    def rewritten(self):
        text = ITEM.sub(self.again, self.text)
        self.check_form(text)
        self.check_marks(text)
        return text


def pages_of(names):
    if names:
        return [pathlib.Path(name).resolve() for name in names]
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [page for page in pages if page.name not in WRITTEN_BY_THE_PROGRAM]


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("--check", "--write"):
        sys.exit(__doc__)
    program = pathlib.Path(sys.argv[2]).resolve()

    def run(path):
        with tempfile.TemporaryDirectory() as folder:
            page = Page(path, program, folder)
            text = page.rewritten()
            if sys.argv[1] == "--write":
                path.write_text(text)
            return page

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        pages = list(pool.map(run, pages_of(sys.argv[3:])))
    problems = [problem for page in pages for problem in page.problems]
    n_checked = sum(page.n_checked for page in pages)
    for problem in problems:
        print(problem)
    if sys.argv[1] == "--write":
        print(f"{n_checked} outputs and figures, {len(problems)} of them differ from what was written")
    elif problems:
        sys.exit(f"{len(problems)} of {n_checked} outputs and figures are out of date: ./dev docs writes them anew")


if __name__ == "__main__":
    main()
