"""What an installed wheel is."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stepcast
from conftest import ROOT
from stepcast import _stepcast
from stepcast._program import PROGRAM

PACKAGE = Path(stepcast.__file__).parent


def output(*words, **options):
    return subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, **options)


def test_one_version():
    # And the commit, where it is known.
    assert re.fullmatch(rf"stepcast {re.escape(stepcast.__version__)}( \([\w.-]+\))?\n", output(PROGRAM, "--version").stdout)
    from importlib.metadata import version

    assert version("stepcast") == stepcast.__version__


@pytest.mark.parametrize("file", [PROGRAM, _stepcast.__file__])
def test_no_library_beyond_those_of_every_system(file):
    needed = set(re.findall(r"NEEDED.*\[(.*?)\]", output("readelf", "-d", file).stdout))
    allowed = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "libpthread.so.0", "libdl.so.2",
               "ld-linux-aarch64.so.1", "libstepcast.so"}
    assert needed and needed <= allowed


@pytest.mark.parametrize("file", [PROGRAM, _stepcast.__file__])
def test_nothing_newer_than_glibc_2_28(file):
    symbols = output("readelf", "-W", "--dyn-syms", file).stdout
    versions = re.findall(r"UND \S+?@+(\w+?)_([0-9]+)\.([0-9]+)", symbols)
    assert versions and all(name != "GLIBCXX" and (name != "GLIBC" or (int(major), int(minor)) <= (2, 28))
                            for name, major, minor in versions)


def test_the_command_is_installed():
    command = Path(sys.executable).parent / "stepcast"
    assert output(command, "--version").stdout == output(PROGRAM, "--version").stdout
    missing = output(command, "predict", "--model", "nothing", "--gpus", "8")
    assert missing.returncode == 2 and missing.stderr.startswith("stepcast: error: ")
    assert output(sys.executable, "-m", "stepcast", "--version").returncode == 0


def test_platforms_come_with_the_package(tmp_path):
    """Away from the checkout: neither program nor extension may look there."""
    environment = {key: value for key, value in os.environ.items() if key != "STEPCAST_PLATFORMS"}
    listed = json.loads(output(PROGRAM, "platforms", "--json", cwd=tmp_path, env=environment).stdout)
    assert len(listed["platforms"]) > 50
    folder = PACKAGE / "share" / "stepcast" / "platforms"
    assert (folder / "dgx-h100.json").is_file()
    script = "import stepcast; print(len(stepcast.platforms().platforms))"
    assert int(output(sys.executable, "-c", script, cwd=tmp_path, env=environment).stdout) == len(listed["platforms"])


def test_an_example_trace_comes_with_the_package(traces):
    """Its answers are those of the traces that it was made from."""
    folder = stepcast.example_trace()
    assert PACKAGE in folder.parents and sum(file.stat().st_size for file in folder.iterdir()) < 60_000
    example, original = stepcast.replay(folder), stepcast.replay(traces)
    assert len(example.measured.rank_classes) == 4
    assert example.measured_step_time_ms == original.measured_step_time_ms and example.step_time_ms == original.step_time_ms
    elsewhere = [stepcast.predict(trace=place, platform="dgx-h100").step_time_ms for place in (folder, traces)]
    assert elsewhere[0] == elsewhere[1]


def test_own_platforms_come_first(tmp_path):
    document = stepcast.platforms("dgx-h100").to_dict()
    document["description"] = "of this test"
    (tmp_path / "dgx-h100.json").write_text(json.dumps(document))
    script = "import stepcast; print(stepcast.platforms('dgx-h100').description)"
    environment = {**os.environ, "STEPCAST_PLATFORMS": str(tmp_path)}
    assert output(sys.executable, "-c", script, env=environment).stdout == "of this test\n"


def test_types_are_declared():
    assert (PACKAGE / "py.typed").is_file()
    stub = (PACKAGE / "__init__.pyi").read_text()
    for name in stepcast.__all__:
        assert re.search(rf"\b{name}\b", stub), name


def test_importing_costs_nothing_until_something_is_asked_for():
    script = "import sys, stepcast; print('stepcast._stepcast' in sys.modules, 'torch' in sys.modules)"
    assert output(sys.executable, "-c", script).stdout == "False False\n"


def test_collecting_without_torch_says_so():
    done = output(sys.executable, "-m", "stepcast.collect", "all", "--out", "x")
    if done.returncode == 2:
        assert done.stderr.count("\n") == 1 and "pip install torch" in done.stderr


def test_answers_have_the_types_of_the_schemas():
    stub = (PACKAGE / "_answers.pyi").read_text()
    assert "step_time_ms: float" in stub and "class Replay(Answer):" in stub and "simulated: Forecast" in stub
    compile(stub, "_answers.pyi", "exec")


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "docs" / "schemas").glob("*.json")))
def test_no_key_of_a_document_is_hidden_by_a_method(name):
    from stepcast import _answers

    document = json.loads((ROOT / "docs" / "schemas" / f"{name}.json").read_text())
    cls = _answers._CLASSES.get(f"stepcast.{name}", stepcast.Answer)
    named = {key for key in document.get("properties", {}) if key in dir(cls)}
    # Replay makes Forecasts of two; Forecast answers three before its document is written, with what it says.
    allowed = {"simulated", "measured", "step_time_ms", "step_time_p10_ms", "step_time_p90_ms"}
    assert all(key in allowed and isinstance(getattr(cls, key), property) for key in named)

    def keys(schema):
        if isinstance(schema, dict):
            yield from schema.get("properties", {}) if isinstance(schema.get("properties"), dict) else ()
            for value in schema.values():
                yield from keys(value)
        elif isinstance(schema, list):
            for value in schema:
                yield from keys(value)

    assert not {key for key in keys(document) if key in dir(stepcast.Record)}
