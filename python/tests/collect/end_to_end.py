"""From a run of the collector to a calibrated platform: what was measured must make predictions better.

    python3 end_to_end.py STEPCAST DIR

A quarter of the cases in DIR/kernels.csv is held out. The tool calibrates DIR/platform.json with the others; the
held-out rows are then predicted with the platform before and after. Every trace in DIR must be readable.
"""

import csv
import json
import subprocess
import sys
from pathlib import Path

# Sets with fewer held-out rows say nothing.
LEAST_ROWS = 3


def tool(stepcast, *arguments):
    answer = subprocess.run([stepcast, *map(str, arguments)], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        sys.exit(f"stepcast {' '.join(map(str, arguments))}: exit code {answer.returncode}\n{answer.stderr}")
    return answer.stdout


def split(source, fitted, held_out):
    """Whole cases go to one side: forward and backward of one shape have the same neighbours."""
    with open(source, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    number = {}
    # By operation, so that each of them has held-out rows.
    for row in sorted(rows, key=lambda row: row["op"]):
        number.setdefault(row["case"], len(number))
    for path, wanted in ((fitted, False), (held_out, True)):
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(row for row in rows if (number[row["case"]] % 4 == 1) == wanted)


def errors(stepcast, held_out, gpu, platform):
    """Geometric mean error in percent by set, of the rows that were not fitted."""
    report = json.loads(tool(stepcast, "validate", "kernels", "--data", held_out, "--protocol", "shipped", "--platform",
                             f"{gpu}={platform}", "--json"))
    return {one["set"]: one["gmae"] for one in report["sets"] if one["n"] >= LEAST_ROWS}


def main(stepcast, folder):
    out = Path(folder)
    base, calibrated = out / "platform.json", out / "calibrated.json"
    tool(stepcast, "platforms", base)
    gpu = json.loads(base.read_text(encoding="utf-8"))["device"]["name"]
    fitted, held_out = out / "fitted.csv", out / "held_out.csv"
    split(out / "kernels.csv", fitted, held_out)
    tool(stepcast, "calibrate", "kernels", fitted, "--platform", base, "-o", calibrated)
    before, after = (errors(stepcast, held_out, gpu, platform) for platform in (base, calibrated))
    if not before or set(before) != set(after):
        sys.exit(f"nothing to compare: {sorted(before)} before, {sorted(after)} after")
    for name in before:
        print(f"{name}: {before[name]:.1f} % before, {after[name]:.1f} % after")
    mean_before, mean_after = (sum(found.values()) / len(found) for found in (before, after))
    n_traces = 0
    for trace in sorted((out / "traces").glob("*.json.gz")):
        tool(stepcast, "inspect", trace)
        n_traces += 1
    if n_traces == 0:
        sys.exit("the run recorded no trace")
    if mean_after >= mean_before:
        sys.exit(f"calibration made held-out errors no smaller: {mean_before:.1f} % before, {mean_after:.1f} % after")
    print(f"held-out error {mean_before:.0f} % before calibration, {mean_after:.0f} % after; {n_traces} traces read")


if __name__ == "__main__":
    main(*sys.argv[1:])
