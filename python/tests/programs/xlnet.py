import torch
from transformers import XLNetConfig, XLNetLMHeadModel

config = XLNetConfig(d_model=512, n_layer=4, n_head=8, d_inner=2048)
model = XLNetLMHeadModel(config).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(6):
    tokens = torch.randint(0, config.vocab_size, (4, 256), device="cuda")
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
