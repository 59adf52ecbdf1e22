import timm
from timm.loss import LabelSmoothingCrossEntropy
import torch

model = timm.create_model("vit_base_patch16_224", num_classes=100, drop_path_rate=0.1).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
criterion = LabelSmoothingCrossEntropy()
total = 0.0
for step in range(10):
    images, labels = torch.randn(16, 3, 224, 224).cuda(), torch.randint(0, 100, (16,)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = criterion(model(images), labels)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    scheduler.step()
    total += loss.item()
    if total > 1e6:
        break
