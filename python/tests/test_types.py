"""Signatures that notebooks complete, and the snippets of the docs as mypy reads them."""

import inspect
import re
import subprocess
import sys

import pytest

import stepcast
from conftest import ROOT
from stepcast._program import PROGRAM

@pytest.mark.parametrize("verb, flag", [("predict", "sequence_parallel"), ("predict_series", "gpus"), ("replay", "all_steps"), ("plan", "top"),
                                        ("shard", "evaluations"), ("compare", "fail_above"), ("dryrun", "keep_going"), ("inspect", "ranks")])
def test_signatures_name_flags_of_the_program(verb, flag):
    parameters = inspect.signature(getattr(stepcast, verb)).parameters
    assert flag in parameters and parameters[flag].kind is inspect.Parameter.KEYWORD_ONLY


def mypy(tmp_path, text, *flags):
    pytest.importorskip("mypy")
    (tmp_path / "snippet.py").write_text(text)
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", tmp_path / "cache", *flags, tmp_path / "snippet.py"],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_what_calls_are_typed_as(tmp_path):
    code, said = mypy(tmp_path, "import stepcast\n"
                                "f = stepcast.predict('llama-3-8b', gpus=8, sequence_parallel=True, train_tokens='15T')\n"
                                "reveal_type(f)\n"
                                "reveal_type(f.step_time_ms)\n"
                                "reveal_type(f.rank_classes[0].computation_ms)\n"
                                "reveal_type(stepcast.predict_series('llama-3-8b', gpus=[8, 16]))\n"
                                "reveal_type(stepcast.plan('llama-3-8b', gpus=8).layouts[0].megatron_flags)\n"
                                "stepcast.predict('llama-3-8b', gpus='many')\n"
                                "stepcast.predict('llama-3-8b', gpuz=8)\n"
                                "f.step_tim\n"
                                "f.memory.verdict\n", "--strict")
    types = [line.split('"')[1] for line in said.splitlines() if "Revealed type" in line]
    assert types == ["stepcast._answers.Forecast", "float", "float", "stepcast._answers.AnyAnswer", "str | None"], said
    wrong = [line.split(":")[1] for line in said.splitlines() if "error:" in line]
    assert code == 1 and wrong == ["8", "9", "10", "11"], said  # memory may be None
    assert max(map(len, said.splitlines())) < 300


def test_generated_keywords_are_those_of_the_program():
    done = subprocess.run([sys.executable, ROOT / "python" / "write_flags.py", PROGRAM, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_snippets_of_the_docs(tmp_path):
    text = (ROOT / "docs" / "python.md").read_text()
    snippets = [one for one in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "dask" not in one and "ray." not in one]
    assert len(snippets) >= 2
    code, said = mypy(tmp_path, "import concurrent.futures, json, stepcast\n" + "\n".join(snippets))
    assert code == 0, said
