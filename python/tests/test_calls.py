"""Progress, interrupts, and other threads while a call is under way."""

import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import stepcast

LONG = {"model": "llama-3.1-405b", "platform": "dgx-h100", "gpus": 2048, "gbs": 2048, "dtype": ["bf16", "fp8"]}


def test_progress_is_told(traces):
    said = []
    stepcast.replay(traces, progress=said.append)
    assert said[0] == "replay"
    said.clear()
    stepcast.plan("llama-3-8b", gpus=8, gbs=32, progress=said.append)
    assert said == ["plan on 8 GPUs"]


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


def test_interrupts_end_a_call():
    program = textwrap.dedent(
        f"""
        import os, signal, threading, stepcast
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            for _ in range(1000):
                stepcast.plan(**{LONG!r})
        except KeyboardInterrupt:
            os.write(1, b"interrupted")
            os._exit(0)
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "interrupted", done.stderr
    assert done.returncode == 0 and signal.SIGINT


def test_processes_may_be_forked():
    from concurrent.futures import ProcessPoolExecutor

    before = stepcast.predict("llama-3-8b", gpus=8).step_time_ms
    with ProcessPoolExecutor(2) as pool:
        assert list(pool.map(_step_time, [8, 16])) == [before, _step_time(16)]


def _step_time(gpus):
    return stepcast.predict("llama-3-8b", gpus=gpus).step_time_ms
