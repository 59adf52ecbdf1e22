"""`stepcast dryrun` of programs that are compiled, captured, or call kernels of other packages; where PyTorch is installed."""

import collections
import gzip
import importlib.util
import json
import os
import sys

import pytest

from stepcast.dryrun.launch import DryRunError, Gpu, Options, dry_run, libraries

nightly = pytest.mark.skipif("STEPCAST_NIGHTLY" not in os.environ, reason="of ./dev nightly")

LOOP = """
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
x = torch.randn(64, 1024, device="cuda")
for _ in range(5):
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(x).float().square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
BLOCK = "model = nn.Sequential(nn.LayerNorm(1024), nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()\n"


class Record:
    """What a dry run wrote of its one rank."""

    def __init__(self, path):
        with gzip.open(path) as file:
            content = json.load(file)
        self.header, self.nodes = content["stepcast"], content["nodes"]
        self.names = collections.Counter(n["name"] for n in self.nodes)

    def product_flops(self):
        flops = 0
        for node in self.nodes:
            shapes = node["inputs"]["shapes"][1 if node["name"] == "aten::addmm" else 0:]
            if node["name"] in ("aten::mm", "aten::addmm") and len(shapes) > 1 and shapes[0]:
                flops += 2 * shapes[0][0] * shapes[0][1] * shapes[1][1]
        return flops

    def below(self, name):
        owner = next(n["id"] for n in self.nodes if n["name"] == name)
        return [n["name"] for n in self.nodes if n["ctrl_deps"] == owner]


@pytest.fixture
def record(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if os.environ.get("STEPCAST_SKIP_TORCH") == "1" or importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed, or STEPCAST_SKIP_TORCH=1")
    try:
        libraries()
    except DryRunError as problem:
        pytest.skip(str(problem))

    def run(text, way=""):
        (tmp_path / "train.py").write_text("import torch, torch.nn as nn\n" + text)
        options = Options(gpus=1, out=str(tmp_path / "out"), progress=False, compile=way)
        dry_run([sys.executable, str(tmp_path / "train.py")], options, Gpu("NVIDIA H100 80GB HBM3", 80 << 30, 132, 90, 50 << 20, 8))
        return Record(tmp_path / "out" / "rank0.et.json.gz")

    return run


def test_compiled_block_multiplies_as_the_eager_one(record):
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed")
    eager, compiled = record(BLOCK + LOOP), record(BLOCK + "model = torch.compile(model)\n" + LOOP)
    assert (eager.header["compiled"], compiled.header["compiled"]) == (False, True)
    assert compiled.header["notes"] == ["ran compiled: 1 graph, 0 graph breaks"]
    assert (compiled.header["graphs"], eager.header["graphs"]) == (1, 0)
    assert compiled.product_flops() == eager.product_flops() > 0
    forward = [n for n in compiled.below("compiled_graph") if not n.startswith("aten::")]
    assert any("native_layer_norm" in n for n in forward)
    assert "triton_poi_fused_gelu" in forward
    assert "aten::gelu" not in compiled.names


@nightly
def test_programs_are_compiled_or_not_as_asked(record):
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed")
    compiles = BLOCK + "model = torch.compile(model)\n" + LOOP
    eager, compiled = record(BLOCK + LOOP), record(compiles)
    assert record(compiles, "eager").names == eager.names
    forced = record(BLOCK + LOOP, "compiled")
    assert (forced.names, forced.header["graphs"]) == (compiled.names, 1)
    assert record(compiles, "compiled").names == compiled.names  # as it is


@nightly
def test_replays_of_a_captured_step_are_recorded(record):
    captured = record(BLOCK + """
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True)
x = torch.randn(64, 1024, device="cuda")
def step():
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    for _ in range(3):
        step()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()
for _ in range(5):
    graph.replay()
""")
    assert captured.names["cuda_graph"] == 1
    assert collections.Counter(captured.below("cuda_graph"))["aten::mm"] == 4


@nightly
def test_flash_attention_without_its_package(record):
    if importlib.util.find_spec("flash_attn") is not None:
        pytest.skip("flash-attn is installed")
    recorded = record("""
from importlib.metadata import version
from flash_attn import flash_attn_qkvpacked_func
assert version("flash_attn") >= "2"
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(1024, 3072), nn.Linear(1024, 1024)
    def forward(self, x):
        qkv = self.qkv(x).view(1, 64, 3, 16, 64)
        return self.out(flash_attn_qkvpacked_func(qkv, causal=True).flatten(2))
model = Model().cuda()
""" + LOOP)
    assert (recorded.names["flash_attn::_flash_attn_forward"], recorded.names["flash_attn::_flash_attn_backward"]) == (1, 1)


@nightly
def test_large_weights_cost_no_memory(record):
    record("""
import resource
model = nn.Sequential(*[nn.Linear(16384, 16384, bias=False) for _ in range(16)])
torch.save(model.cuda().state_dict(), "weights.pt")
model.load_state_dict(torch.load("weights.pt", map_location="cuda"))
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20  # KiB; the weights are 16 GiB
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(4):
    model(torch.randn(8, 16384, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
""")


@nightly
def test_compiled_products_in_8_bits_and_attention_that_is_recomputed(record):
    recorded = record("""
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint
one = torch.ones((), device="cuda")
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(1024, 3072)
    def block(self, x):
        qkv = self.qkv(x).view(1, 64, 3, 16, 64).permute(2, 0, 3, 1, 4)
        with torch.no_grad():
            narrow = self.qkv.weight[:1024].to(torch.float8_e4m3fn)
            product = torch._scaled_mm(x.to(torch.float8_e4m3fn), narrow.t(), one, one, out_dtype=torch.bfloat16)
        return scaled_dot_product_attention(*qkv.unbind(), is_causal=True).transpose(1, 2).reshape(64, 1024) + product
    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=False)
model = torch.compile(Model().cuda(), fullgraph=True)
""" + LOOP)
    assert recorded.header["notes"] == ["ran compiled: 1 graph, 0 graph breaks"]
    assert recorded.names["aten::_scaled_mm"] == 1
    attention = [name for name in recorded.names.elements() if name.startswith("aten::_scaled_dot_product")]
    assert sum("backward" in name for name in attention) == 1
    assert sum("backward" not in name for name in attention) == 2
