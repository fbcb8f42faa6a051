"""Times training steps of PyTorch: one line of JSON with milliseconds a step.

    python torch_step.py MODEL cpu:THREADS|cuda:f32|cuda:tf32|cuda:bf16 BATCH STEPS [contiguous|channels_last] [plain|fused]

The counterpart of forebay-train's example `step_time`: the same layers, batch and optimiser; the batch lies in host memory (pinned
for CUDA) and is handed in anew every step; the loss is read every step; the first steps are not kept.
"""

import json
import sys
import time

import torch
from torch import nn

CLASSES = 102


def alexnet():
    relu, pool = (lambda: nn.ReLU(True)), (lambda: nn.MaxPool2d(3, 2))
    features = [nn.Conv2d(3, 64, 11, 4, 2), relu(), pool(), nn.Conv2d(64, 192, 5, padding=2), relu(), pool()]
    features += [nn.Conv2d(192, 384, 3, padding=1), relu(), nn.Conv2d(384, 256, 3, padding=1), relu()]
    features += [nn.Conv2d(256, 256, 3, padding=1), relu(), pool(), nn.Flatten()]
    classifier = [nn.Dropout(), nn.Linear(9216, 4096), relu(), nn.Dropout(), nn.Linear(4096, 4096), relu(), nn.Linear(4096, CLASSES)]
    return nn.Sequential(*features, *classifier)


def model_of(name):
    if name == "alexnet":
        return alexnet()
    from torchvision.models import resnet50

    return resnet50(num_classes=CLASSES)


def main():
    name, device, batch, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    layout, adam = (sys.argv[5:] + ["contiguous"])[0], (sys.argv[6:] + ["plain"])[0]
    kind, detail = device.split(":")
    cuda = kind == "cuda"
    if not cuda:
        torch.set_num_threads(int(detail))
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = detail == "tf32"
    torch.manual_seed(0)
    memory = torch.channels_last if layout == "channels_last" else torch.contiguous_format
    model = model_of(name).to(kind).to(memory_format=memory).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, fused=adam == "fused")
    images = (torch.rand(batch, 3, 224, 224) - 0.5).contiguous(memory_format=memory)
    labels = torch.arange(batch) * 7 % CLASSES
    if cuda:
        images, labels = images.pin_memory(), labels.pin_memory()
    warm_up, times, cpu_times, losses = 20 if cuda else 2, [], [], []
    for step in range(warm_up + steps):
        begin, cpu = time.perf_counter(), time.process_time()
        x, y = images.to(kind, non_blocking=True), labels.to(kind, non_blocking=True)
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=detail == "bf16"):
            loss = nn.functional.cross_entropy(model(x), y)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        if step >= warm_up:
            times.append((time.perf_counter() - begin) * 1e3)
            cpu_times.append((time.process_time() - cpu) * 1e3)
    words = f"torch {torch.__version__}, {device}, {layout}, {adam} Adam"
    print(json.dumps({"device": words, "batch": batch, "ms": times, "cpu_ms": cpu_times, "losses": losses}))


if __name__ == "__main__":
    main()
