"""Median steps of published result logs of MLPerf against what their own lines say: a time or a rate with every line, or samples
between two events. Read here line by line, by other code than the program's."""

import gzip
import json
import os
import statistics
from pathlib import Path

import pytest

LOGS = sorted((Path(os.environ.get("STEPCAST_DATA", "/nowhere")) / "field" / "mlperf_logs").glob("*.gz"))


def events_of(file):
    with gzip.open(file, "rt", errors="replace") as lines:
        for line in lines:
            if ":::MLLOG" in line:
                try:
                    yield json.loads(line.split(":::MLLOG", 1)[1])
                except ValueError:
                    continue


def stretches(events, batch, scale):
    """Milliseconds of a step between evaluations. `scale`: what turns the count of an event into samples."""
    ends = {"eval_start", "run_stop"} if any(one["key"] == "eval_start" for one in events) else {"eval_accuracy"}
    begins = {"block_start", "run_start", "epoch_start", "eval_stop"} if "eval_start" in ends else {"block_start", "eval_accuracy"}
    since = samples = 0
    for one in events:
        count = one["metadata"].get("samples_count", one["metadata"].get("epoch_num"))
        if one["key"] in ends and since and count is not None and count * scale - samples >= batch:
            yield (one["time_ms"] - since) * batch / (count * scale - samples)
            samples, since = count * scale, 0
        if one["key"] in begins and not since:
            since = one["time_ms"]


def derived_ms(file):
    events = list(events_of(file))
    first = {}
    for one in events:
        first.setdefault(one["key"], one["value"])
    batch = first["global_batch_size"]
    told = [one["value"] for one in events if one["key"] == "tracked_stats" and isinstance(one["value"], dict)]
    steps = [1e3 * one["train_step_timing"] for one in told if "train_step_timing" in one]
    rates = [1e3 * batch / one["throughput"] for one in told if "throughput" in one]
    if steps:
        return statistics.median(steps), len(steps)
    if len(rates) > 1:
        return statistics.median(rates), len(rates)
    benchmark = first["submission_benchmark"]
    scale = 1 / first["max_sequence_length"] if benchmark == "gpt3" else first["train_samples"] if benchmark.startswith("dlrm") else 1
    found = list(stretches(events, batch, scale))
    return statistics.median(found), len(found)


@pytest.mark.parametrize("file", LOGS or [None], ids=lambda file: file.name if file else "none")
def test_the_median_step_is_that_of_the_lines(file, cli):
    if file is None:
        pytest.skip("no published logs: STEPCAST_DATA")
    expected, n = derived_ms(file)
    found = cli("inspect", file, "--json")["files"][0]["step_time_ms"]
    print(f"{file.name}: {found:.6g} ms read, {expected:.6g} ms by {n} lines: {100 * (found / expected - 1):+.4f} %")
    assert n >= 5 and abs(found / expected - 1) < 1e-3
