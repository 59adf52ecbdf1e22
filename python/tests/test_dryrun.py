"""`stepcast dryrun`: the stand-in of CUDA's runtime and what a command line runs. Programs run where PyTorch is installed."""

import collections
import glob
import gzip
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stepcast.dryrun.command import CommandError, parse
from stepcast.dryrun.launch import DryRunError, Gpu, Options, dry_run, libraries
from stepcast.dryrun.memory import reserved_peak
from stepcast.dryrun.session import misfit

nightly = pytest.mark.skipif("STEPCAST_NIGHTLY" not in os.environ, reason="of ./dev nightly")
SOURCE = Path(__file__).resolve().parents[1] / "dryrun" / "cuda.c"


def torch_libraries():
    spec = None if os.environ.get("STEPCAST_SKIP_TORCH") == "1" else importlib.util.find_spec("torch")
    if spec is None:
        pytest.skip("PyTorch is not installed, or STEPCAST_SKIP_TORCH=1")
    return glob.glob(os.path.join(os.path.dirname(spec.origin), "lib", "*.so"))


def test_every_imported_function_of_the_runtime_is_there():
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    wanted = set()
    for library in torch_libraries():
        names = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=False).stdout
        wanted.update(re.findall(r" U ((?:__)?cuda\w+)@", names))
    there = set(re.findall(r"\b((?:__)?cuda[A-Z]\w*)[()]", SOURCE.read_text()))
    assert sorted(wanted - there) == []


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    return "train.py"


def test_python_runs_the_script(script):
    program = parse([sys.executable, "-u", script, "--lr", "1"])
    assert (program.script, program.arguments, program.launched) == (script, ["--lr", "1"], False)


def test_torchrun_as_a_module(script):
    program = parse([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "8", "--nnodes=2", script, "--lr", "1"])
    assert (program.script, program.arguments, program.launched) == (script, ["--lr", "1"], True)


def test_accelerate_sets_what_it_would(script):
    program = parse([sys.executable, "-m", "accelerate.commands.launch", "--mixed_precision", "bf16", "--num_processes", "8", script])
    assert program.environment["ACCELERATE_MIXED_PRECISION"] == "bf16"


def test_accelerate_passes_on_what_shards(script):
    words = ["--use_fsdp", "--fsdp_version", "2", "--fsdp_transformer_layer_cls_to_wrap=Block", "--dynamo_backend", "inductor", "--use_deepspeed",
             "--zero_stage", "3", "--gradient_accumulation_steps", "4"]
    program = parse([sys.executable, "-m", "accelerate.commands.launch", "--num_processes", "8", *words, script])
    assert (program.script, program.processes, program.launched) == (script, (8, True), True)
    assert program.environment == {
        "ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2", "FSDP_TRANSFORMER_CLS_TO_WRAP": "Block", "ACCELERATE_DYNAMO_BACKEND": "inductor",
        "ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "3", "ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "4"}


def test_deepspeed_gives_the_local_rank(script):
    launcher = [sys.executable, "-m", "deepspeed.launcher.runner", "--num_gpus", "8"]
    program = parse([*launcher, script, "--deepspeed", "--deepspeed_config", "zero.json"])
    assert program.arguments == ["--local_rank={local_rank}", "--deepspeed", "--deepspeed_config", "zero.json"]
    assert program.processes == (8, False)
    assert parse([*launcher, "--no_local_rank", script]).arguments == []


@pytest.mark.parametrize("version, is_there, text", [
    ("2.11.0+cpu", True, r"PyTorch 2.11.0\+cpu of .* is built without CUDA; install the wheel that has it: pip install torch "),
    ("", False, "no PyTorch for .* install it there: .* -m pip install torch")])
