"""What the program shows in a terminal: its width, colours, progress."""

import fcntl
import os
import pty
import re
import signal
import struct
import termios

import pytest

from conftest import ROOT
from stepcast._program import PROGRAM

COLOUR = re.compile(r"\033\[[0-9;]*m")


def shown(*words, columns=80, until=None, **environment):
    """What a terminal gets, up to its end or to what matches `until`."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execve(PROGRAM, [PROGRAM, *words], {**os.environ, "TERM": "xterm", **environment})
    text = b""
    while True:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # its other end is closed
            break
        if not piece:
            break
        text += piece
        if until and re.search(until, text.decode(errors="replace")):
            os.kill(child, signal.SIGTERM)
            break
    os.waitpid(child, 0)
    os.close(terminal)
    return text.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("line", ["plan --model llama-3-8b --gpus 32 --gbs 128", "platforms", "platforms dgx-h100", "models",
                                  "predict --model llama-3-8b --gpus 8 --tp 2", "shard --model dlrm-mlperf-v1 --gpus 8 --evaluations 20"])
def test_fits_into_the_terminal(line):
    text = COLOUR.sub("", shown(*line.split()))
    # Flags and files are for copying, and stay on a line.
    long = [one for one in text.split("\n") if len(one) > 80 and "--" not in one and "/" not in one and len(one.split()) > 1]
    assert long == [] and len(text) > 200


def test_colours_are_for_terminals_that_want_them(cli):
    words = "predict --model llama-3-8b --gpus 8 --tp 2".split()
    assert re.search("\033\\[1mStep time .*\033\\[0m", shown(*words))
    plain = shown(*words, NO_COLOR="1")
    assert not COLOUR.search(plain) and not COLOUR.search(shown(*words, TERM="dumb"))
    assert "\033[1;31merror:\033[0m" in shown("predict", "--model", "none")
    assert not COLOUR.search(shown("predict", *words[1:], "--json"))


def test_says_how_much_is_done_and_what_is_left():
    """Of a million scenarios, which nobody waits for."""
    states = shown("replay", str(ROOT / "examples" / "dlrm_4gpu"), "--scenarios", "1000000", until=r"s left")
    assert re.search(r"replay: \d+ s, \d+ % of this part, \d+ s left", states)


def test_a_long_prediction_is_not_silent():
    """The search for a layout of a large model takes seconds."""
    states = shown("predict", "--model", "deepseek-v3", "--platform", "dgx-h100", "--gpus", "1024", until=r"predict a step: \d+ s")
    assert re.search(r"predict a step: \d+ s", states)
