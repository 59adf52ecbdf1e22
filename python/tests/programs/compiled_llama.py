import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from transformers import LlamaConfig, LlamaForCausalLM

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
mesh = init_device_mesh("cuda", (2, 4), mesh_dim_names=("dp", "tp"))
config = LlamaConfig(hidden_size=1024, num_hidden_layers=2, num_attention_heads=16, num_key_value_heads=4, intermediate_size=2816)
model = LlamaForCausalLM(config).cuda()
plan = {f"{part}_proj": ColwiseParallel() for part in ("self_attn.q", "self_attn.k", "self_attn.v", "mlp.gate", "mlp.up")}
for layer in model.model.layers:
    parallelize_module(layer, mesh["tp"], {**plan, "self_attn.o_proj": RowwiseParallel(), "mlp.down_proj": RowwiseParallel()})
    layer.compile()
    fully_shard(layer, mesh=mesh["dp"])
fully_shard(model, mesh=mesh["dp"])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for step in range(6):
    tokens = torch.randint(0, config.vocab_size, (2, 1024), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
