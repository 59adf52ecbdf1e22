"""How long the page of `stepcast serve` takes in Chromium: python python/tests/measure_serve.py [RUNS]

Prints median and p95 from an input to bars that are painted, of sliders that move on a job with a layout and on one without, and
from a word to the rows that hold it among 10,000 points of a sweep. Exit code 1 where a p95 is above what it may be, 77 without
Chromium.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from stepcast import serve

HERE = Path(__file__).resolve().parent
MOST_SLIDER_MS, MOST_FILTER_MS = 150, 100
JOB = "stepcast predict --model llama-3-8b --platform dgx-h100 --gpus 8 --gbs 64"


def in_browser(script, *arguments):
    modules = os.environ.get("STEPCAST_BROWSER_MODULES", str(HERE.parents[1] / "build" / "browser" / "node_modules"))
    done = subprocess.run(["node", HERE / script, *map(str, arguments)], capture_output=True, text=True, check=False,
                          env={**os.environ, "NODE_PATH": modules})
    if done.returncode:
        print(done.stdout + done.stderr, end="")
        sys.exit(done.returncode)
    return done.stdout.strip()


def made_sweep(folder):
    folder.mkdir()
    (folder / "sweep.json").write_text("{}")
    rows = [{"id": str(n), "point": {"model": f"model-{n % 4}", "platform": "dgx-h100", "gpus": 8 << n % 5, "mbs": 1 + n % 3},
             "step_time_ms": n * 7919 % 10000 + 0.5}
            for n in range(10000)]
    (folder / "shard-0000-of-0001.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    with tempfile.TemporaryDirectory() as place:
        made_sweep(Path(place) / "points")
        server = serve.Server("127.0.0.1", 0, [place])
        threading.Thread(target=server.serve_forever, daemon=True).start()
        said = [(f"slider, {what}", MOST_SLIDER_MS, in_browser("slide_in_browser.mjs", server.address, runs, job))
                for what, job in (("a layout that is given", JOB + " --tp 2"), ("a layout that is searched", JOB))]
        said.append(("filter of 10,000 points", MOST_FILTER_MS,
                     in_browser("filter_in_browser.mjs", f"{server.address.replace('/?', '/sweep?')}&folder={place}/points", ":10000",
                                "model-1:2500", "no-such:0")))
        server.shutdown()
        server.server_close()
    bad = False
    for what, most, line in said:
        p95 = float(re.search(r"p95 ([\d.]+) ms", line).group(1))
        bad |= p95 > most
        print(f"{what}: {line}; at most {most} ms: {'yes' if p95 <= most else 'no'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
