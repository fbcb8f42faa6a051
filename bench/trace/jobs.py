"""What `forebay trace` adds to whole training jobs of PyTorch and TensorFlow, in processor time of everything that runs, tracer included.

    cargo xtask trace-torch && cargo xtask interop        # make the environments
    python bench/trace/jobs.py --forebay target/release/forebay --photos DIR
           --torch .venv/torch/bin/python --tensorflow .venv/python/bin/python [--rounds 5]

DIR is a folder of classes of JPEG files, such as `forebay data make imagenet DIR --count 400` makes. Bare and traced runs take turns.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

TORCH = """
import sys, torch, torchvision
from torchvision import transforms
torch.set_num_threads(1)
to = transforms.Compose([transforms.RandomResizedCrop(128), transforms.ToTensor()])
small = torch.nn.Conv2d(3, 16, 7, 4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4)
model = torch.nn.Sequential(*small, torch.nn.Flatten(), torch.nn.Linear(256, 1000))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
if __name__ == "__main__":
    data = torchvision.datasets.ImageFolder(sys.argv[1], to)
    for epoch in range(int(sys.argv[2])):
        for images, labels in torch.utils.data.DataLoader(data, batch_size=32, shuffle=True, num_workers=2):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    torch.save(model.state_dict(), sys.argv[3])
"""
TENSORFLOW = """
import sys, tensorflow as tf
def load(name):
    image = tf.io.decode_jpeg(tf.io.read_file(name), channels=3)
    return tf.image.resize(image, [128, 128]) / 255
names = tf.data.Dataset.list_files(sys.argv[1] + "/*/*", seed=1)
batches = names.map(load, num_parallel_calls=2).batch(32).prefetch(1)
kernel = tf.Variable(tf.random.normal([7, 7, 3, 16], stddev=0.05))
@tf.function
def step(images):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(images, kernel, 4, "SAME")) ** 2)
    kernel.assign_sub(1e-3 * tape.gradient(loss, kernel))
for epoch in range(int(sys.argv[2])):
    for images in batches:
        step(images)
tf.train.Checkpoint(kernel=kernel).write(sys.argv[3])
"""


def processor_s(command: list[str]) -> float:
    """Of a command and all its descendants that were waited for."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(command)}: status {status}")
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ["forebay", "photos", "torch", "tensorflow"]:
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=6)
    words = parser.parse_args()
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    jobs = {"PyTorch": (words.torch, TORCH), "TensorFlow": (words.tensorflow, TENSORFLOW)}
    with tempfile.TemporaryDirectory() as work:
        for name, (python, script) in jobs.items():
            file = Path(work) / f"{name}.py"
            file.write_text(script)
            job = [str(python.absolute()), str(file), str(words.photos), str(words.epochs), f"{work}/saved"]
            bare, traced, n_calls = [], [], 0
            for number in range(words.rounds):
                out = f"{work}/{name}-{number}"
                bare.append(processor_s(job))
                traced.append(processor_s([str(words.forebay), "trace", "--out", out, "--", *job]))
                cell = json.loads(Path(out, "record.json").read_text())["cells"][0]
                n_calls = sum(row["calls"] for row in cell["operations"])
                lost = cell["totals"]["lost_events"]
                added = 100 * (traced[-1] / bare[-1] - 1)
                said = f"{bare[-1]:.2f} s bare, {traced[-1]:.2f} s traced, {added:+.1f} %, {lost} events lost"
                print(f"{name} {number}: {said}", flush=True)
            middle, least = (100 * (of(traced) / of(bare) - 1) for of in (statistics.median, min))
            print(f"{name}: {statistics.median(bare):.2f} s, {n_calls} calls, {middle:+.1f} % by medians, {least:+.1f} % by minima", flush=True)


if __name__ == "__main__":
    main()
