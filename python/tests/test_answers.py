"""Answers are the documents of the program, whatever way they were made."""

import json
import pickle
import threading

import pytest

import stepcast

# Keywords of predict(), and the same as flags.
DESCRIBED = [
    ({"model": "llama-3-8b", "gpus": 8}, "--model llama-3-8b --gpus 8"),
    (
        {"model": "llama-3-70b", "platform": "dgx-h100", "gpus": 512, "tp": 4, "pp": 4, "gbs": 512, "seq": 8192, "mbs": 1,
         "bf16": True, "sequence_parallel": True, "use_distributed_optimizer": True, "train_tokens": 1e12,
         "gpu_hour_price": 2},
        "--model llama-3-70b --platform dgx-h100 --gpus 512 --tp 4 --pp 4 --gbs 512 --seq 8192 --mbs 1 --bf16 "
        "--sequence-parallel --use-distributed-optimizer --train-tokens 1T --gpu-hour-price 2",
    ),
    ({"model": "gpt3-175b", "nodes": 16, "tp": 8, "pp": 8, "what_if": ["nvlink=2x", "network=2x"]},
     "--model gpt3-175b --nodes 16 --tp 8 --pp 8 --what-if nvlink=2x,network=2x"),
    ({"model": "mixtral-8x7b", "gpus": 64, "ep": 8, "tp": 2, "expert_load": "power-law:1.2", "gbs": 128},
     "--model mixtral-8x7b --gpus 64 --ep 8 --tp 2 --expert-load power-law:1.2 --gbs 128"),
    ({"model": "mixtral-8x7b", "gpus": 16, "ep": 8, "gbs": 64, "train_tokens": 1e12},
     "--model mixtral-8x7b --gpus 16 --ep 8 --gbs 64 --train-tokens 1T"),
    ({"model": "mixtral-8x7b", "gpus": 16, "tp": 1, "pp": 1, "ep": 8, "mbs": 1, "gbs": 64, "sharding": "zero1", "layout": "as-planned"},
     "--model mixtral-8x7b --gpus 16 --tp 1 --pp 1 --ep 8 --mbs 1 --gbs 64 --sharding zero1 --layout as-planned"),
    ({"num_layers": 24, "hidden_size": 2048, "num_attention_heads": 16, "seq_length": 2048, "vocab_size": 50304,
      "max_position_embeddings": 2048, "gpus": 16, "platform": "dgx-a100", "recompute_granularity": "full",
      "recompute_method": "uniform", "recompute_num_layers": 1},
     "--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --vocab-size 50304 "
     "--max-position-embeddings 2048 --gpus 16 --platform dgx-a100 --recompute-granularity full --recompute-method uniform "
     "--recompute-num-layers 1"),
    ({"model": "llama-3-8b", "gpus": 8, "dtype": "fp8", "framework": "torchtitan"},
     "--model llama-3-8b --gpus 8 --dtype fp8 --framework torchtitan"),
    ({"model": "llama-3-8b", "gpus": 16, "tp": 2, "pp": 2, "vp": 2, "gbs": 32, "recompute": "full", "sp": "on", "sharding": "zero1"},
     "--model llama-3-8b --gpus 16 --tp 2 --pp 2 --vp 2 --gbs 32 --recompute full --sp on --sharding zero1"),
    ({"model": "llama-3-8b", "gpus": 16, "pp": 4, "gbs": 64, "schedules": "zero-bubble"},
     "--model llama-3-8b --gpus 16 --pp 4 --gbs 64 --schedules zero-bubble"),
    ({"model": "llama-3-8b", "gpus": 8, "explain": True}, "--model llama-3-8b --gpus 8 --explain"),
    ({"model": "llama-3-8b", "gpus": 8, "sensitivity": True}, "--model llama-3-8b --gpus 8 --sensitivity"),
    ({"model": "dlrm-mlperf-v1", "gpus": 8}, "--model dlrm-mlperf-v1 --gpus 8"),
    ({"model": "dlrm-mlperf-v1", "gpus": [4, 8]}, "--model dlrm-mlperf-v1 --gpus 4,8"),
]


