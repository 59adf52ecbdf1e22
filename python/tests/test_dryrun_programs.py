"""`stepcast dryrun` of programs as people write them, each with the libraries that it imports, for `./dev nightly`."""

import collections
import gzip
import importlib.util
import json
import os
import re
import sys
from pathlib import Path

import pytest

from conftest import ROOT
from stepcast.dryrun.launch import DryRunError, Gpu, Options, dry_run, libraries

pytestmark = pytest.mark.skipif("STEPCAST_NIGHTLY" not in os.environ, reason="of ./dev nightly")
PROGRAMS = Path(__file__).parent / "programs"
TORCHRUN = ["torch.distributed.run", "--nproc-per-node"]
ACCELERATE = ["accelerate.commands.launch", "--num_processes"]
FSDP = ["--use_fsdp", "--fsdp_version", "2", "--fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP", "--fsdp_transformer_layer_cls_to_wrap",
        "GPT2Block"]
TITAN = ["-m", "torchtitan.train", "--model.name", "llama3", "--model.flavor", "debugmodel", "--training.steps", "10",
         "--training.local_batch_size", "2", "--training.seq_len", "512", "--parallelism.tensor_parallel_degree", "2"]
BOTH = {"_scaled_dot_product_.*attention": 4, "_scaled_dot_product_.*attention_backward": 4}


