#!/usr/bin/env python3
"""Measures what stepcast's programs and calls cost, and writes docs/performance.md.

    bench/performance.py BUILD [--peer NAME=DIR]... [--data DIR] [-o FILE]      ./dev performance does so

BUILD is a build folder with `stepcast` and bench/measure_public_calls. A peer is a checkout of another program: calculon
(github.com/calculon-ai/calculon). What is measured beside it runs in turn with it. What is not here is said on the page,
and fails nothing. --data: the folder of measured data, for the import of public traces (default: $STEPCAST_DATA)."""

import argparse
import importlib.util
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GPT3 = ["predict", "--model", "gpt3-175b", "--platform", "dgx-a100", "--gpus", "512", "--tp", "8", "--pp", "8",
        "--vp", "3", "--mbs", "1", "--gbs", "512", "--seq", "2048", "--sequence-parallel", "--recompute", "selective",
        "--use-distributed-optimizer"]
CALLS = {
    "session": "`Session{}.predict`: a new session, GPT-3 175B on 512 GPUs",
    "predict": "`Session::predict`, warm, another batch each time",
    "sweep_point": "`Session::run` of a point of a sweep",
    "plan": "`plan_layouts`: GPT-3 175B on 512 GPUs, all layouts",
    "replay": "`Session::replay` of `examples/dlrm_4gpu`, 4 ranks",
    "import": "a rank of it as a rank file",
}
# A call of Calculon with its own system and model files; `warm` as many times as stepcast's warm call.
CALCULON = """
import json, sys, time, logging
sys.path.insert(0, sys.argv[1])
from calculon import System
from calculon.llm import Llm
log = logging.getLogger(); log.setLevel(logging.ERROR)
base = sys.argv[1]
app = Llm.Application(json.load(open(base + "/models/gpt3-175B.json")))
system = System(json.load(open(base + "/systems/a100_80g.json")))
execution = {"num_procs": 512, "tensor_par": 8, "pipeline_par": 8, "data_par": 8, "tensor_par_net": 0,
    "pipeline_par_net": 1, "data_par_net": 1, "batch_size": 512, "microbatch_size": 1, "datatype": "float16",
    "fused_activation": True, "attention_type": "multihead", "activation_recompute": "attn_only",
    "pipeline_interleaving": 3, "optimizer_sharding": True, "tensor_par_comm_type": "rs_ag",
    "tensor_par_overlap": "none", "seq_par_ag_redo": False, "data_par_overlap": False, "weight_offload": False,
    "activations_offload": False, "optimizer_offload": False, "training": True}
def call():
    model = Llm(app, log)
    model.compile(system, Llm.Execution.from_json(execution))
    model.run(system)
    return model.get_stats_json(False)
call()
if sys.argv[2] != "once":
    times = []
    for _ in range(int(sys.argv[2])):
        start = time.process_time(); call(); times.append(time.process_time() - start)
    times.sort(); print(1e3 * times[len(times) // 2])
"""


