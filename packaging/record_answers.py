"""Answers that the first page of the site shows without a server: every preset on a machine and two numbers of GPUs.

    python3 packaging/record_answers.py STEPCAST FILE [MODEL...]        `./dev site` calls it
"""

import concurrent.futures
import json
import os
import subprocess
import sys

PLATFORMS, GPUS = ("dgx-h100",), (8, 64)


def answer(program, model, platform, gpus):
    """What the page shows of a forecast; None where there is none."""
    words = ["predict", "--model", model, "--platform", platform, "--gpus", str(gpus), "--json"]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    found = json.loads(done.stdout)
    memory = found.get("memory") or {}
    return {"command": "stepcast " + " ".join(words[:-1]), "step_ms": found["step_time_ms"], "p10_ms": found["step_time_p10_ms"],
            "p90_ms": found["step_time_p90_ms"], "mfu": found["throughput"]["mfu"], "tokens_per_s": found["throughput"]["tokens_per_s"],
            "memory": memory.get("verdict")}


def record(program, models):
    if not models:
        listed = json.loads(subprocess.run([program, "models", "--json"], capture_output=True, text=True, check=True).stdout)
        models = [one["name"] for one in listed["models"]]
    keys = [(model, platform, gpus) for model in models for platform in PLATFORMS for gpus in GPUS]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda key: answer(program, *key), keys)
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    answers = {"/".join(map(str, key)): one for key, one in zip(keys, found) if one}
    return {"version": version, "platforms": PLATFORMS, "gpus": GPUS,
            "models": [model for model in models if any(key.startswith(model + "/") for key in answers)], "answers": answers}


if __name__ == "__main__":
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(record(sys.argv[1], sys.argv[3:]), file, separators=(",", ":"))