@pytest.fixture
def record(tmp_path, monkeypatch):
    """Runs a program of the folder `programs`; gives {ranks: (launches by name, collectives by name and group size)} of its classes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    try:
        libraries()
    except DryRunError as problem:
        pytest.skip(str(problem))

    def run(gpus, command):
        out = {}
        options = Options(gpus=gpus, out=str(tmp_path / "out"), progress=False)
        for ranks in dry_run([sys.executable, *command], options, Gpu("NVIDIA H100 80GB HBM3", 80 << 30, 132, 90, 50 << 20, 8)):
            with gzip.open(tmp_path / "out" / f"rank{ranks['rank']}.et.json.gz") as file:
                nodes = [(n["name"], {a["name"]: a["value"] for a in n["attrs"]}) for n in json.load(file)["nodes"]]
            sent = collections.Counter((a["collective_name"], a["pg_size"]) for name, a in nodes if name == "record_param_comms")
            launched = collections.Counter(name for name, a in nodes if "stream" in a)
            out[tuple(ranks["ranks"])] = launched, {k: n for k, n in sent.items() if k[0] != "wait"}
        return out

    return run


def needs(*packages):
    for package in ("torch", *packages):
        if os.environ.get("STEPCAST_SKIP_TORCH") == "1" or importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed, or STEPCAST_SKIP_TORCH=1")


def counted(launched, patterns):
    return {p: sum(n for name, n in launched.items() if re.fullmatch(f"aten::{p}", name)) for p in patterns}


@pytest.mark.parametrize("script, packages, launches", [
    ("resnet50", ["torchvision"], {"convolution": 53, "convolution_backward": 53, ".*batch_norm": 53, "_local_scalar_dense": 2}),
    # Two accumulated batches of four layers, six products in each, pooler and classifier.
    ("bert_trainer", ["transformers", "datasets"], {"addmm": 2 * (4 * 6 + 2), "_scaled_dot_product_.*attention": 8, "_fused_adamw_": 2}),
    # And run twice forward.
    ("gpt2_trainer", ["transformers", "datasets"], {"addmm": 2 * 2 * 4 * 4, "_scaled_dot_product_.*attention": 16,
                                                    "_scaled_dot_product_.*attention_backward": 8}),
    # 29 frozen products and 16 of adapters forward; backward to 26 inputs, 16 adapters and 14 of their inputs.
    ("lora_peft", ["transformers", "peft"], {**BOTH, "mm": 29 + 16 + 26 + 16 + 14}),
    ("lora_sft", ["transformers", "peft", "trl"], {"_scaled_dot_product_.*attention": 8, "_scaled_dot_product_.*attention_backward": 4}),
    ("vit_timm", ["timm"], {"convolution": 1, "addmm": 12 * 4 + 1, "_scaled_dot_product_.*attention": 12, "native_layer_norm": 25}),
    # Two layers of 35 steps: a product of all steps and one of each, backward with two for the weights; the head.
    ("lstm", ["torch"], {"mm": 2 * (1 + 35) + 2 * (1 + 35 + 2) + 2, "addmm": 1}),
    # 50 steps of a batch that shrinks, in two directions.
    ("packed_gru", ["torch"], {"mm": 4 * (1 + 50) + 4 * (1 + 50 + 2) + 2}),
    ("faster_rcnn", ["torchvision"], {"convolution": 76, "convolution_backward": 76}),
    ("wav2vec2_ctc", ["transformers"], {"_ctc_loss": 1, "_ctc_loss_backward": 1, "convolution": 8}),
    ("xlnet", ["transformers"], {"native_layer_norm": 8, "embedding_dense_backward": 1, "mm": 18})])
def test_programs_of_one_gpu(record, script, packages, launches):
    needs(*packages)
    (launched, sent), = record(1, [str(PROGRAMS / f"{script}.py")]).values()
    assert counted(launched, launches) == launches
    assert sent == {}


@pytest.mark.parametrize("script, packages, gpus, launcher, launches, sent", [
    ("bert_trainer", ["transformers", "datasets"], 8, TORCHRUN, {"addmm": 52}, {("allreduce", 8): 7}),
    ("llama_fsdp2", ["transformers"], 8, TORCHRUN, BOTH, {("_allgather_base", 8): 9, ("_reduce_scatter_base", 8): 5, ("all_reduce", 8): 1}),
    # Two products of each layer that sum forward, five backward.
    ("compiled_llama", ["transformers", "triton"], 8, TORCHRUN, {"mm": 45},
     {("all_reduce", 4): 2 * 7, ("_allgather_base", 2): 5, ("_reduce_scatter_base", 2): 3}),
    ("gpt2_accumulate", ["transformers", "triton"], 8, TORCHRUN, {"_scaled_dot_product_.*attention": 4 * 4}, {("allreduce", 8): 6}),
    ("sync_batch_norm", ["torch"], 4, [], {"batch_norm_stats": 1, "batch_norm_backward_elemt": 1}, {("allreduce", 4): 2}),
    ("lightning_ddp", ["lightning"], 4, [], {"addmm": 3}, {("allreduce", 4): 2}),
    ("accelerate_loop", ["accelerate", "transformers"], 4, ACCELERATE, {"addmm": 32}, {("allreduce", 4): 5}),
    ("accelerate_loop", ["accelerate", "transformers"], 4, [*ACCELERATE, *FSDP], {"addmm": 32}, {("_reduce_scatter_base", 4): 6}),
    ("deepspeed_zero --stage 1", ["deepspeed", "transformers"], 8, ["deepspeed.launcher.runner", "--num_gpus"], BOTH, {("_allgather_base", 8): 1}),
    ("deepspeed_zero --stage 2", ["deepspeed", "transformers"], 8, ["deepspeed.launcher.runner", "--num_gpus"], BOTH, {("_allgather_base", 8): 1}),
    ("deepspeed_zero --stage 3", ["deepspeed", "transformers"], 8, ["deepspeed.launcher.runner", "--num_gpus"], BOTH,
     {("_reduce_scatter_base", 8): 1})])
def test_programs_whose_ranks_are_equal(record, script, packages, gpus, launcher, launches, sent):
    needs(*packages)
    script, *arguments = script.split()
    start = ["-m", *launcher[:2], str(gpus), *launcher[2:]] if launcher else []
    (ranks, (launched, found)), = record(gpus, [*start, str(PROGRAMS / f"{script}.py"), *arguments]).items()
    assert ranks == tuple(range(gpus))
    assert counted(launched, launches) == launches
    assert sent.items() <= found.items()


@pytest.mark.parametrize("script, package, gpus, classes", [
    ("dlrm", "torch", 4, {(0,): {("all_to_allv", 4): 2, ("allreduce", 4): 2}, (1, 2, 3): {("all_to_allv", 4): 2, ("allreduce", 4): 2}}),
    ("pipeline", "torch", 2, {(0,): {("send", 2): 4, ("recv", 2): 4}, (1,): {("send", 2): 4, ("recv", 2): 4}}),
    ("megatron_core", "megatron.core", 8, {(0, 1, 2, 3): {("send", 2): 4, ("recv", 2): 4}, (4, 5, 6, 7): {("send", 2): 4, ("recv", 2): 4}})])
def test_programs_whose_ranks_differ(record, script, package, gpus, classes):
    needs(package.split(".")[0])
    found = {ranks: sent for ranks, (_, sent) in record(gpus, ["-m", *TORCHRUN, str(gpus), str(PROGRAMS / f"{script}.py")]).items()}
    assert found.keys() == classes.keys()
    for ranks, sent in classes.items():
        assert sent.items() <= found[ranks].items()


def test_trainer_of_torchtitan(record, tmp_path, monkeypatch):
    needs("torchtitan", "tiktoken")
    monkeypatch.syspath_prepend(ROOT / "lab")
    import record_steps

    text = record_steps._made_up_text(str(tmp_path))
    (launched, sent), = record(8, ["-m", *TORCHRUN, "8", *TITAN, *text]).values()
    assert counted(launched, ["_scaled_dot_product_.*attention"]) == {"_scaled_dot_product_.*attention": 6 + 3}  # every second layer again
    assert sent["_allgather_base", 4] > 6 and sent["_reduce_scatter_base", 4] > 6
