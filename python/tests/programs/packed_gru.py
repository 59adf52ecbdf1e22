import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

gru, head = nn.GRU(256, 512, num_layers=2, bidirectional=True).cuda(), nn.Linear(1024, 10).cuda()
optimizer = torch.optim.Adam([*gru.parameters(), *head.parameters()])
for step in range(6):
    lengths = torch.arange(50, 34, -1)
    with torch.autocast("cuda", torch.bfloat16):
        packed = pack_padded_sequence(torch.randn(50, 16, 256, device="cuda"), lengths)
        out, _ = pad_packed_sequence(gru(packed)[0])
        loss = head(out).logsumexp(-1).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
