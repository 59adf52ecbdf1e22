import torch
import torchvision

model = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None).cuda().train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
boxes, labels = torch.tensor([[10.0, 20.0, 100.0, 200.0], [30.0, 40.0, 300.0, 350.0]]), torch.tensor([1, 2])
for step in range(6):
    images = [torch.rand(3, 400, 500).cuda() for _ in range(2)]
    loss = sum(model(images, [{"boxes": boxes.cuda(), "labels": labels.cuda()} for _ in images]).values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
