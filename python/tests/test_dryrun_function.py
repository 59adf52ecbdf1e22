"""`stepcast.dryrun(step)`: a function, run dry in a process of its own; where PyTorch and cloudpickle are installed."""

import gzip
import importlib.util
import json
import os
import re
import sys

import pytest

from conftest import ROOT
from stepcast._program import PROGRAM
from stepcast.dryrun import function
from stepcast.dryrun.launch import DryRunError, Gpu, Options, dry_run, libraries


GPU = Gpu("NVIDIA H100 80GB HBM3", 80 << 30, 132, 90, 50 << 20, 8)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if os.environ.get("STEPCAST_SKIP_TORCH") == "1" or any(importlib.util.find_spec(n) is None for n in ("torch", "cloudpickle")):
        pytest.skip("PyTorch or cloudpickle is not installed, or STEPCAST_SKIP_TORCH=1")
    try:
        libraries()
    except DryRunError as problem:
        pytest.skip(str(problem))
    return tmp_path


@pytest.fixture
def recorded(here):
    """What a dry run of a function of this text wrote: its header, and how often each operator ran."""

    def run(text, name="step", gpus=1):
        cell = {"__name__": "__main__"}
        exec(compile(text, "<cell 1>", "exec"), cell)
        function.write(cell[name], str(here / "function"))
        options = Options(gpus=gpus, out=str(here / "out"), progress=False)
        dry_run([sys.executable, function.__file__, str(here / "function")], options, GPU)
        with gzip.open(here / "out" / "rank0.et.json.gz") as file:
            content = json.load(file)
        return content["stepcast"], [n["name"] for n in content["nodes"]]

    return run


MODEL = """
import torch, torch.nn as nn
model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024))
model[2].weight = model[0].weight
"""
STEP = MODEL + """
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
def step():
    model.to("cuda")
    model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_function_and_the_model_of_another_cell(recorded):
    header, names = recorded(STEP)
    assert (header["program"], header["step"], header["compiled"]) == (["stepcast.dryrun(step)"], 3, False)
    assert names.count("aten::addmm") == 2 and names.count("aten::mm") == 3
    weights = 4 * (1024 * 1024 + 2 * 1024)  # one weight for both layers: tied tensors stay so
    assert header["start_allocated_bytes"] < 4.1 * weights + (64 << 20)  # with gradients, two moments, and what cuBLAS takes


def test_a_function_that_builds_and_trains(recorded):
    text = STEP.replace("model.to", "global optimizer\n" + MODEL.replace("\n", "\n    ") +
                        "\n    optimizer = torch.optim.AdamW(model.parameters(), fused=True)\n    model.to")
    text = text.replace("global optimizer\n", "")
    header, names = recorded(text)  # the second call launches what the first did, without its building
    assert header["step"] == 2 and names.count("aten::addmm") == 2
    assert not any("copy" in n and "_to_copy" in n for n in names)


def test_a_function_of_many_ranks_starts_its_group_once(recorded):
    header, names = recorded("import torch, torch.nn as nn, torch.distributed as dist\n"
                             "def step():\n"
                             "    dist.init_process_group('nccl')\n"
                             "    model = nn.parallel.DistributedDataParallel(nn.Linear(64, 64).cuda())\n"
                             "    optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
                             "    model(torch.randn(8, 64, device='cuda')).sum().backward()\n"
                             "    optimizer.step()\n", gpus=4)
    assert header["ranks"] == [0, 1, 2, 3] and names.count("c10d::allreduce_") == 1


@pytest.mark.parametrize("body, text", [("pass", r"step\(\) ended without a step of a PyTorch optimizer"),
                                        ("open('absent')", r"step\(\) failed")])
def test_functions_that_do_not_train(recorded, body, text):
    with pytest.raises(DryRunError, match=text):
        recorded(f"def step():\n    {body}\n")


def test_what_cannot_be_taken_along_is_named(tmp_path):
    batches = (i for i in range(3))
    text = "`batches`, which it uses, cannot be taken to another process .*; make it inside the function"
    if importlib.util.find_spec("cloudpickle") is None:
        text = "pip install cloudpickle"
    with pytest.raises(function.FunctionError, match=text):
        function.write(lambda: next(batches), str(tmp_path / "function"))


def test_the_example_of_the_docs(here, cli):
    if not os.path.isfile(PROGRAM):
        pytest.skip("the program is not beside the package")
    page = (ROOT / "docs" / "dry-run.md").read_text()
    example = next(s for s in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "stepcast.dryrun(" in s)
    cell = {"__name__": "__main__"}
    exec(compile(example, "<cell 1>", "exec"), cell)
    answer = cell["forecast"]
    assert answer.to_dict() == cli("predict", "--trace", "dryrun", "--platform", "dgx-h100", "--advice", "off", "--json")
    assert answer.n_gpus == 8 and answer.memory.verdict == "fits"
    assert any("ran eager" in note for note in answer.notes)