def processor_ms(command):
    """Of a process and what it starts; nothing where it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return None if run.returncode else 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def in_turn(commands, times):
    """Median of each command, one after the other `times` times, so that all meet the same machine."""
    measured = {name: [] for name in commands}
    for _ in range(times):
        for name, command in commands.items():
            if (ms := processor_ms(command)) is not None:
                measured[name].append(ms)
    return {name: statistics.median(all_ms) for name, all_ms in measured.items() if all_ms}


def ms_text(ms):
    return "not measured" if ms is None else f"{ms:.3g} ms" if ms < 100 else f"{ms:,.0f} ms"


def row(*cells):
    return "| " + " | ".join(cells) + " |\n"


def process_table(program, peers, absent):
    commands = {"version": [program, "--version"], "predict": [program, *GPT3]}
    calculon = peers.get("calculon")
    if calculon:
        commands["calculon"] = [sys.executable, "-c", CALCULON, calculon, "once"]
    times = in_turn(commands, 21)
    if calculon and "calculon" not in times:
        absent.append("Calculon: its checkout could not be run")
    text = "## Whole processes\n\nProcessor time from start to end, median of 21 in turn.\n\n"
    text += row("command", "processor time") + row("---", "--:")
    text += row("`stepcast --version`", ms_text(times.get("version")))
    text += row("`stepcast predict`, GPT-3 175B on 512 A100, pp 8 in 3 virtual stages", ms_text(times.get("predict")))
    if "calculon" in times:
        text += row("Calculon, the same layout", ms_text(times["calculon"]))
        text += f"\nstepcast takes 1/{times['calculon'] / times['predict']:.0f} of Calculon's time.\n"
    return text


def call_table(build, peers, absent):
    program = build / "bench" / "measure_public_calls"
    if not program.exists():
        absent.append(f"calls of the library: {program.name} is not built (`./dev bench` builds it)")
        return ""
    calculon, warm, runs = peers.get("calculon"), [], []
    for _ in range(3):  # in turn
        out = subprocess.run([program, ROOT / "examples" / "dlrm_4gpu", "0.3"], capture_output=True, text=True, check=True)
        runs.append({name: [float(x) for x in rest] for name, *rest in map(str.split, out.stdout.splitlines())})
        if calculon:
            run = subprocess.run([sys.executable, "-c", CALCULON, calculon, "30"], capture_output=True, text=True, check=False)
            warm += [float(run.stdout)] if run.returncode == 0 else []
    text = "\n## Calls of the library\n\nProcessor time of all threads, allocations and what they asked for, of one call, median.\n\n"
    text += row("call", "processor time", "allocations", "MB") + row("---", "--:", "--:", "--:")
    for name, what in CALLS.items():
        ms, allocations, megabytes = (statistics.median(run[name][i] for run in runs) for i in range(3))
        text += row(what, ms_text(ms), f"{allocations:,.0f}", f"{megabytes:,.2f}")
    if warm:
        share = statistics.median(run["predict"][0] for run in runs) / statistics.median(warm)
        text += row("Calculon's `Llm.run`, warm", ms_text(statistics.median(warm)), "", "")
        text += f"\nA warm `Session::predict`, with all its parts, takes {share:.2g} times as long as Calculon's warm run.\n"
    return text


def rank_files(program, data, absent):
    traces = sorted((data / "traces").rglob("*.json.gz")) if data else []
    if not traces:
        absent.append("rank files of public traces: the measured data is not here")
        return ""
    text = "\n## Rank files\n\n`stepcast import` of the public profiler traces of a megabyte and more (gzip).\n\n"
    text += row("trace", "gzip", "rank file", "ratio", "processor time") + row("---", "--:", "--:", "--:", "--:")
    with tempfile.TemporaryDirectory() as folder:
        for trace in traces:
            size, out = trace.stat().st_size, os.path.join(folder, "r.step")
            if size < 1_000_000 or (ms := processor_ms([program, "import", trace, "-o", out])) is None:
                continue
            small = os.path.getsize(out)
            text += row(f"`{trace.relative_to(data / 'traces')}`", f"{size / 1e3:,.0f} kB", f"{small / 1e3:,.0f} kB",
                        f"1/{size / small:.0f}", ms_text(ms))
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=DIR")
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("STEPCAST_DATA"))
    parser.add_argument("-o", "--output", type=pathlib.Path, default=ROOT / "docs" / "performance.md")
    options = parser.parse_args()
    build = options.build.resolve()
    peers = dict(peer.partition("=")[::2] for peer in options.peer)
    if unknown := set(peers) - {"calculon"}:
        parser.error(f"--peer {unknown.pop()}: expected calculon=DIR")
    absent = []
    if "calculon" not in peers:
        absent.append("Calculon: no checkout was named (`--peer calculon=DIR`)")
    elif importlib.util.find_spec("numpy") is None:
        absent.append("Calculon: it needs numpy")
        del peers["calculon"]
    if importlib.util.find_spec("hta") is None:
        absent.append("Holistic Trace Analysis: the package HolisticTraceAnalysis is not installed")
    program = str(build / "stepcast")
    machine = next((line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
                   platform.machine())
    page = "# Performance\n\nWritten by `./dev performance`: what the programs and calls cost on one machine"
    page += f" ({machine}, {os.cpu_count()} cores).\nRatios to other programs are of the same run.\n\n"
    page += process_table(program, peers, absent) + call_table(build, peers, absent)
    page += rank_files(program, options.data, absent)
    if absent:
        page += "\n## Not measured\n\n" + "".join(f"* {what}\n" for what in absent)
    options.output.write_text(page, encoding="utf-8")
    print(f"written to {options.output}")


if __name__ == "__main__":
    main()
