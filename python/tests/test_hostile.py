"""Whatever comes in, an exception comes out: never a crash, and the sentence is that of the program."""

import pytest

import stepcast


class Raises:
    def __index__(self):
        raise RuntimeError("from __index__")

    def __iter__(self):
        raise RuntimeError("from __iter__")

    def __fspath__(self):
        raise RuntimeError("from __fspath__")


class Endless:
    def __iter__(self):
        while True:
            yield 1


class OddText(str):
    pass


@pytest.mark.parametrize(
    "keywords, flags",
    [
        ({"model": "llama-3-8", "gpus": 8}, "--model llama-3-8 --gpus 8"),
        ({"model": "llama-3-8b", "gpus": 0}, "--model llama-3-8b --gpus 0"),
        ({"model": "llama-3-8b", "gpus": -8}, "--model llama-3-8b --gpus -8"),
        ({"model": "llama-3-8b", "gpus": 8, "tp": 3}, "--model llama-3-8b --gpus 8 --tp 3"),
        ({"model": "llama-3-8b", "gpus": 8, "gbs": 0}, "--model llama-3-8b --gpus 8 --gbs 0"),
        ({"model": "llama-3-8b", "gpus": 8, "gbs": float("nan")}, "--model llama-3-8b --gpus 8 --gbs nan"),
        ({"model": "llama-3-8b", "gpus": 8, "train_tokens": float("inf")}, "--model llama-3-8b --gpus 8 --train-tokens inf"),
        ({"model": "llama-3-8b", "gpus": 8, "what_if": "nvlnk=2x"}, "--model llama-3-8b --gpus 8 --what-if nvlnk=2x"),
        ({"model": "llama-3-8b", "gpus": 8, "no_such_flag": 1}, "--model llama-3-8b --gpus 8 --no-such-flag=1"),
        ({"model": "llama-3-8b", "gpus": 8, "step": 3}, "--model llama-3-8b --gpus 8 --step 3"),
        ({"model": "llama-3-8b", "gpus": 8, "platform": "dgx-h10"}, "--model llama-3-8b --gpus 8 --platform dgx-h10"),
        ({"model": "llama-3-8b", "gpus": 10**30}, "--model llama-3-8b --gpus " + "1" + "0" * 30),
        ({"gpus": 8}, "--gpus 8"),
    ],
)
def test_the_sentence_is_that_of_the_program(cli, keywords, flags):
    with pytest.raises(stepcast.InputError) as problem:
        stepcast.predict(**keywords)
    assert str(problem.value) == cli("predict", *flags.split(), "--json")


@pytest.mark.parametrize("value", [object(), {"a": 1}, b"bytes", {1, 2}, 1j, [[1]], [None], Raises(), Endless(), "a\0b",
                                   "\ud800", lambda: 1, type, range(10**9), "x" * 10**6, [0] * 10**6, OddText("llama")])
@pytest.mark.parametrize("keyword", ["model", "gpus", "platform", "what_if", "num_layers", "trace", "train_tokens"])
def test_values_of_any_kind(keyword, value):
    with pytest.raises((stepcast.Error, TypeError, ValueError, RuntimeError)):
        stepcast.predict(**{"model": "llama-3-8b", "gpus": 8, keyword: value})


@pytest.mark.parametrize("call", [stepcast.replay, stepcast.inspect, lambda place: stepcast.calibrate("kernels", place)])
@pytest.mark.parametrize("place", ["/nowhere", "", "--help", "-x", "\n", "a\x1b[31mb", object(), None, 3])
def test_places_of_any_kind(call, place):
    with pytest.raises((stepcast.Error, TypeError)):
        call(place)


def test_nothing_at_all():
    for call in (stepcast.replay, stepcast.inspect, stepcast.predict, stepcast.plan, stepcast.shard):
        with pytest.raises(stepcast.InputError):
            call()


def test_keywords_for_people_are_refused():
    for word in ("json", "help"):
        with pytest.raises(TypeError, match="for people"):
            stepcast.predict("llama-3-8b", gpus=8, **{word: True})


def test_keys_that_are_no_identifiers():
    with pytest.raises(stepcast.InputError):
        stepcast.predict("llama-3-8b", **{"gpus 8 --tp": 1, "": 2})


@pytest.mark.parametrize("document", [[], 1, None, {}, {"schema": 3}, {"schema": "stepcast.forecast/1"},
                                      {"schema": "stepcast.forecast/1", "step_time_ms": float("nan")},
                                      {"schema": "stepcast.forecast/1", "x": object()}])
def test_documents_of_any_kind(document):
    try:
        answer = stepcast.from_dict(document)
    except (TypeError, ValueError):
        return
    repr(answer), str(answer), answer._repr_html_(), answer.tables


def test_deep_documents():
    deep = {}
    for _ in range(100000):
        deep = {"a": deep}
    with pytest.raises((ValueError, RecursionError)):
        stepcast.from_dict(deep)
    with pytest.raises((ValueError, RecursionError)):
        stepcast.from_json("[" * 10**6)
