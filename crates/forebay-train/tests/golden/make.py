"""Makes the golden files of forebay-train's tests from PyTorch, in double precision.

    python make.py        # writes *.safetensors beside this script; needs torch, torchvision and numpy

Layouts are forebay's: images are NHWC, filters are filter, row, column, channel. Files are safetensors, written here by
hand so that no further package is needed. Pixels of the network cases are a formula (`pixels`), not stored.
"""

import json
import pathlib
import struct

import numpy as np
import torch
from torch import nn
from torchvision.models.resnet import Bottleneck, ResNet

HERE = pathlib.Path(__file__).parent
torch.set_default_dtype(torch.float64)


def save(name, tensors):
    header, body = {}, b""
    for key, value in tensors.items():
        array = np.ascontiguousarray(value.detach().numpy(), dtype="<f4")
        header[key] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(body), len(body) + array.nbytes]}
        body += array.tobytes()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (HERE / f"{name}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)


def rounded(*shape):
    """Normal numbers that single precision holds exactly, so that both sides start from the same."""
    return torch.randn(*shape).float().double()


def ours(name, tensor):
    """A tensor of PyTorch in forebay's layout."""
    return tensor.permute(0, 2, 3, 1) if tensor.dim() == 4 else tensor


def settle(module):
    """Gives a module's parameters values that single precision holds."""
    for parameter in module.parameters():
        parameter.data = (0.5 * torch.randn_like(parameter)).float().double()


def layer(name, module, shape):
    """One layer: input, output, and all gradients for a random gradient of the output."""
    settle(module)
    module.train()
    x = rounded(*shape).requires_grad_()
    before = {key: value.clone() for key, value in module.state_dict().items()}
    y = module(x)
    dy = rounded(*y.shape)
    y.backward(dy)
    out = {"x": ours("x", x), "y": ours("y", y), "dy": ours("dy", dy), "dx": ours("dx", x.grad)}
    for key, value in before.items():
        if value.dim() > 0:
            out["before." + key] = ours(key, value)
    for key, parameter in module.named_parameters():
        out["gradient." + key] = ours(key, parameter.grad)
    if any("running" in key for key in before):
        for key, value in module.state_dict().items():
            if "running" in key:
                out["after." + key] = value
        module.eval()
        out["y_evaluating"] = ours("y", module(x))
    save(name, out)


class OnImage(nn.Module):
    """A linear layer on an image taken as a vector in NHWC order."""

    def __init__(self, height, width, channels, outputs):
        super().__init__()
        self.layer = nn.Linear(height * width * channels, outputs)

    def forward(self, x):
        return self.layer(x.permute(0, 2, 3, 1).flatten(1))


class Sum(nn.Module):
    """A residual block with a projection, ReLU after the sum."""

    def __init__(self, channels, filters):
        super().__init__()
        self.main = nn.Sequential(nn.Conv2d(channels, filters, 3, padding=1), nn.ReLU(), nn.Conv2d(filters, filters, 1))
        self.shortcut = nn.Conv2d(channels, filters, 1)

    def forward(self, x):
        return torch.relu(self.main(x) + self.shortcut(x))


def layers():
    layer("conv", nn.Sequential(nn.Conv2d(3, 5, 3, padding=1), nn.ReLU()), (2, 3, 7, 6))
    layer("conv_wide", nn.Conv2d(20, 40, 3, padding=1), (2, 20, 5, 9))
    layer("conv_grouped", nn.Conv2d(6, 4, 3, stride=2, padding=1, groups=2), (2, 6, 8, 7))
    layer("conv_strided", nn.Conv2d(3, 4, 11, stride=4, padding=2), (2, 3, 23, 27))
    layer("conv_unpadded", nn.Conv2d(3, 4, 5, stride=3, bias=False), (2, 3, 14, 12))
    layer("conv_pointwise", nn.Conv2d(8, 4, 1, bias=False), (3, 8, 4, 5))
    layer("conv_skipping", nn.Conv2d(8, 4, 1, stride=2, bias=False), (3, 8, 5, 6))
    layer("conv_clashing", nn.Conv2d(512, 4, 1, bias=False), (1, 512, 2, 3))
    layer("linear", nn.Sequential(nn.Linear(40, 37), nn.ReLU()), (3, 40))
    layer("linear_on_image", OnImage(2, 3, 4, 5), (3, 4, 2, 3))
    layer("relu", nn.Sequential(nn.MaxPool2d(1), nn.ReLU()), (2, 3, 4, 5))
    layer("max_pool", nn.MaxPool2d(3, 2), (2, 4, 9, 7))
    layer("max_pool_padded", nn.MaxPool2d(3, 2, padding=1), (2, 4, 8, 7))
    layer("average_pool", nn.AvgPool2d(2, 2), (2, 3, 4, 6))
    layer("average_pool_global", nn.AdaptiveAvgPool2d(1), (2, 5, 4, 4))
    layer("batch_norm", nn.BatchNorm2d(5), (3, 5, 4, 3))
    layer("batch_norm_relu", nn.Sequential(nn.BatchNorm2d(5), nn.ReLU()), (3, 5, 4, 3))
    layer("residual", Sum(4, 6), (2, 4, 5, 5))


def pixels(n):
    return pixels_at(0, n)


def pixels_at(first, n):
    """Numbers between 0 and 1 that need not be stored: a hash of their place."""
    h = np.arange(first, first + n, dtype=np.uint32) * np.uint32(2654435761)
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x85EBCA6B)
    h ^= h >> np.uint32(13)
    return (h >> np.uint32(8)).astype(np.float32) / np.float32(1 << 24)


