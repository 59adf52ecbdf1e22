"""`stepcast dryrun` of programs that are compiled, captured, or call kernels of other packages; where PyTorch is installed."""

import collections
import gzip
import importlib.util
import json
import os
import re
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
        self.launched = collections.Counter(n["name"] for n in self.nodes if any(a["name"] == "stream" for a in n["attrs"]))

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


STEPS = """
optimizer = {}
for _ in range(4):
    model(torch.randn(64, 2, 1024, device="cuda", dtype=torch.bfloat16)).float().square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
ADAM = "torch.optim.AdamW(model.parameters(), fused=True)"
ATTENTION = """
{}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(1024, 3072), nn.Linear(1024, 1024)
    def forward(self, x):
        qkv = self.qkv(x).view(64, 2, 3, 16, 64)
        return self.out({}.reshape(64, 2, 1024))
model = Model().to("cuda", torch.bfloat16)
"""
TE = "import transformer_engine.pytorch as te\n"
BOTH = {"_flash_att.*_forward": 1, "_flash_att.*_backward": 1}


@nightly
@pytest.mark.parametrize("package, program, optimizer, launched", [
    ("flash_attn", ATTENTION.format("from importlib.metadata import version\nassert version('flash_attn') >= '2'\n"
                                    "from flash_attn import flash_attn_qkvpacked_func", "flash_attn_qkvpacked_func(qkv, causal=True)"),
     ADAM, BOTH),
    ("flash_attn", ATTENTION.format("from flash_attn import flash_attn_kvpacked_func",
                                    "flash_attn_kvpacked_func(qkv[:, :, 0], qkv[:, :, 1:], 0.1, None, True)"), ADAM, BOTH),
    ("flash_attn", ATTENTION.format("from flash_attn import flash_attn_varlen_qkvpacked_func as attend",
                                    "attend(qkv.flatten(0, 1), torch.tensor([0, 64, 128], device='cuda', dtype=torch.int32), 64)"),
     ADAM, BOTH),
    ("flash_attn", ATTENTION.format("from flash_attn.bert_padding import pad_input, unpad_input\n"
                                    "mask = torch.ones(64, 2, device='cuda', dtype=torch.int32)",
                                    "pad_input(unpad_input(qkv[:, :, 0].flatten(-2), mask)[0], unpad_input(x, mask)[1], 64, 2)"),
     ADAM, {"aten::nonzero": 2}),
    ("flash_attn", ATTENTION.format("from flash_attn.layers.rotary import apply_rotary_emb\nc = torch.ones(2, 32, device='cuda')",
                                    "apply_rotary_emb(qkv[:, :, 0], c, c).bfloat16()"), ADAM, {"aten::cat": 2}),
    ("xformers", ATTENTION.format("import xformers.ops as xops", "xops.memory_efficient_attention(*qkv.unbind(2), xops.LowerTriangularMask())"),
     ADAM, BOTH),
    ("xformers", ATTENTION.format("from xformers.ops import memory_efficient_attention as attend\nbias = torch.zeros(1, 1, 2, 2, device='cuda')",
                                  "attend(*qkv.unbind(2), bias.bfloat16())"), ADAM, {"_scaled_dot_product.*attention": 1}),
    ("apex", "from apex.optimizers import FusedAdam\nfrom apex.normalization import FusedLayerNorm, MixedFusedRMSNorm\n"
     "import amp_C\nfrom apex.multi_tensor_apply import multi_tensor_applier\n"
     "model = nn.Sequential(FusedLayerNorm(1024), nn.Linear(1024, 1024), MixedFusedRMSNorm(1024)).to('cuda', torch.bfloat16)\n"
     "class Clipping(FusedAdam):\n"
     "    def step(self):\n"
     "        grads = [p.grad for p in model.parameters()]\n"
     "        norm, _ = multi_tensor_applier(amp_C.multi_tensor_l2norm, None, [grads], False)\n"
     "        multi_tensor_applier(amp_C.multi_tensor_scale, None, [grads, grads], 0.5)\n"
     "        super().step()\n", "Clipping(model.parameters(), lr=1e-3)",
     {"aten::native_layer_norm": 1, "aten::_fused_rms_norm": 1, "aten::_fused_adamw_": 1, "aten::_foreach_norm": 1, "aten::_foreach_mul_": 1}),
    ("apex", "from apex.optimizers import FusedSGD\nfrom apex.normalization.fused_layer_norm import fused_rms_norm_affine\n"
     "class Model(nn.Linear):\n    def forward(self, x):\n        return fused_rms_norm_affine(super().forward(x), self.bias, (1024,))\n"
     "model = Model(1024, 1024).to('cuda', torch.bfloat16)\n", "FusedSGD(model.parameters(), 0.1, momentum=0.9)",
     {"aten::_fused_rms_norm": 1, "aten::_fused_sgd_": 1}),
    ("transformer_engine", TE + "model = nn.Sequential(te.LayerNormLinear(1024, 1024), te.LayerNorm(1024), te.LayerNormMLP(1024, 4096))\n"
     "model.to(torch.bfloat16)\n", "te.optimizers.FusedAdam(model.parameters())",
     {"aten::addmm": 3, "aten::native_layer_norm": 3, "aten::gelu": 1, "aten::_fused_adamw_": 1}),
    ("transformer_engine", TE + "from transformer_engine.common.recipe import DelayedScaling\n"
     "mlp = te.LayerNormMLP(1024, 4096, bias=False, normalization='RMSNorm', activation='swiglu', params_dtype=torch.bfloat16)\n"
     "class Model(nn.Module):\n"
     "    def __init__(self):\n        super().__init__()\n        self.mlp = mlp\n"
     "    def forward(self, x):\n"
     "        with te.fp8_autocast(enabled=True, fp8_recipe=DelayedScaling()):\n            return self.mlp(x)\n"
     "model = Model()\n", ADAM, {"aten::_scaled_mm": 6, "aten::_fused_rms_norm": 1, "aten::silu": 1, "aten::mm": 0, "aten::addmm": 0}),
    ("transformer_engine", TE + ATTENTION.format("attend = te.DotProductAttention(16, 64)", "attend(*qkv.unbind(2))"), ADAM, BOTH),
    ("transformer_engine", TE + ATTENTION.format(
        "attend = te.DotProductAttention(16, 64, qkv_format='thd', attn_mask_type='padding_causal')\n"
        "lengths = torch.tensor([0, 64, 128], device='cuda', dtype=torch.int32)",
        "attend(*qkv.flatten(0, 1).unbind(1), cu_seqlens_q=lengths, cu_seqlens_kv=lengths, max_seqlen_q=64, max_seqlen_kv=64)"), ADAM, BOTH),
    ("bitsandbytes", "import bitsandbytes as bnb\nmodel = nn.Linear(1024, 1024).to('cuda', torch.bfloat16)\n",
     "bnb.optim.AdamW8bit(model.parameters())", {"triton_poi_fused_add_mul": 2})])
def test_packages_that_are_not_installed_are_recorded(record, package, program, optimizer, launched):
    if importlib.util.find_spec(package) is not None:
        pytest.skip(f"{package} is installed")
    names = record(program + STEPS.replace("{}", optimizer)).launched
    found = {pattern: sum(n for name, n in names.items() if re.fullmatch(f"(.*::)?{pattern}", name)) for pattern in launched}
    assert found == launched, names


@nightly
def test_what_a_stand_in_lacks_is_named(record):
    with pytest.raises(DryRunError) as problem:
        record("import flash_attn\nflash_attn.flash_attn_with_kvcache()\n")
    assert "flash_attn_with_kvcache is for generation" in problem.value.below
    with pytest.raises(DryRunError) as problem:
        record("from transformer_engine.pytorch import GroupedLinear\n")
    assert "no transformer_engine.pytorch.GroupedLinear: install transformer_engine" in str(problem.value)


@nightly
@pytest.mark.parametrize("memory_format", ["channels_last", "contiguous_format"])
def test_layout_of_images_is_recorded(record, memory_format):
    recorded = record(f"""
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 1)).to("cuda", memory_format=torch.{memory_format})
optimizer = torch.optim.SGD(model.parameters(), 0.1, fused=True)
for _ in range(4):
    model(torch.randn(4, 3, 32, 32, device="cuda").to(memory_format=torch.{memory_format})).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
