import os

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("nccl")
rank, size = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))


class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, sizes):
        ctx.sizes = sizes
        out = x.new_empty(sum(sizes), x.shape[1])
        dist.all_to_all_single(out, x, sizes, [x.shape[0] // size] * size)
        return out

    @staticmethod
    def backward(ctx, grad):
        out = grad.new_empty(ctx.sizes[rank] * size, grad.shape[1])
        dist.all_to_all_single(out, grad.contiguous(), [ctx.sizes[rank]] * size, ctx.sizes)
        return out, None


batch, dim, tables = 256, 64, [3, 2, 2, 2]
bags = nn.ModuleList(nn.EmbeddingBag(100_000, dim, mode="sum", sparse=True) for _ in range(tables[rank])).cuda()
bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, dim), nn.ReLU()).cuda()
top = nn.Sequential(nn.Linear(dim * (1 + sum(tables)), 512), nn.ReLU(), nn.Linear(512, 1)).cuda()
dense = nn.parallel.DistributedDataParallel(nn.ModuleList([bottom, top]))
optimizer = torch.optim.SGD([*bags.parameters(), *dense.parameters()], lr=0.1)
for step in range(6):
    rows = [torch.randint(0, 100_000, (batch * size, 20)).cuda(non_blocking=True) for _ in bags]
    looked_up = torch.cat([bag(r) for bag, r in zip(bags, rows)])
    mine = Exchange.apply(looked_up, [t * batch for t in tables]).view(sum(tables), batch, dim)
    x = bottom(torch.randn(batch, 13, device="cuda"))
    score = top(torch.cat([x, *mine.unbind()], 1)).squeeze(1)
    loss = nn.functional.binary_cross_entropy_with_logits(score, torch.rand(batch, device="cuda").round())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
