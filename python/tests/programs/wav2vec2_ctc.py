import torch
from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

model = Wav2Vec2ForCTC(Wav2Vec2Config(num_hidden_layers=2, layerdrop=0.0)).cuda().train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(6):
    sound, letters = torch.randn(4, 32000).cuda(), torch.randint(1, 32, (4, 20)).cuda()
    loss = model(sound, labels=letters).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
