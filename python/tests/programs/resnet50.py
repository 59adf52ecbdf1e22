import torch, torchvision
from torch.utils.data import DataLoader

images = torchvision.datasets.FakeData(512, transform=torchvision.transforms.ToTensor())
loader = DataLoader(images, batch_size=32, shuffle=True, num_workers=2, pin_memory=True)
model = torchvision.models.resnet50(num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
criterion = torch.nn.CrossEntropyLoss()
scaler = torch.amp.GradScaler("cuda")
for image, label in loader:
    image, label = image.cuda(non_blocking=True), label.cuda(non_blocking=True)
    with torch.autocast("cuda", torch.float16):
        loss = criterion(model(image), label)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(f"loss {loss.item():.3f}")
