import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(784, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10))

    def training_step(self, batch, _):
        loss = nn.functional.cross_entropy(self.layers(batch[0]), batch[1])
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


data = TensorDataset(torch.randn(4096, 784), torch.randint(0, 10, (4096,)))
trainer = lightning.Trainer(max_steps=6, devices=4, strategy="ddp", accelerator="gpu", precision="bf16-mixed", logger=False,
                            enable_checkpointing=False)
trainer.fit(Classifier(), DataLoader(data, batch_size=128))
