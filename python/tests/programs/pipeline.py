import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import Schedule1F1B, SplitPoint, pipeline

rank = int(os.environ["RANK"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl")
layers = [nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, norm_first=True) for _ in range(4)]
model = nn.Sequential(nn.Embedding(32000, 512), *layers, nn.Linear(512, 32000)).to(device)
tokens = torch.randint(0, 32000, (4, 256), device=device)
stage = pipeline(model, (tokens,), split_spec={"3": SplitPoint.BEGINNING}).build_stage(rank, device)
schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=lambda out, target: nn.functional.cross_entropy(out.flatten(0, 1), target.flatten()))
optimizer = torch.optim.AdamW(stage.submod.parameters(), lr=1e-4)
for step in range(6):
    batch = torch.randint(0, 32000, (16, 256), device=device)
    if rank == 0:
        schedule.step(batch)
    else:
        losses = []
        schedule.step(target=batch, losses=losses)
        print(torch.stack(losses).mean().item())
    optimizer.step()
    optimizer.zero_grad()