@pytest.mark.parametrize("keywords, flags", DESCRIBED, ids=[str(i) for i in range(len(DESCRIBED))])
def test_predictions_are_those_of_the_program(cli, keywords, flags):
    # Which predict() of plain keywords does not look for.
    assert {**stepcast.predict(**keywords).to_dict(), "what_to_change": None} == {
        **cli("predict", *flags.split(), "--json"), "what_to_change": None}


def test_what_to_change_is_that_of_the_program(cli):
    advice = stepcast.what_to_change("llama-3-8b", gpus=64, pp=4)
    first, asked = advice.actions[0], cli("predict", "--model", "llama-3-8b", "--gpus", 64, "--pp", 4, "--json")
    assert advice.sentence == asked["what_to_change"]["sentence"]
    assert first.saved_ms == asked["what_to_change"]["actions"][0]["saved_ms"]
    assert first.step_time_ms == cli(*first.command.split()[1:], "--json")["step_time_ms"]


def test_what_to_change_of_traces_is_that_of_the_program(cli, traces):
    advice = stepcast.what_to_change(trace=traces)
    assert advice.sentence == cli("predict", "--trace", traces, "--json")["what_to_change"]["sentence"]
    replayed = stepcast.replay(traces, advice="on").simulated.what_to_change
    assert [action.saved_ms for action in advice.actions] == [action.saved_ms for action in replayed.actions]


def test_second_prediction_of_a_session_is_the_same():
    once = stepcast.predict("llama-3-8b", gpus=16, tp=2)
    assert stepcast.predict("llama-3-8b", gpus=16, tp=2) == once


STEP_TIMES = [{"tp": 2, "gbs": 16}, {"tp": 2, "gbs": 65536}, {"pp": 4, "gbs": 64, "vp": 2, "what_if": ["network=2x"]},
              {"recompute": "full", "sharding": "zero3", "tp": 1}, {}]


@pytest.mark.parametrize("options", STEP_TIMES, ids=str)
def test_step_times_are_those_of_the_document_before_it_is_written(options):
    forecast = stepcast.predict("llama-3-8b", gpus=16, **options)
    before = [forecast.step_time_ms, forecast.step_time_p10_ms, forecast.step_time_p90_ms]
    document = forecast.to_dict()
    assert before == [document["step_time_ms"], document["step_time_p10_ms"], document["step_time_p90_ms"]]
    assert before == [forecast.step_time_ms, forecast.step_time_p10_ms, forecast.step_time_p90_ms]


def test_replays_are_those_of_the_program(cli, traces):
    replay = stepcast.replay(traces)
    assert replay.to_dict() == cli("replay", traces, "--advice", "off", "--json")
    assert isinstance(replay.simulated, stepcast.Forecast)
    assert replay.step_time_ms == pytest.approx(replay.simulated.step_time_ms, rel=1e-6)
    assert str(replay.simulated).startswith("Replay") or "Step time" in str(replay.simulated)


def test_predictions_from_traces_are_those_of_the_program(cli, traces):
    asked = stepcast.predict(trace=traces, platform="dgx-h100", what_if=["host=2x"])
    assert asked.to_dict() == cli("predict", "--trace", traces, "--platform", "dgx-h100", "--what-if", "host=2x", "--advice", "off",
                                  "--json")


def test_plans_are_those_of_the_program(cli):
    plan = stepcast.plan("llama-3-8b", platform="dgx-h100", gpus=16, gbs=64, top=3, tp=[1, 2, 4])
    assert plan.to_dict() == cli("plan", "--model", "llama-3-8b", "--platform", "dgx-h100", "--gpus", 16, "--gbs", 64,
                                 "--top", 3, "--tp", "1,2,4", "--json")
    priced = plan.table("priced")
    assert len(priced) == plan.layouts_counted.priced
    assert plan.tables[0] == "priced" and "layouts" in plan.tables
    first = {name: values[0] for name, values in priced.to_dict().items()}
    same = plan.layouts[0]
    assert first["sequence_parallel"] is same.sequence_parallel and first["megatron_flags"] == same.megatron_flags
    for name in ("step_time_ms", "step_time_p10_ms", "step_time_p90_ms", "mfu"):
        assert first[name] == pytest.approx(same[name], rel=1e-4)


