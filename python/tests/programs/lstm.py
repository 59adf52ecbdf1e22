import torch
from torch import nn


class LanguageModel(nn.Module):
    def __init__(self, words=10000, width=512):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, dropout=0.5, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, tokens, state):
        out, state = self.lstm(self.embedding(tokens), state)
        return self.head(out), state


model = LanguageModel().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
state = (torch.zeros(2, 32, 512, device="cuda"), torch.zeros(2, 32, 512, device="cuda"))
for step in range(6):
    tokens = torch.randint(0, 10000, (32, 36), device="cuda")
    state = tuple(t.detach() for t in state)
    out, state = model(tokens[:, :-1], state)
    loss = nn.functional.cross_entropy(out.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    print(loss.item())
