"""Whatever comes in, an exception comes out: never a crash, and the sentence is that of the program."""

import copy
import gc
import os
import pickle
import threading

import pytest

import stepcast
from stepcast import _stepcast


class Raises:
    def __index__(self):
        raise RuntimeError("from __index__")

    def __iter__(self):
        raise RuntimeError("from __iter__")

    def __fspath__(self):
        raise RuntimeError("from __fspath__")


class RaisesElsewhere:
    def __float__(self):
        raise LookupError("from __float__")

    def __str__(self):
        raise LookupError("from __str__")

    __repr__ = __str__


class NamesNoText:
    def __fspath__(self):
        return 3


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
                                   "\ud800", RaisesElsewhere(), NamesNoText(), lambda: 1, type, range(10**9), "x" * 10**6, [0] * 10**6, OddText("llama")])
@pytest.mark.parametrize("keyword", ["model", "gpus", "platform", "what_if", "num_layers", "trace", "train_tokens"])
def test_values_of_any_kind(keyword, value):
    with pytest.raises((stepcast.Error, TypeError, ValueError, RuntimeError, LookupError)):
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


def test_names_that_are_no_unicode(tmp_path):
    """A file may have such a name; it cannot be said in an answer, so it is refused."""
    name = os.fsencode(tmp_path) + b"/\xff.json"
    open(name, "wb").close()
    for place in (os.fsdecode(name), tmp_path / "\udcff.json"):
        for call in (stepcast.inspect, stepcast.replay, stepcast.sweep):
            with pytest.raises(stepcast.InputError):
                call(place)
    with pytest.raises((TypeError, stepcast.InputError)):
        stepcast.inspect(name)
    try:
        stepcast.inspect(tmp_path)  # holds nothing else
    except (stepcast.Error, ValueError):
        pass


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    from conftest import ROOT

    traces = ROOT / "examples" / "dlrm_4gpu"
    forecast = stepcast.predict("llama-3-8b", gpus=8)
    return [
        forecast,
        stepcast.predict(trace=traces),
        stepcast.replay(traces),
        stepcast.plan("llama-3-8b", gpus=8, gbs=32),
        stepcast.shard("dlrm-mlperf-v1", gpus=8),
        stepcast.inspect(traces),
        stepcast.compare(forecast, stepcast.predict("llama-3-8b", gpus=16)),
        stepcast.platforms("dgx-h100"),
    ]


def test_copies_are_equal(answers):
    for answer in answers:
        for made in (copy.copy(answer), copy.deepcopy(answer), pickle.loads(pickle.dumps(answer))):
            assert made == answer and type(made) is type(answer) and hash(made) == hash(answer)
            assert made.tables == answer.tables
            for name in answer.tables:
                assert made.table(name).to_dict() == answer.table(name).to_dict()


def test_nothing_of_an_answer_can_be_changed(answers):
    for answer in answers:
        with pytest.raises(AttributeError):
            answer.schema = "another"
        with pytest.raises(AttributeError):
            del answer.schema
        with pytest.raises(TypeError):
            answer["schema"] = "another"
        document = answer.to_dict()
        answer.to_dict().clear()
        assert answer.to_dict() == document


def garbage(value):
    """The document with one place after the other holding something else."""
    others = [None, {}, [], "x", -1, 1e308, True]
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {other: v for other, v in value.items() if other != key}
            for other in others:
                yield {**value, key: other}
            for changed in garbage(inner):
                yield {**value, key: changed}
    elif isinstance(value, list) and value:
        yield value + [None]
        for changed in garbage(value[0]):
            yield [changed, *value[1:]]


def test_documents_with_wrong_places(answers):
    for answer in answers[:3]:
        document = answer.to_dict()
        if "simulated" in document:
            document = document["simulated"]
        for changed in garbage(document):
            try:
                made = stepcast.from_dict(changed)
                str(made), made._repr_html_()
            except (stepcast.Error, TypeError, ValueError, LookupError, AttributeError):
                pass


def test_tables_of_any_text():
    for text in ("", "\n", ",", '"', '"a', "a,b\n1", "a\n1,2,3\n", "a\0b\n\0\n", "a\n" + "1" * 10**6, "a," * 10000, "a\r\n1\r\n"):
        table = _stepcast.Table.from_csv(text)
        assert len(table.csv()) > 0
        for name in table.column_names:
            assert len(table.column(name)) == len(table)
        streams = [table.__arrow_c_stream__() for _ in range(3)] + [table.__arrow_c_schema__()]
        del table
        gc.collect()
        del streams  # nobody took them
    with pytest.raises((TypeError, ValueError)):
        _stepcast.Table.from_csv("\ud800")
    with pytest.raises(KeyError):
        _stepcast.Table.from_csv("a\n1\n").column("b")


def test_objects_that_were_never_made():
    for kind in (_stepcast.Forecast, _stepcast.Table):
        with pytest.raises(TypeError):
            kind()
        empty = kind.__new__(kind)
        for name in ("json", "text", "html", "csv", "__len__", "__arrow_c_stream__", "step_time_ms", "column_names"):
            with pytest.raises((TypeError, AttributeError)):
                getattr(empty, name)()


def test_inside_arguments_of_any_kind():
    for call in (_stepcast.run, _stepcast.predict, _stepcast.predict_timed, _stepcast.read_forecast, _stepcast.sweep_points,
                 _stepcast.sweep_rows):
        for arguments in ((), (None,), (3,), ("x",), ([],), ([1], True, None), (["predict"], None, 3), ([None], "", object()),
                          (["\ud800"], False, None)):
            try:
                call(*arguments)
            except (TypeError, ValueError, RuntimeError):
                pass
    for document in ("", "{", "[]", "null", '{"schema": "stepcast.forecast/1"}', "\0", "[" * 10**6):
        with pytest.raises(ValueError):
            _stepcast.read_forecast(document)
    for point in ("", "{", "{}", '{"model": []}', '{"model": "x", "gpus": "y"}'):
        try:
            _stepcast.sweep_rows([point], ".")
        except (ValueError, RuntimeError):
            pass


def test_many_threads_at_once(answers, traces):
    """The same answers read, and calls of every kind, side by side."""
    shared = stepcast.predict("llama-3-8b", gpus=8)  # its document is not written yet
    expected = answers[0].to_dict()
    wrong = []

    def work(which):
        try:
            for _ in range(3):
                assert shared.to_dict() == expected and str(shared)
                assert stepcast.predict("llama-3-8b", gpus=8).to_dict() == expected
                assert len(answers[3].table("priced").to_dict()) > 3
                with pytest.raises(stepcast.InputError):
                    stepcast.predict("llama-3-8b", gpus=0)
                if which % 2:
                    stepcast.replay(traces, progress=lambda what: None)
        except BaseException as problem:  # noqa: BLE001: told by the thread that waits
            wrong.append(problem)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
