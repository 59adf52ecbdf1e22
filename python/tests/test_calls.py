"""Progress, interrupts, and other threads while a call is under way."""

import os
import signal
import subprocess
import threading
import time

import pytest

import stepcast
from stepcast._program import PROGRAM

LONG = {"model": "llama-3.1-405b", "platform": "dgx-h100", "gpus": 2048, "gbs": 2048, "dtype": ["bf16", "fp8"]}


def test_progress_is_told(traces):
    said = []
    stepcast.replay(traces, progress=said.append)
    # Of texts that come at once only the last is told, so where it begins depends on the machine.
    assert said and {what.split(":")[0] for what in said} == {"replay"}
    assert all(what.share is None or 0 <= what.share <= 1 for what in said)
    said.clear()
    stepcast.plan("llama-3-8b", gpus=8, gbs=32, progress=said.append)
    assert set(said) == {"plan on 8 GPUs"} and said[0].share is None


def test_progress_has_a_share():
    said = []
    stepcast.sweep({"mode": "predict", "model": "gpt2", "gpus": [1, 2]}, progress=said.append)
    assert said[-1] == "sweep: 2 of 2 points" and said[-1].share == 1


def test_progress_of_work_in_the_library_has_a_share(traces):
    """Of a million scenarios, which nobody waits for."""

    def hear(what):
        if what == "replay" and what.share is not None:
            raise LookupError(what.share)

    with pytest.raises(LookupError) as heard:
        stepcast.replay(traces, scenarios=1_000_000, progress=hear)
    assert 0 < heard.value.args[0] < 1


def test_callbacks_that_raise_end_the_call(traces):
    def fail(what):
        raise LookupError(what)

    with pytest.raises(LookupError, match="replay"):
        stepcast.replay(traces, progress=fail)
    assert stepcast.replay(traces).step_time_ms > 0


def test_callbacks_that_cannot_be_called(traces):
    with pytest.raises(TypeError):
        stepcast.replay(traces, progress=3)


def test_other_threads_run_meanwhile():
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.002)

    ticker = threading.Thread(target=tick)
    ticker.start()
    begin = time.perf_counter()
    stepcast.plan(**LONG)
    end = time.perf_counter()
    done.set()
    ticker.join()
    inside = [at for at in ticks if begin < at < end]
    assert len(inside) > 3


# Each takes minutes, or longer than anybody waits, unless it is ended.
ENDLESS = {
    "plan": lambda traces: stepcast.plan("deepseek-v3", platform="dgx-h100", gpus=2048, gbs=8192, dtype=["bf16", "fp8"]),
    "training": lambda traces: stepcast.plan(
        "llama-3.1-405b", platform=["dgx-h100", "dgx-a100"], gpus=[2048, 4096, 8192, 16384], gbs=2048, train_tokens=1e12
    ),
    "replay": lambda traces: stepcast.replay(traces, scenarios=1000000),
    "shard": lambda traces: stepcast.shard("dlrm-mlperf-v1", gpus=64, evaluations=10**9, seconds=600),
    "sweep": lambda traces: stepcast.sweep(
        {"model": "llama-3-70b", "gpus": 512, "tp": [1, 2, 4, 8], "pp": [1, 2, 4, 8], "gbs": list(range(512, 51200, 512))}
    ),
}


def threads():
    return len(os.listdir("/proc/self/task"))


def ends_with(before):
    """Whether no more threads are left than before: what was not ended would go on for minutes."""
    for _ in range(6000):
        if threads() <= before:
            return True
        time.sleep(0.01)  # a thread that has ended is there for a moment more
    return False


@pytest.mark.parametrize("what", ENDLESS)
def test_interrupts_end_a_call_and_the_work_behind_it(what, traces):
    before = threads()
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        ENDLESS[what](traces)
    timer.join()
    assert ends_with(before)
    assert stepcast.predict("llama-3-8b", gpus=8).step_time_ms > 0


def test_a_callback_that_raises_ends_the_work_too(traces):
    before = threads()

    def fail(what):
        raise LookupError(what)

    with pytest.raises(LookupError):
        stepcast.plan("deepseek-v3", platform="dgx-h100", gpus=2048, gbs=8192, dtype=["bf16", "fp8"], progress=fail)
    assert ends_with(before)


def test_an_interrupted_program_leaves_no_file(tmp_path):
    """Ctrl-C while `--csv` is due: the old content stays, and nothing else is there."""
    old = tmp_path / "layouts.csv"
    old.write_text("old")
    words = "plan --model deepseek-v3 --platform dgx-h100 --gpus 2048 --gbs 8192 --dtype bf16,fp8 --csv".split()
    running = subprocess.Popen([PROGRAM, *words, str(old)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    assert running.communicate()[0] == b""
    assert running.returncode == -signal.SIGINT
    assert [file.name for file in tmp_path.iterdir()] == ["layouts.csv"] and old.read_text() == "old"


def test_processes_may_be_forked():
    from concurrent.futures import ProcessPoolExecutor

    before = stepcast.predict("llama-3-8b", gpus=8).step_time_ms
    with ProcessPoolExecutor(2) as pool:
        assert list(pool.map(_step_time, [8, 16])) == [before, _step_time(16)]


def _step_time(gpus):
    return stepcast.predict("llama-3-8b", gpus=gpus).step_time_ms