def test_an_interpreter_without_a_pytorch_that_does_says_so(script, tmp_path, monkeypatch, version, is_there, text):
    try:
        libraries()
    except DryRunError as problem:
        pytest.skip(str(problem))
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(f"_C, __version__ = object, {version!r}" if is_there else "raise ImportError('none')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    said = refusal([sys.executable, script], 1)
    assert re.match(text, said) and "\n" not in said


@nightly
@pytest.mark.parametrize("keep_going", [False, True])
def test_a_program_that_fails_after_whole_steps(record, tmp_path, keep_going):
    text = "model = nn.Linear(256, 8).cuda()\n" + LOOP.replace("    optimizer.zero_grad()", "    optimizer.zero_grad()\n    assert _ < 1")
    if keep_going:
        assert record(text, 1, keep_going=True) == {0: ([0], {})}
        with gzip.open(tmp_path / "out" / "rank0.et.json.gz") as file:
            assert json.load(file)["stepcast"]["notes"] == ["the program failed after step 2", "ran eager: operator by operator"]
    else:
        with pytest.raises(DryRunError, match="the program failed"):
            record(text, 1)


@pytest.mark.parametrize("words, gpus, text", [
    (["--nproc-per-node", "8"], 12, "--gpus is 12, and the command starts 8 processes on each node; write --gpus 8, 16, 24, ..."),
    (["--nproc-per-node=8", "--nnodes", "2"], 8, "--gpus is 8, and the command starts 16 processes; write --gpus 16"),
    (["--nproc-per-node=gpu", "--nnodes", "2"], 8, ""),
    (["--nproc-per-node", "8"], 64, "")])
def test_gpus_are_those_that_the_launcher_starts(script, words, gpus, text):
    command = [sys.executable, "-m", "torch.distributed.run", *words, script]
    assert text == "" or refusal(command, gpus).startswith(text)
    processes, on_all = parse(command).processes
    assert (text == "") == (not processes or (gpus == processes if on_all else gpus % processes == 0))


def refusal(command, gpus):
    with pytest.raises(DryRunError) as problem:
        dry_run(command, Options(gpus=gpus, out="out", progress=False), Gpu("NVIDIA H100 80GB HBM3", 80 << 30, 132, 90, 50 << 20, 8))
    return str(problem.value)


AT = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    {}\n    ^^^^\n{}'


@pytest.mark.parametrize("source, error, text", [
    ("mesh = init_device_mesh('cuda', (2, 4))", "RuntimeError: device mesh of 2 x 4 = 8 ranks, and the job has 12", "must be 8, which its"),
    ("parallel_state.initialize()", "RuntimeError: world_size (12) is not divisible by 8", "multiple of 8; write --gpus 8, 16, 24, ..."),
    ("self._validate()", "AssertionError: Invalid parallel dims: dp_replicate(1) * tp(4) * pp(2) != WORLD_SIZE(12)", "a multiple of 8;"),
    ("assert 30 % ranks == 0", "AssertionError: num_attention_heads (30) must be divisible by tp (12)", "must be a divisor of 30"),
    ("init_device_mesh()", "RuntimeError: DeviceMesh only support homogeneous hardware, but found 12 ranks and 8 cuda devices!",
     "multiple of 8;"),
    ("assert world_size % 8 == 0", "AssertionError", "multiple of 8;"),
    ("assert dist.get_world_size() % tp == 0", "AssertionError", "is about its 12 ranks"),
    ("assert hidden % 7 == 0", "AssertionError: 30 is not divisible by 7", "")])
def test_programs_that_do_not_divide_their_ranks_say_what_would_do(source, error, text):
    said = misfit(AT.format(source, error), "the program", 12)
    assert text in said and bool(text) == bool(said) and "\n" not in said


@pytest.mark.parametrize("words, text", [([], "no program"), (["no-such-program"], "was not found"),
                                         ([sys.executable, "absent.py"], "there is no file")])
def test_bad_commands_are_one_line(words, text):
    with pytest.raises(CommandError, match=text) as problem:
        parse(words)
    assert "\n" not in str(problem.value)


def test_reserved_memory_counts_segments():
    MiB = 1 << 20
    assert reserved_peak([(1, 512)]) == 2 * MiB
    assert reserved_peak([(1, 5 * MiB), (2, 5 * MiB)]) == 20 * MiB
    assert reserved_peak([(1, 33 * MiB), (1, -33 * MiB), (2, 33 * MiB)]) == 34 * MiB


# ---- Programs ----
@pytest.fixture
def record(tmp_path):
    """Runs a program on so many ranks; gives {rank: (ranks of its class, {(collective, group size): count})}."""
    torch_libraries()
    try:
        libraries()
    except DryRunError as problem:
        pytest.skip(str(problem))

    def run(text, gpus, **more):
        path = tmp_path / "train.py"
        path.write_text("import os, torch, torch.nn as nn, torch.distributed as dist\n" + text)
        options = Options(gpus=gpus, out=str(tmp_path / "out"), progress=False, **more)
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(gpus), str(path)]
        out = {}
        for ranks in dry_run(command, options, Gpu("NVIDIA H100 80GB HBM3", 80 << 30, 132, 90, 50 << 20, 8)):
            with gzip.open(tmp_path / "out" / f"rank{ranks['rank']}.et.json.gz") as file:
                nodes = json.load(file)["nodes"]
            attributes = [{a["name"]: a["value"] for a in n["attrs"]} for n in nodes if n["name"] == "record_param_comms"]
            counts = collections.Counter((a["collective_name"], a["pg_size"]) for a in attributes)
            out[ranks["rank"]] = ranks["ranks"], {k: v for k, v in counts.items() if k[0] != "wait"}
        return out

    return run


LOOP = """
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(5):
    model(torch.randn(8, 64, 256, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""

PARALLEL = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, PrepareModuleInput, parallelize_module
from torch.distributed.tensor import Replicate, Shard
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
mesh = init_device_mesh("cuda", (2, 4), mesh_dim_names=("dp", "tp"))
model = nn.Sequential(nn.LayerNorm(256), nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).cuda()
parallelize_module(model, mesh["tp"], {
    "0": SequenceParallel(),
    "1": ColwiseParallel(input_layouts=Shard(1)),
    "3": RowwiseParallel(output_layouts=Replicate())})
fully_shard(model, mesh=mesh["dp"])
"""


