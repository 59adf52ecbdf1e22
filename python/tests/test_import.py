"""Ranks as small files, made by workers."""

from concurrent.futures import ProcessPoolExecutor

import pytest

import stepcast


def test_replay_reads_them_like_the_traces(traces, tmp_path):
    ranks = [[traces / f"kineto_rank{r}.json.gz", traces / f"et_rank{r}.json.gz"] for r in range(4)]
    with ProcessPoolExecutor(2) as executor:
        names = stepcast.import_ranks(ranks, tmp_path, executor)
    assert names == [str(tmp_path / f"kineto_rank{r}.step") for r in range(4)]
    assert stepcast.replay(tmp_path).simulated.step_time_ms == stepcast.replay(traces).simulated.step_time_ms


def test_a_trace_that_cannot_be_read_is_named(traces, tmp_path):
    with pytest.raises(stepcast.InputError, match="README.md"):
        stepcast.import_ranks([traces / "README.md"], tmp_path)


def test_two_ranks_are_not_written_into_one_file(traces, tmp_path):
    with pytest.raises(stepcast.InputError, match="same name"):
        stepcast.import_ranks([traces / "kineto_rank0.json.gz"] * 2, tmp_path)