""")
    assert recorded.header["channels_last"] == (memory_format == "channels_last")


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
def test_assumed_sizes_are_a_note(record):
    recorded = record("""
model = nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    out = model(torch.randn(64, 8, device="cuda"))
    out[out > 0].sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    print(out.sum().item())
""")
    note = recorded.header["notes"][-1]
    assert re.fullmatch(r"assumed where the data decides: index by a mask: 0.5 of the elements \(\d+ times\)", note)


@nightly
def test_what_programs_print_and_profile(record):
    recorded = record("""
from torch.profiler import profile, schedule, tensorboard_trace_handler
model = torch.jit.script(nn.Linear(8, 1).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with torch._subclasses.fake_tensor.FakeTensorMode():
    traced = torch.ones((), device="cuda")  # as torch.compile holds them: reading one would be traced
assert "FakeTensor" in f"{traced}"
with profile(schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=tensorboard_trace_handler("traces")) as profiler:
    for _ in range(5):
        loss = model(torch.randn(4, 8).cuda()).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        profiler.step()
        print(f"loss {loss:.4f} {loss} {model.weight}", loss.tolist())
        print(profiler.key_averages().table(sort_by="cpu_time_total"), torch.cuda.memory_summary())
""")
    assert recorded.launched["aten::_local_scalar_dense"] >= 2


@nightly
@pytest.mark.parametrize("loss, launched", [
    ("cell(x, x)", ["_thnn_fused_gru_cell", "_thnn_fused_gru_cell_backward"]),
    ("F.grid_sample(x.view(2, 1, 4, 4), F.affine_grid(cell.weight_ih[:6].sum(1).view(1, 2, 3).expand(2, 2, 3), (2, 1, 4, 4), True), align_corners=True)",
     ["cudnn_grid_sampler", "cudnn_grid_sampler_backward"]),
    ("F.multi_margin_loss(cell(x, x), torch.zeros(2, dtype=torch.int64, device='cuda'))", ["multi_margin_loss_backward"]),
    ("torch.sparse.mm(torch.sparse_coo_tensor(torch.zeros(2, 3, dtype=torch.int64), torch.ones(3), (2, 2)).cuda().coalesce(), cell(x, x))",
     ["_thnn_fused_gru_cell"])])
def test_operators_whose_shapes_pytorch_does_not_know(record, loss, launched):
    names = record(f"""
import torch.nn.functional as F
cell = nn.GRUCell(16, 16).cuda()
optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
for _ in range(4):
    x = torch.randn(2, 16, device="cuda")
    {loss}.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
""").launched
    assert [names["aten::" + name] for name in launched] == [1] * len(launched)


@nightly
def test_sparse_gradients_are_held_once(record):
    recorded = record("""
table = nn.EmbeddingBag(1000, 256, mode="sum", sparse=True).cuda()
optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
for _ in range(4):
    table(torch.randint(0, 1000, (64, 4096), device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
""")
    rows = 64 * 4096 * 256 * 4
    assert rows < recorded.header["peak_allocated_bytes"] < 1.05 * rows
    assert "aten::clone" not in recorded.launched


@nightly
def test_products_take_memory_of_cublas_for_each_thread(record):
    step = "    model(x).sum().backward()\n    optimizer.step()\n    optimizer.zero_grad()\n"
    recorded = record("model = nn.Linear(8, 8, bias=False).cuda()\nx = torch.randn(8, 8, device='cuda', requires_grad=True)\n"
                      "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor _ in range(4):\n" + step)
    assert 0 < recorded.header["start_allocated_bytes"] - 2 * (32 << 20) < 1 << 20  # forward and backward on Hopper


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
