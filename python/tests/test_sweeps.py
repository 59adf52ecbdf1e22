"""Sweeps by executors give the rows of the program."""

import json
import subprocess
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import stepcast
from stepcast._program import PROGRAM

SPEC = {"model": ["llama-3-8b", "gpt3-2.7b"], "platform": "dgx-h100", "gpus": [8, 16], "tp": [1, 2, 3], "gbs": 64}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Of `stepcast sweep`, in the order of the spec."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "spec.json").write_text(json.dumps(SPEC))
    for words in (["-o", "out"], ["-o", "out", "--merge", "all.jsonl"]):
        subprocess.run([PROGRAM, "sweep", "spec.json", *words], cwd=folder, check=True, capture_output=True)
    return [json.loads(line) for line in (folder / "all.jsonl").read_text().splitlines()]


def of_rows(rows):
    return stepcast.Table.of_rows(rows).to_dict()


def test_here(rows):
    assert len(rows) == 12
    table = stepcast.sweep(SPEC)
    assert table.to_dict() == of_rows(rows)
    assert sum(error is not None for error in table["error"]) >= 2  # 3 divides no number of heads


def test_parquet(rows, tmp_path):
    polars = pytest.importorskip("polars")
    lines = tmp_path / "all.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = stepcast.Table.of_jsonl(lines)
    assert table.to_dict() == of_rows(rows)
    table.to_parquet(tmp_path / "all.parquet")
    assert polars.read_parquet(tmp_path / "all.parquet").to_dict(as_series=False) == table.to_dict()
    with pytest.raises(stepcast.InputError, match="absent"):
        table.to_parquet(tmp_path / "absent" / "all.parquet")
    lines.write_text("[1, 2]\n")
    with pytest.raises(stepcast.InputError, match="expected what sweep --merge writes"):
        stepcast.Table.of_jsonl(lines)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.jsonl", "all.parquet"]


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_executors(rows, kind):
    with kind(2) as executor:
        assert stepcast.sweep(SPEC, executor).to_dict() == of_rows(rows)


def test_any_executor(rows):
    class AtOnce:
        def submit(self, function, *arguments):
            future = Future()
            future.set_result(function(*arguments))
            return future

    said = []
    assert stepcast.sweep(SPEC, AtOnce(), progress=said.append).to_dict() == of_rows(rows)
    assert said[-1] == "sweep: 12 of 12 points"


def test_dask(rows):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            assert stepcast.sweep(SPEC, client.get_executor()).to_dict() == of_rows(rows)


def test_files(tmp_path, rows):
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    assert stepcast.sweep(tmp_path / "spec.json").to_dict() == of_rows(rows)


@pytest.mark.parametrize("spec, says", [
    ({"modle": "llama-3-8b"}, "modle"),
    ({"model": []}, "model"),
    ({"model": float("nan")}, "not a sweep"),
    ({"model": object()}, "not a sweep"),
    ("/nowhere.toml", "nowhere"),
])
def test_what_is_no_sweep(spec, says):
    with pytest.raises(stepcast.InputError, match=says):
        stepcast.sweep(spec)


def test_a_worker_that_fails():
    class Broken:
        def submit(self, function, *arguments):
            future = Future()
            future.set_exception(OSError("the worker is gone"))
            return future

    with pytest.raises(OSError, match="the worker is gone"):
        stepcast.sweep(SPEC, Broken())