def alexnet_small(classes):
    def relu(*arguments, **options):
        return [nn.Conv2d(*arguments, **options), nn.ReLU()]

    features = [*relu(3, 6, 11, stride=4, padding=2), nn.MaxPool2d(3, 2), *relu(6, 8, 5, padding=2), nn.MaxPool2d(3, 2)]
    features += [*relu(8, 10, 3, padding=1), *relu(10, 8, 3, padding=1), *relu(8, 8, 3, padding=1), nn.MaxPool2d(3, 2)]
    classifier = [nn.Identity(), nn.Linear(8, 16), nn.ReLU(), nn.Identity(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, classes)]
    model = nn.Sequential()
    model.add_module("features", nn.Sequential(*features))
    model.add_module("flatten", nn.Flatten())
    model.add_module("classifier", nn.Sequential(*classifier))
    return model


class ResNetSmall(ResNet):
    """torchvision's own blocks, narrow, in two stages."""

    def __init__(self, classes):
        nn.Module.__init__(self)
        self._norm_layer, self.inplanes, self.dilation, self.groups, self.base_width = nn.BatchNorm2d, 4, 1, 1, 64
        self.conv1 = nn.Conv2d(3, 4, 7, stride=2, padding=3, bias=False)
        self.bn1, self.relu, self.maxpool = nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1)
        self.layer1 = self._make_layer(Bottleneck, 4, 2)
        self.layer2 = self._make_layer(Bottleneck, 8, 1, stride=2)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(32, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(self.layer2(self.layer1(x))), 1))


# Adam divides by the gradient's size, so that of a gradient near 0 it is the rounding that counts: a larger epsilon than usual.
OPTIMISERS = {
    "adam": lambda p: torch.optim.Adam(p, lr=2e-3, eps=1e-3, weight_decay=1e-2),
    "adamw": lambda p: torch.optim.AdamW(p, lr=2e-3, eps=1e-3, weight_decay=5e-2),
    "sgd": lambda p: torch.optim.SGD(p, lr=2e-2, momentum=0.9, weight_decay=1e-2, nesterov=True),
}


def descend(optimiser, loss):
    """One step: the loss before it."""
    value = loss()
    optimiser.zero_grad()
    value.backward()
    optimiser.step()
    return value.detach()


def network(name, make, side, batch, steps):
    """Losses of a few steps, and the parameters and statistics before and after, for every optimiser."""
    classes = 7
    x = torch.from_numpy(pixels(batch * side * side * 3).astype(np.float64)).reshape(batch, side, side, 3).permute(0, 3, 1, 2)
    labels = torch.arange(batch) * 3 % classes
    first = make(classes)
    for parameter in first.parameters():
        parameter.data = parameter.data.float().double()
    out = {"before." + key: ours(key, value) for key, value in first.state_dict().items() if value.dim() > 0}
    for rule, optimiser in OPTIMISERS.items():
        model = make(classes)
        model.load_state_dict(first.state_dict())
        model.train()
        update = optimiser(model.parameters())
        losses = [descend(update, lambda: nn.functional.cross_entropy(model(x), labels)) for _ in range(steps)]
        out[f"{rule}.losses"] = torch.stack(losses)
        out.update({f"{rule}.after.{key}": ours(key, value) for key, value in model.state_dict().items() if value.dim() > 0})
        model.eval()
        out[f"{rule}.logits"] = model(x)
    save(name, out)


def more_layers():
    layer("average_pool_overlapping", nn.AvgPool2d(3, 2), (2, 3, 7, 8))
    layer("conv_depthwise", nn.Conv2d(6, 6, 3, padding=1, groups=6), (2, 6, 5, 4))
    layer("residual_identity", Same(3), (2, 3, 4, 5))


class Same(nn.Module):
    """A residual block whose shortcut is the input itself."""

    def __init__(self, channels):
        super().__init__()
        self.main = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        return torch.relu(self.main(x) + x)


RULES = {
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2),
    "adam_decayed": lambda p: torch.optim.Adam(p, lr=1e-2, betas=(0.8, 0.99), eps=1e-4, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd_decayed": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "momentum_decayed": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
}