def test_shardings_are_those_of_the_program(cli):
    # The search stops after so many steps, not after so much time.
    same = {"gpus": 8, "evaluations": 50, "seconds": 1e6}
    sharding = stepcast.shard("dlrm-mlperf-v1", **same)
    assert sharding.to_dict() == cli("shard", "--model", "dlrm-mlperf-v1", "--gpus", 8, "--evaluations", 50, "--seconds",
                                     "1e6", "--json")
    assert repr(sharding).startswith("Sharding(")


def test_a_resharder_keeps_the_plan_that_runs(tmp_path):
    job = {"gpus": 4, "platform": "hpc-4xa100-40gb", "global_batch_size": 4096, "generate": "2021-heavy"}
    naive, even = tmp_path / "naive.json", tmp_path / "even.json"
    first = stepcast.shard(sharders="naive", output=naive, **job).shardings[0]
    stepcast.shard(sharders="size_lookup", output=even, **job)
    resharder = stepcast.Resharder(plan=naive, **job)
    answer = resharder.decide(proposed=[even], output=tmp_path / "next.json")
    now = next(one for one in answer.shardings if one.name == "now")
    assert now.step_time_ms == first.step_time_ms and now.moved_tables == 0
    proposed = next(one for one in answer.shardings if one.name == str(even))
    assert proposed.moved_tables > 0 and proposed.moved_bytes > 0
    best = answer.shardings[0]
    assert best.expected_step_time_ms < now.expected_step_time_ms and resharder.plan == tmp_path / "next.json"
    again = resharder.decide()
    assert [one.name for one in again.shardings] == ["now"] and again.shardings[0].step_time_ms == best.step_time_ms
    with pytest.raises(stepcast.InputError, match="no_such.json"):
        stepcast.Resharder(plan=tmp_path / "no_such.json", **job).decide()


def test_inspections_are_those_of_the_program(cli, traces):
    file = traces / "kineto_rank0.json.gz"
    answer = stepcast.inspect(file)
    assert answer.to_dict() == cli("inspect", file, "--json")
    assert answer.files[0].usable_for_replay is True


def test_calibrations_are_those_of_the_program(cli, tmp_path):
    rows = tmp_path / "all_reduce.csv"
    sizes = [2**i for i in range(10, 28)]
    lines = ["op,size_bytes,n_ranks,time_us"] + [f"all_reduce,{n},8,{20 + n / 200e3:.3f}" for n in sizes]
    rows.write_text("\n".join(lines) + "\n")
    document = cli("calibrate", "collectives", rows, "--platform", "dgx-h100", "-o", tmp_path / "a.json", "--json")
    if isinstance(document, str):  # the line that says what is wrong is the same, too
        with pytest.raises(stepcast.InputError) as problem:
            stepcast.calibrate("collectives", rows, platform="dgx-h100", output=tmp_path / "b.json")
        assert str(problem.value) == document
        return
    answer = stepcast.calibrate("collectives", rows, platform="dgx-h100", output=tmp_path / "b.json")
    assert isinstance(answer, stepcast.Calibration)
    assert {**answer.to_dict(), "platform": None} == {**document, "platform": None}


def test_lists_of_what_is_known(cli):
    assert stepcast.models().to_dict() == cli("models", "--json")
    assert stepcast.platforms().to_dict() == cli("platforms", "--json")
    assert stepcast.platforms("dgx-h100").to_dict() == cli("platforms", "dgx-h100", "--json")


def test_documents_become_answers_again(traces):
    forecast = stepcast.predict("llama-3-8b", gpus=8)
    again = stepcast.from_dict(forecast.to_dict())
    assert type(again) is stepcast.Forecast and again == forecast
    assert str(again) == str(forecast)
    assert stepcast.from_json(forecast.to_json()) == forecast
    assert pickle.loads(pickle.dumps(forecast)) == forecast
    replay = stepcast.replay(traces)
    assert stepcast.Replay.from_dict(replay.to_dict()) == replay
    with pytest.raises(stepcast.InputError, match="expected that of a Plan"):
        stepcast.Plan.from_dict(replay.to_dict())
    broken = forecast.to_dict()
    del broken["step_time_ms"]
    with pytest.raises(ValueError, match="step_time_ms"):
        stepcast.from_dict(broken)


