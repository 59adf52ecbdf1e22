"""Signatures that notebooks complete, and the snippets of the docs as mypy reads them."""

import inspect
import re
import subprocess
import sys

import pytest

import stepcast
from conftest import ROOT
from stepcast._program import PROGRAM

PYTHON_ONLY = {"model", "progress", "places", "kind", "files", "a", "b", "step"}


@pytest.mark.parametrize("verb", ["predict", "replay", "plan", "shard", "compare", "dryrun"])
def test_signatures_name_flags_of_the_program(verb):
    parameters = inspect.signature(getattr(stepcast, verb)).parameters
    named = [one.name for one in parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD and one.name not in PYTHON_ONLY]
    shown = subprocess.run([PROGRAM, verb, "--help-all"], capture_output=True, text=True, check=True).stdout
    flags = set(re.findall(r"--([a-zA-Z0-9-]+)", shown))
    assert named and [name for name in named if name.replace("_", "-") not in flags] == []


def mypy(tmp_path, text):
    pytest.importorskip("mypy")
    (tmp_path / "snippet.py").write_text(text)
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", tmp_path / "cache", tmp_path / "snippet.py"],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_what_calls_are_typed_as(tmp_path):
    code, said = mypy(tmp_path, "import stepcast\n"
                                "reveal_type(stepcast.predict('llama-3-8b', gpus=8))\n"
                                "reveal_type(stepcast.predict('llama-3-8b', gpus=[8, 16]))\n"
                                "stepcast.predict('llama-3-8b', gpus='many')\n")
    assert code == 1 and 'is "stepcast._answers.Forecast"' in said and 'is "stepcast._answers.Answer"' in said
    assert said.count("error:") >= 1 and "snippet.py:4: error:" in said


def test_snippets_of_the_docs(tmp_path):
    text = (ROOT / "docs" / "python.md").read_text()
    snippets = [one for one in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "dask" not in one and "ray." not in one]
    assert len(snippets) >= 2
    code, said = mypy(tmp_path, "import concurrent.futures, json, stepcast\n" + "\n".join(snippets))
    assert code == 0, said
