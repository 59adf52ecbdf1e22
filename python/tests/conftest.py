"""What the tests of the package share. They run against an installed wheel: `./dev wheel`."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from stepcast._program import PROGRAM

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def interrupts():
    """What was started in the background may have inherited that SIGINT is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def traces():
    return ROOT / "examples" / "dlrm_4gpu"


@pytest.fixture
def cli():
    """The program of the wheel: its document, or the line that it ends with."""

    def call(*words):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            return done.stderr.removeprefix("stepcast: error: ").rstrip("\n")
        return json.loads(done.stdout)

    return call


@pytest.fixture
def environment():
    return {**os.environ}


def in_browser(script, *arguments):
    """Runs a script of these tests that drives Chromium; skips the test where there is none."""
    modules = os.environ.get("STEPCAST_BROWSER_MODULES", str(ROOT / "build" / "browser" / "node_modules"))
    try:
        done = subprocess.run(["node", ROOT / "python" / "tests" / script, *arguments], capture_output=True, text=True, check=False,
                              env={**os.environ, "NODE_PATH": modules}, timeout=1200)
    except FileNotFoundError:
        pytest.skip("no node")
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