def optimizers():
    """One linear layer on labels that are shares of classes: losses, parameters and moments of every rule."""
    x, first = rounded(4, 6), nn.Linear(6, 5)
    settle(first)
    shares = torch.softmax(rounded(4, 5), 1).float().double()
    out = {"x": x, "shares": shares, "before.fc.weight": first.weight, "before.fc.bias": first.bias}
    for name, rule in RULES.items():
        model = nn.Linear(6, 5)
        model.load_state_dict(first.state_dict())
        optimiser = rule(model.parameters())
        losses = [descend(optimiser, lambda: nn.functional.cross_entropy(model(x), shares)) for _ in range(6)]
        out[f"{name}.losses"] = torch.stack(losses)
        for key, parameter in model.named_parameters():
            out[f"{name}.after.fc.{key}"] = parameter
            for moment, value in optimiser.state[parameter].items():
                if value is not None and value.dim() > 0:
                    out[f"{name}.after.fc.{key}.{moment}"] = value
    save("optimizers", out)


def bits(key, count):
    """The first values of one of forebay's random streams: SplitMix64 from `key` on."""
    z = np.uint64(key) + np.uint64(0x9E3779B97F4A7C15) * np.arange(1, count + 1, dtype=np.uint64)
    return mix(z)


def mix(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def key(seed, stream):
    """The key of one of forebay's random streams."""
    start = np.array([seed], dtype=np.uint64) ^ np.uint64(0x747261696E210001)
    return int(mix(mix(start) + np.array([stream], dtype=np.uint64) * np.uint64(0xD1B54A32D192ED03))[0])


def kept(seed, layer, step, shape):
    """What dropout layer number `layer`, from 1, multiplies a batch by in a step, at a rate of a half."""
    n = int(np.prod(shape))
    draws = bits(key(key(seed, 2**32 + layer), step), n) >> np.uint64(32)
    return torch.from_numpy(np.where(draws >= np.uint64(2**31), 2.0, 0.0)).reshape(shape)


def alexnet(batch=2, classes=10, seed=1, steps=2):
    """Steps of the whole AlexNet with dropout. Parameters are a formula; of the gradients a few hundred values each are kept."""
    sizes = [(64, 11, 11, 3), (192, 5, 5, 64), (384, 3, 3, 192), (256, 3, 3, 384), (256, 3, 3, 256)]
    sizes = dict(zip(["features.0", "features.3", "features.6", "features.8", "features.10"], sizes))
    sizes |= {"classifier.1": (4096, 9216), "classifier.4": (4096, 4096), "classifier.6": (classes, 4096)}
    parameters, at = {}, 0
    for name, shape in sizes.items():
        n, outputs = int(np.prod(shape)), shape[0]
        bound = np.float32(2 * (6 * outputs / n) ** 0.5)
        weight = (pixels_at(at, n) - np.float32(0.5)) * bound
        bias = (pixels_at(at + n, outputs) - np.float32(0.5)) * np.float32(0.1)
        at += n + outputs
        parameters[name + ".weight"] = torch.from_numpy(weight.astype(np.float64)).reshape(shape).requires_grad_()
        parameters[name + ".bias"] = torch.from_numpy(bias.astype(np.float64)).requires_grad_()
    x = torch.from_numpy(pixels(batch * 224 * 224 * 3).astype(np.float64)).reshape(batch, 224, 224, 3).permute(0, 3, 1, 2)
    labels = torch.arange(batch) * 3 % classes

    def conv(x, name, **options):
        weight = parameters[name + ".weight"].permute(0, 3, 1, 2)
        return torch.relu(nn.functional.conv2d(x, weight, parameters[name + ".bias"], **options))

    def linear(x, name):
        return nn.functional.linear(x, parameters[name + ".weight"], parameters[name + ".bias"])

    def forward(step):
        pool = lambda x: nn.functional.max_pool2d(x, 3, 2)
        y = pool(conv(pool(conv(x, "features.0", stride=4, padding=2)), "features.3", padding=2))
        for name in ["features.6", "features.8", "features.10"]:
            y = conv(y, name, padding=1)
        y = pool(y).permute(0, 2, 3, 1).flatten(1)
        y = torch.relu(linear(y * kept(seed, 1, step, y.shape), "classifier.1"))
        y = torch.relu(linear(y * kept(seed, 2, step, y.shape), "classifier.4"))
        return linear(y, "classifier.6")

    optimiser, losses, out = torch.optim.SGD(parameters.values(), lr=1e-3, momentum=0.9), [], {}
    for step in range(1, steps + 1):
        losses.append(descend(optimiser, lambda: nn.functional.cross_entropy(forward(step), labels)))
        for name, parameter in parameters.items():
            gradient = parameter.grad.flatten()
            out[f"{step}.norm.{name}"] = gradient.norm().reshape(1)
            velocity = optimiser.state[parameter]["momentum_buffer"].flatten()
            out[f"{step}.some.{name}"] = velocity[:: max(1, len(velocity) // 300)].clone()
    out["losses"] = torch.stack(losses)
    save("alexnet", out)


if __name__ == "__main__":
    torch.manual_seed(1)
    layers()
    network("alexnet-small", alexnet_small, 63, 4, 3)
    network("resnet-small", ResNetSmall, 32, 4, 3)
    torch.manual_seed(2)
    more_layers()
    optimizers()
    alexnet()
