#!/usr/bin/env python3
"""Draws the pictures of the docs: charts of reports, as SVG files that stand alone.

    docs/pictures.py --write STEPCAST [NAME...]     writes docs/pictures/NAME.svg (./dev docs does)
    docs/pictures.py --check STEPCAST [NAME...]     exit code 1 where a picture is out of date or is shown on no page

PICTURES has for each picture the commands, the last one with a page (--report), and how the heading above the chart begins.
ERRORS has those of docs/accuracy/: a suite with a test, or several suites. The picture of the rooms is that of
tests/architecture/include_rules.cpp. Texts have to be the same; numbers may differ as in docs/output.py. Commands run in the root of the checkout."""

import concurrent.futures
import csv
import html
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from output import differ

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "pictures"
LLAMA_8B = "predict --model llama-3-8b --platform dgx-h100 --gpus 64 --tp 2 --pp 4 --gbs 128 --mbs 1 --use-distributed-optimizer"
LLAMA_70B = (
    "predict --model llama-3-70b --gpus 64 --mbs 1 --gbs 128 --tp 8 --pp 2 --sequence-parallel --use-distributed-optimizer"
)
REPLAY = "replay examples/dlrm_4gpu"
PICTURES = {
    "stages": ([LLAMA_70B], "Where the time goes"),
    "memory": ([LLAMA_70B], "Memory of a GPU"),
    "schedule": ([LLAMA_8B], "Schedule of the pipeline"),
    "streams": ([LLAMA_8B], "Streams of pipeline stage"),
    "critical-path": ([LLAMA_8B], "Critical path"),
    "sensitivity": (["predict --model llama-3-70b --platform dgx-h200 --gpus 64 --gbs 128"], "Time saved by"),
    "pareto": (["plan --model llama-3-70b --platform dgx-h100 --gpus 64 --gbs 128"], "Time against memory"),
    "money": (
        ["plan --model llama-3-70b --platform dgx-h200 --gpus 64..512 --gbs 1024 --train-tokens 1T --gpu-hour-price 2"],
        "Time against cost",
    ),
    "replayed-ranks": ([REPLAY], "Rank by rank"),
    "late-ranks": ([REPLAY], "Ranks that others wait for"),
    "arrivals": ([REPLAY], "Collectives: last rank"),
    "compared": (
        [f"{LLAMA_8B} --json > $OUT/a.json", f"{LLAMA_8B} --sequence-parallel --vp 4 --json > $OUT/b.json", "compare $OUT/a.json $OUT/b.json"],
        "From one to the other",
    ),
    "shardings": (["shard --model dlrm-mlperf-v1 --gpus 8 --evaluations 200"], "Step time of every sharding"),
    "sharding-load": (["shard --model dlrm-mlperf-v1 --gpus 8 --evaluations 200"], "Load of every rank"),
    "scaling": (["predict --model dlrm-mlperf-v1 --gpus 8,16,32"], "Samples per second"),
    "batches": (["predict --trace examples/dlrm_4gpu --batch 512,1024,2048"], "Samples per second"),
    "recommendation-step": (["predict --model dlrm-mlperf-v1 --gpus 8"], "Where the time goes"),
    "new-gpu": (["predict --model llama-3-8b --gpus 8 --gbs 64 --platform dgx-h200"], "Where the time goes"),
}
# name -> suite, test and what its rows begin with, or rows of several suites: (suite, test, label)
ERRORS = {
    "errors-of-kernels": ("kernels", "held_out_rows", "group "),
    "errors-of-collectives": ("collectives", "held_out_sizes", "group "),
    "errors": [
        ("replay", "step_time", "replay of traces"), ("dry_run", "dry_run_steps", "dry run of programs"), ("iterations", "steps", "described steps"),
        ("dlrm", "steps", "recommendation models"), ("kernels", "held_out_rows", "kernels, held out"),
        ("collectives", "held_out_sizes", "collectives, held out"),
    ],
}
ROOMS = "rooms"
MARGIN, LINE, LETTER = 12, 20, 6.6  # of the frame; height of a line of the legend; width of a letter at 12 px


