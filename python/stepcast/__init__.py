"""Forecasts the time of one training iteration of machine-learning jobs on many GPUs.

    import stepcast

    f = stepcast.predict(model="llama-3-70b", platform="dgx-h100", gpus=512, tp=4, pp=4, gbs=512)
    f.step_time_ms, f.memory.verdict, f.rank_classes[0].computation_ms

    r = stepcast.replay("traces/")
    p = stepcast.plan(model="gpt3-175b", platform="dgx-a100", gpus=1024, gbs=1536)
    p.table("priced").to_pandas()

Each function has the flags of the verb with the same name as keywords (`--train-tokens 1T` is `train_tokens=1e12`), and
returns the answer that this verb prints with `--json`. `answer.to_dict()` is the document of docs/json.md, and its keys are
attributes. docs/python.md has the details.
"""

_HOME = {
    "Answer": "_answers",
    "Calibration": "_answers",
    "Comparison": "_answers",
    "Forecast": "_answers",
    "Inspection": "_answers",
    "Plan": "_answers",
    "Record": "_answers",
    "Replay": "_answers",
    "Sharding": "_answers",
    "Table": "_answers",
    "from_dict": "_answers",
    "from_json": "_answers",
    "Differs": "_errors",
    "DoesNotFit": "_errors",
    "Error": "_errors",
    "InputError": "_errors",
    "MachineError": "_errors",
    "Resharder": "_verbs",
    "calibrate": "_verbs",
    "compare": "_verbs",
    "dryrun": "_verbs",
    "example_trace": "_verbs",
    "import_ranks": "_verbs",
    "inspect": "_verbs",
    "models": "_verbs",
    "plan": "_verbs",
    "platforms": "_verbs",
    "predict": "_verbs",
    "predict_series": "_verbs",
    "replay": "_verbs",
    "shard": "_verbs",
    "sweep": "_verbs",
    "what_to_change": "_verbs",
    "capture": "recording",
    "hf_callback": "recording",
    "patch_optimizer": "recording",
}
__all__ = ["__version__", *_HOME]


def __getattr__(name):
    # Modules that need the extension are loaded on first use, because recording and collecting work without it.
    from importlib import import_module

    if name == "__version__":
        value = import_module("stepcast._stepcast").version()
    elif name in _HOME:
        value = getattr(import_module(f"stepcast.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module 'stepcast' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return __all__
