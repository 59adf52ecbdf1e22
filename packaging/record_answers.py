"""Answers that the first page of the site shows without a server: common models on every machine, all others on one.

    python3 packaging/record_answers.py STEPCAST FILE [--models A,B] [--platforms C,D]        `./dev site` calls it
"""

import argparse
import concurrent.futures
import json
import os
import subprocess

USUAL_PLATFORM, GPUS = "dgx-h100", (8, 64)
COMMON = ("llama-3-8b", "llama-3-70b", "llama-3.1-405b", "qwen3-8b", "qwen3-32b", "qwen3-30b-a3b", "qwen3-235b-a22b", "deepseek-v3",
          "gpt-oss-120b", "mixtral-8x7b", "gpt3-175b")


def answer(program, model, platform, gpus):
    """What the page shows of a forecast; None where there is none."""
    words = ["predict", "--model", model, "--platform", platform, "--gpus", str(gpus), "--advice", "off", "--json"]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    found = json.loads(done.stdout)
    memory = found.get("memory") or {}
    return {"command": "stepcast " + " ".join(words[:-3]), "step_ms": found["step_time_ms"], "p10_ms": found["step_time_p10_ms"],
            "p90_ms": found["step_time_p90_ms"], "mfu": found["throughput"]["mfu"], "tokens_per_s": found["throughput"]["tokens_per_s"],
            "memory": memory.get("verdict")}


def listed(program, what):
    done = subprocess.run([program, what, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)[what]


def record(program, models, platforms):
    models = models or [one["name"] for one in listed(program, "models")]
    platforms = platforms or sorted(one["name"] for one in listed(program, "platforms") if one["role"] == "node")
    pairs = [(model, platform) for model in models for platform in platforms if platform == USUAL_PLATFORM or model in COMMON]
    keys = [(*pair, gpus) for pair in pairs for gpus in GPUS]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda key: answer(program, *key), keys)
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    answers = {"/".join(map(str, key)): one for key, one in zip(keys, found) if one}
    known = [{part[i] for part in (key.split("/") for key in answers)} for i in (0, 1)]
    return {"version": version, "platforms": [one for one in platforms if one in known[1]], "gpus": GPUS,
            "models": [one for one in models if one in known[0]], "answers": answers}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("file")
    parser.add_argument("--models", type=lambda text: text.split(","))
    parser.add_argument("--platforms", type=lambda text: text.split(","))
    options = parser.parse_args()
    with open(options.file, "w", encoding="utf-8") as file:
        json.dump(record(options.program, options.models, options.platforms), file, separators=(",", ":"))


if __name__ == "__main__":
    main()