def test_answers_cannot_be_changed():
    forecast = stepcast.predict("llama-3-8b", gpus=8)
    with pytest.raises(AttributeError, match="cannot be changed"):
        forecast.step_time_ms = 1
    with pytest.raises(AttributeError):
        del forecast.memory
    with pytest.raises(TypeError):
        forecast.rank_classes[0] = None
    forecast.to_dict()["notes"].append("mine")
    assert "mine" not in forecast.notes
    with pytest.raises(AttributeError, match="it has schema, version"):
        forecast.step_time_us
    assert {forecast: 1}[stepcast.from_dict(forecast.to_dict())] == 1


@pytest.mark.parametrize("framework", ["megatron", "torchtitan", "deepspeed"])
def test_plans_show_themselves(framework):
    plan = stepcast.plan("llama-3-8b", gpus=16, gbs=64, framework=framework)
    assert repr(plan).startswith(f"Plan(llama-3-8b on 16 x H100-SXM5-80GB: {plan.chosen_layout.layout}")
    page = plan._repr_html_()
    assert "<th>p90</th>" in page and page.count("<tr>") == len(plan.layouts) + 1


def test_forecasts_show_themselves():
    forecast = stepcast.predict("llama-3-8b", gpus=8)
    assert repr(forecast).startswith("Forecast(llama-3-8b on 8 x H100-SXM5-80GB: ")
    assert "where the time goes" in str(forecast)
    page = forecast._repr_html_()
    assert "<svg" in page and "computation: gemm" in page
    whole = sum(ms for _, ms in forecast.parts())
    assert whole == pytest.approx(forecast.rank_classes[forecast.critical_class].window_ms, rel=1e-6)


def test_what_does_not_fit():
    with pytest.raises(stepcast.DoesNotFit, match="does not fit in the memory") as problem:
        stepcast.predict("llama-3-70b", gpus=8, tp=1, pp=1, mbs=1, gbs=64, require_fit=True)
    assert problem.value.answer.memory.verdict == "does not fit"


def test_threads_share_a_session():
    found = []

    def predict(gpus):
        found.append((gpus, stepcast.predict("llama-3-8b", gpus=gpus, tp=2).step_time_ms))

    threads = [threading.Thread(target=predict, args=(8 * (1 + i % 3),)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12 and len(set(found)) == 3


def test_a_changed_platform_file_is_read_again(tmp_path):
    file = tmp_path / "mine.json"
    document = stepcast.platforms("dgx-h100").to_dict()
    document["name"] = "mine"
    file.write_text(json.dumps(document))
    before = stepcast.predict("llama-3-8b", platform=file, gpus=8, tp=2)
    by_name = stepcast.predict("llama-3-8b", platform=str(file), gpus=8, tp=2)
    assert by_name == before


def test_comparisons_are_those_of_the_program(cli, tmp_path):
    a = stepcast.predict("llama-3-8b", gpus=8, tp=2)
    b = stepcast.predict("llama-3-8b", gpus=8, tp=2, what_if="nvlink=2x")
    files = []
    for name, answer in (("a", a), ("b", b)):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(answer.to_json())
    document = cli("compare", *files, "--json")
    assert stepcast.compare(*files).to_dict() == document
    of_answers = stepcast.compare(a, b)
    assert of_answers.step_difference_ms == document["step_difference_ms"] < 0
    with pytest.raises(stepcast.Differs) as problem:
        stepcast.compare(a, b, fail_above="0.01%")
    assert problem.value.answer == of_answers or problem.value.answer.parts == of_answers.parts


def test_layouts_over_pools_have_bands():
    forecast = stepcast.plan("llama-3-8b", gpus="8xh100+8xa100", gbs=64, seq=4096, top=3)
    of = [[one.step_time_p10_ms, one.step_time_ms, one.step_time_p90_ms] for one in (forecast.pool_layouts[0], forecast)]
    assert of[0] == pytest.approx(of[1], rel=1e-9) and of[0][0] < of[0][1] < of[0][2]
