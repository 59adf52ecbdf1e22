import os

import torch
import torch.distributed as dist
from transformers import GPT2Config, GPT2LMHeadModel

dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
config = GPT2Config(n_layer=4)
model = GPT2LMHeadModel(config).cuda()
model = torch.nn.parallel.DistributedDataParallel(torch.compile(model), device_ids=[rank])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
best = float("inf")
for step in range(10):
    for micro in range(4):
        tokens = torch.randint(0, config.vocab_size, (2, 256)).pin_memory().cuda(non_blocking=True)
        model.require_backward_grad_sync = micro == 3
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(input_ids=tokens, labels=tokens).loss / 4
        loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if torch.isfinite(norm):
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    best = min(best, loss.item())
    if rank == 0:
        print(f"step {step} loss {loss.item():.4f} best {best:.4f} norm {norm.item():.2f}")
