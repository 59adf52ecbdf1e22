"""ResNet-50, for machines without `torchvision`: the same layers in the same order."""

from __future__ import annotations

from typing import List, Optional

import torch
from torch import nn
from torch.nn import functional


class Bottleneck(nn.Module):
    def __init__(self, c_in: int, width: int, stride: int) -> None:
        super().__init__()
        c_out = 4 * width
        self.conv1 = nn.Conv2d(c_in, width, 1, bias=False)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.conv3 = nn.Conv2d(width, c_out, 1, bias=False)
        self.norm1, self.norm2, self.norm3 = nn.BatchNorm2d(width), nn.BatchNorm2d(width), nn.BatchNorm2d(c_out)
        self.shortcut: Optional[nn.Module] = None
        if stride != 1 or c_in != c_out:
            self.shortcut = nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.norm1(self.conv1(x)), inplace=True)
        y = functional.relu(self.norm2(self.conv2(y)), inplace=True)
        y = self.norm3(self.conv3(y))
        y += x if self.shortcut is None else self.shortcut(x)
        return functional.relu(y, inplace=True)


class ResNet(nn.Module):
    """`blocks` (3, 4, 6, 3) and `width` 64 make ResNet-50; returns the mean loss."""

    def __init__(self, blocks: "tuple[int, ...]" = (3, 4, 6, 3), width: int = 64, classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width),
                                  nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        layers: List[nn.Module] = []
        c_in = width
        for stage, n in enumerate(blocks):
            for block in range(n):
                layers.append(Bottleneck(c_in, width << stage, 2 if stage > 0 and block == 0 else 1))
                c_in = 4 * (width << stage)
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(c_in, classes)

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        x = self.body(self.stem(images))
        return functional.cross_entropy(self.head(functional.adaptive_avg_pool2d(x, 1).flatten(1)), labels)