def run_page(program, commands):
    with tempfile.TemporaryDirectory() as out:
        for i, command in enumerate(commands):
            report = f" --report {out}/page.html > /dev/null" if i + 1 == len(commands) else ""
            subprocess.run(
                ["bash", "-c", f"{program} {command}{report}"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL, timeout=900,
                env={**os.environ, "OUT": out, "LC_ALL": "C.UTF-8"},
            )
        return (pathlib.Path(out) / "page.html").read_text()


def styles_of(page, used):
    """The rules of the style sheet that colour and place marks of these classes, with light colours."""
    sheet = re.sub(r"/\*.*?\*/", "", re.search(r"<style>(.*?)</style>", page, re.S).group(1), flags=re.S)
    sheet = re.sub(r"@[\w-]+[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", sheet)
    variables = re.search(r"\.stepcast\{([^}]*--paper[^}]*)\}", sheet).group(1)
    values = dict(re.findall(r"(--[\w-]+):([^;}]+)", variables))
    rules = []
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", sheet):
        kept = []
        for selector in selectors.split(","):
            plain = selector.strip().removeprefix("svg ")
            classes = re.findall(r"\.([\w-]+)", plain)
            if ":" not in plain and classes and all(c in used for c in classes) and not re.search(r"[ >+~\[]", plain):
                kept.append(plain)
        if kept:
            rules.append(",".join(kept) + "{" + body + "}")
    rules.append("text{fill:var(--ink);font:12px system-ui,sans-serif}rect,circle{fill:var(--c)}path{fill:none;stroke:var(--c)}")
    fixed = "".join(rules[-1:] + rules[:-1])
    for _ in range(3):
        fixed = re.sub(r"var\((--[\w-]+)\)", lambda m: values.get(m.group(1), m.group()), fixed)
    return fixed


def picture_of(page, heading):
    sections = [s for s in page.split("<section>") if re.match(rf"<h2[^>]*>(?:{heading})", s)]
    if not sections:
        raise ValueError(f"no section `{heading}`")
    figure = re.search(r"<figure.*?</figure>", sections[0], re.S).group()
    chart = re.search(r"<svg.*</svg>", figure.split('<ul class="legend">')[0], re.S).group()
    chart = re.sub(r' (?:role|tabindex|aria-\w+|data-[\w-]+)="[^"]*"', "", chart)
    width, height = (float(x) for x in re.match(r'<svg[^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"', chart).groups())
    legend = re.findall(r'<li><i class="([^"]*)"></i>(.*?)</li>', figure)
    x, y, marks = 0.0, 0.0, []
    for colour, text in legend:
        needs = 18 + LETTER * len(html.unescape(text)) + 16
        if x and x + needs > width:
            x, y = 0.0, y + LINE
        marks.append(f'<rect class="{colour}" x="{x:.0f}" y="{y + 4:.0f}" width="11" height="11" rx="2"/>'
                     f'<text x="{x + 16:.0f}" y="{y + 14:.0f}">{text}</text>')
        x += needs
    above = y + LINE + 6 if legend else 0
    used = set(re.findall(r"[\w-]+", " ".join(re.findall(r'class="([^"]*)"', chart) + [c for c, _ in legend])))
    chart = chart.replace("<svg ", f'<svg x="0" y="{above:.0f}" width="{width:g}" height="{height:g}" ', 1)
    whole_width, whole_height = width + 2 * MARGIN, height + above + 2 * MARGIN
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-MARGIN} {-MARGIN} {whole_width:g} {whole_height:g}">'
        f"<style>{styles_of(page, used)}</style>"
        f'<rect x="{-MARGIN}" y="{-MARGIN}" width="{whole_width:g}" height="{whole_height:g}" style="fill:#fff"/>'
        f"{''.join(marks)}{chart}</svg>\n"
    )
    return text.replace("><", ">\n<").replace("&nbsp;", " ")