def test_tensor_parallel_with_sharded_data_parallel(record):
    (ranks, counts), = record(PARALLEL + LOOP, 8).values()
    assert ranks == list(range(8))
    assert counts == {("_allgather_base", 2): 1, ("_reduce_scatter_base", 2): 1, ("all_gather_into_tensor", 4): 1, ("all_reduce", 4): 3,
                      ("reduce_scatter_tensor", 4): 1}


PIPELINE = """
from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
chunks = nn.ModuleList([nn.Linear(256, 256) for _ in range(2)]).cuda()
stages = [PipelineStage(c, rank + 2 * i, 4, torch.device("cuda")) for i, c in enumerate(chunks)]
schedule = ScheduleInterleaved1F1B(stages, 4, lambda out, target: (out - target).square().mean())
optimizer = torch.optim.SGD(chunks.parameters(), lr=1e-3)
for _ in range(5):
    x = torch.randn(8, 256, device="cuda")
    schedule.step(*([x] if rank == 0 else []), **({"target": x} if rank == 1 else {}))
    optimizer.step()
    optimizer.zero_grad()
"""


def test_pipeline_whose_ranks_wait_for_each_other(record):
    # Rank 0 sends for both of its stages and back for the second, to rank 1; rank 1 the other way.
    both = {("send", 2): 12, ("recv", 2): 12}
    assert record(PIPELINE, 2) == {0: ([0], both), 1: ([1], both)}


def test_a_mesh_that_leaves_ranks_out_is_refused(record):
    with pytest.raises(DryRunError, match="its device mesh of 2 x 4 asks for; write --gpus 8"):
        record(PARALLEL + LOOP, 12)


@nightly
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_what_ends_a_dry_run_ends_the_program(record, tmp_path, number):
    (tmp_path / "train.py").write_text("import os, time\nopen('pid.new', 'w').write(str(os.getpid()))\nos.rename('pid.new', 'pid')\n"
                                       "time.sleep(600)\n")
    main = importlib.util.find_spec("stepcast.dryrun.__main__").origin
    running = subprocess.Popen([sys.executable, main, "record", "--out", "out", "--", sys.executable, "train.py"], cwd=tmp_path,
                               env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": ""})
    wait(lambda: (tmp_path / "pid").exists())
    running.send_signal(getattr(signal, number))
    running.wait()
    program = int((tmp_path / "pid").read_text())
    wait(lambda: not os.path.exists(f"/proc/{program}") or " Z " in Path(f"/proc/{program}/stat").read_text())
    assert number == "SIGKILL" or list(tmp_path.glob("stepcast-dryrun-*")) == []


def wait(until):
    for _ in range(600):
        if until():
            return
        time.sleep(0.1)
    raise AssertionError("60 s passed")


FSDP1 = """
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = nn.Sequential(*[FullyShardedDataParallel(nn.Linear(256, 256), device_id=0, use_orig_params=True,
                                                 sharding_strategy=ShardingStrategy.{}) for _ in range(3)])
model = FullyShardedDataParallel(model, device_id=0, use_orig_params=True, sharding_strategy=ShardingStrategy.{})
"""


@nightly
@pytest.mark.parametrize("strategy, gathers", [("FULL_SHARD", 6), ("SHARD_GRAD_OP", 3)])
def test_fsdp1(record, strategy, gathers):
    (_, counts), = record(FSDP1.replace("{}", strategy) + LOOP, 8).values()
    assert counts == {("_allgather_base", 8): gathers, ("_reduce_scatter_base", 8): 3}


UNEVEN = """
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
tables = [2, 1, 1, 1]
model = nn.ModuleList([nn.EmbeddingBag(1000, 64) for _ in range(tables[rank])]).cuda()
head = nn.Linear(64, 1).cuda()
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for _ in range(5):
    send = torch.cat([t(torch.randint(0, 1000, (32, 4), device="cuda")) for t in model]).detach()
    got = send.new_empty(sum(tables) * 8, 64)
    dist.all_to_all_single(got, send, [t * 8 for t in tables], [tables[rank] * 8] * 4)
    head(got).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@nightly
def test_ranks_with_more_tables_are_a_class(record):
    classes = record(UNEVEN, 4)
    assert {rank: ranks for rank, (ranks, _) in classes.items()} == {0: [0], 1: [1, 2, 3]}
    assert all(counts == {("all_to_allv", 4): 1} for _, counts in classes.values())


@nightly
def test_scalars_of_the_gpu_in_a_list(record):
    text = "model = nn.Linear(256, 8).cuda()\n" + LOOP.replace("    optimizer.step()", "    torch.tensor([model.bias.sum()] * 2)\n    optimizer.step()")
    assert record("dist.init_process_group('nccl')\n" + text, 1) == {0: ([0], {})}
