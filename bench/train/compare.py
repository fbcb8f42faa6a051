"""Training steps of forebay beside PyTorch's, in one run.

    cargo build --release -p forebay-train --example step_time
    python bench/train/compare.py --ours target/release/examples/step_time [--models alexnet] [--devices cpu:2]
           [--batches 16,64] [--steps 5] [--rounds 3] [--out results.json]

The python that runs this must have torch (and torchvision for resnet50). Rounds go over all programs before the next begins, so that a
busy minute hits all alike. `on cores` is the time that all threads of a program spent computing (or spinning): with one thread it hardly
depends on what else the machine does. For each batch size there is the median and the best step of every program, and our figure over
that of PyTorch's fastest variant. What is held against the bound is the median on the wall clock. Exit status: 0 all within it, 1 not,
2 could not run.
"""

import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys

TORCH = pathlib.Path(__file__).parent / "torch_step.py"
# Most that our time may be, over PyTorch's fastest.
BOUNDS = {("alexnet", "cpu"): 1.1, ("alexnet", "cuda"): 1.0, ("resnet50", "cuda"): 1.15}


def programs(ours, model, device, batch, steps):
    common = [model, device, str(batch), str(steps)]
    yield "forebay", [ours, *common]
    kind = device.split(":")[0]
    layouts = ["contiguous", "channels_last"]
    for layout in layouts:
        for adam in ["fused"] if kind == "cuda" else ["plain", "fused"]:
            yield f"torch {layout} {adam}", [sys.executable, str(TORCH), *common, layout, adam]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr[-2000:]}", file=sys.stderr)
        sys.exit(2)
    return json.loads(done.stdout.splitlines()[-1])


def measure(ours, model, device, batch, steps, rounds):
    """Milliseconds of every program's steps, on the wall clock and on cores, and our mean with the next batch on its way."""
    wall, cores, overlapped = {}, {}, []
    for _ in range(rounds):
        for name, command in programs(ours, model, device, batch, steps):
            result = run(command)
            wall.setdefault(name, []).extend(result["ms"])
            cores.setdefault(name, []).extend(result["cpu_ms"])
            overlapped += [result["overlapped_ms"]] if "overlapped_ms" in result else []
    return wall, cores, overlapped


def ratio(times, summary):
    """Ours over that of PyTorch's variant that is fastest by the same summary."""
    return summary(times["forebay"]) / min(summary(ms) for name, ms in times.items() if name != "forebay")


def show(title, bound, wall, cores, overlapped):
    median, best = statistics.median, min
    print(f"{title}: forebay / fastest torch = {ratio(wall, median):.3f} (bound {bound}), load {os.getloadavg()[0]:.1f}")
    print(f"  best step {ratio(wall, best):.3f}; on cores: median {ratio(cores, median):.3f}, best {ratio(cores, best):.3f}")
    for name, ms in wall.items():
        print(f"  {name:32} median {median(ms):9.2f} ms  best {best(ms):9.2f} ms  "
              f"on cores: median {median(cores[name]):9.2f}, best {best(cores[name]):9.2f} ms ({len(ms)} steps)")
    print(f"  {'forebay, next batch on its way':32} mean   {statistics.mean(overlapped):9.2f} ms", flush=True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--ours", required=True)
    options.add_argument("--models", default="alexnet")
    options.add_argument("--devices", default="cpu:2")
    options.add_argument("--batches", default="16,64")
    options.add_argument("--steps", type=int, default=5)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--out")
    options = options.parse_args()
    results, met = [], True
    cases = itertools.product(options.models.split(","), options.devices.split(","), map(int, options.batches.split(",")))
    for model, device, batch in cases:
        wall, cores, overlapped = measure(options.ours, model, device, batch, options.steps, options.rounds)
        bound = BOUNDS.get((model, device.split(":")[0]))
        show(f"{model} {device} batch {batch}", bound, wall, cores, overlapped)
        found = ratio(wall, statistics.median)
        met &= bound is None or found <= bound
        case = {"model": model, "device": device, "batch": batch, "ratio": found}
        results.append(case | {"ms": wall, "cpu_ms": cores, "overlapped_ms": overlapped})
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(results))
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