def svg(width, height, body):
    style = "text{fill:#1b1f24;font:12px system-ui,sans-serif}.soft{fill:#5b6570}.end{text-anchor:end}.mid{text-anchor:middle}"
    whole = f"{width + 2 * MARGIN:g} {height + 2 * MARGIN:g}"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-MARGIN} {-MARGIN} {whole}">\n<style>{style}</style>\n'
            f'<rect x="{-MARGIN}" y="{-MARGIN}" width="{width + 2 * MARGIN:g}" height="{height + 2 * MARGIN:g}" fill="#fff"/>\n'
            + "\n".join(body) + "\n</svg>\n")


def errors_picture(what):
    """A bar for the mean absolute error of each row, with the number of cases behind it."""
    rows = []
    wanted = [(what[0], what[1], None)] if isinstance(what, tuple) else what
    for suite, test, label in wanted:
        with open(ROOT / "docs" / "accuracy" / f"{suite}.csv", newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["test"] != test:
                    continue
                if label is None and row["of"].startswith(what[2]):
                    rows.append((row["of"].removeprefix(what[2]), float(row["mape"]), int(row["n"])))
                elif label is not None and row["of"] == "rows":
                    rows.append((label, float(row["mape"]), int(row["n"])))
    rows = sorted(rows, key=lambda row: row[1])[:24]
    most, left, wide = max(row[1] for row in rows), 220, 560
    body = [f'<text x="0" y="12" class="soft">mean |error|, %</text><text x="{left + wide + 110}" y="12" class="soft end">cases</text>']
    for i, (name, error, n) in enumerate(rows):
        y = 22 + 22 * i
        body.append(f'<text x="{left - 8}" y="{y + 13}" class="end">{html.escape(name)}</text>'
                    f'<rect x="{left}" y="{y}" width="{wide * error / most:.1f}" height="16" fill="#1d5fc4"/>'
                    f'<text x="{left + wide * error / most + 6:.1f}" y="{y + 13}">{error:.1f}</text>'
                    f'<text x="{left + wide + 110}" y="{y + 13}" class="soft end">{n:,}</text>')
    return svg(left + wide + 110, 22 + 22 * len(rows), body)


def rooms_picture():
    """The rooms of src/ by tier: a room may include those below it."""
    source = (ROOT / "tests" / "architecture" / "include_rules.cpp").read_text()
    tiers = {}
    for name, tier in re.findall(r'Room\{"(\w+)", (\d+)\}', source):
        tiers.setdefault(int(tier), []).append(name)
    body, top = [], max(tiers)
    for tier, names in tiers.items():
        y, width = (top - tier) * 38, 720 / max(len(names), 1)
        for i, name in enumerate(names):
            body.append(f'<rect x="{i * width + 3:.1f}" y="{y}" width="{width - 6:.1f}" height="30" rx="4" fill="#c3d9f6"/>'
                        f'<text x="{(i + 0.5) * width:.1f}" y="{y + 20}" class="mid">{name}</text>')
    return svg(720, (top + 1) * 38, body)


def main(arguments):
    if len(arguments) < 2 or arguments[0] not in ("--check", "--write"):
        sys.exit(__doc__)
    program = pathlib.Path(arguments[1]).resolve()
    names = arguments[2:] or [*PICTURES, *ERRORS, ROOMS]
    pages = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for commands in (tuple(PICTURES[name][0]) for name in names if name in PICTURES):
            pages.setdefault(commands, pool.submit(run_page, program, commands))
    problems = []
    text = "".join(p.read_text() for p in (ROOT / "docs").glob("*.md"))
    for name in names:
        path = FOLDER / f"{name}.svg"
        if name in PICTURES:
            drawn = picture_of(pages[tuple(PICTURES[name][0])].result(), PICTURES[name][1])
        else:
            drawn = rooms_picture() if name == ROOMS else errors_picture(ERRORS[name])
        if arguments[0] == "--write":
            path.write_text(drawn)
        elif not path.exists() or differ(path.read_text(), drawn):
            problems.append(f"docs/pictures/{name}.svg is out of date: `./dev docs` draws it")
        if f"pictures/{name}.svg" not in text and arguments[0] == "--check":
            problems.append(f"docs/pictures/{name}.svg is on no page")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
