"""Training steps of forebay beside PyTorch's, in one run.

    cargo build --release -p forebay-train --example step_time
    python bench/train/compare.py --ours target/release/examples/step_time [--models alexnet] [--devices cpu:2]
           [--batches 16,64] [--steps 5] [--rounds 3] [--out results.json]

The python that runs this must have torch (and torchvision for resnet50). Rounds go over all programs before the next begins, so that a
busy minute hits all alike. `on cores` is the time that all threads of a program spent computing (or spinning): with one thread it hardly
depends on what else the machine does. For each batch size the table has the median and the best step of every program; the last
column is our median over that of PyTorch's fastest variant. Exit status: 0 all within the bound, 1 not, 2 could not run.
"""

import argparse
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
    for model in options.models.split(","):
        for device in options.devices.split(","):
            for batch in map(int, options.batches.split(",")):
                times, cpu, overlapped = {}, {}, []
                for _ in range(options.rounds):
                    for name, command in programs(options.ours, model, device, batch, options.steps):
                        result = run(command)
                        times.setdefault(name, []).extend(result["ms"])
                        cpu.setdefault(name, []).extend(result["cpu_ms"])
                        overlapped += [result["overlapped_ms"]] if "overlapped_ms" in result else []
                medians = {name: statistics.median(ms) for name, ms in times.items()}
                fastest = min(value for name, value in medians.items() if name != "forebay")
                ratio = medians["forebay"] / fastest
                bound = BOUNDS.get((model, device.split(":")[0]))
                met &= bound is None or ratio <= bound
                print(f"{model} {device} batch {batch}: forebay / fastest torch = {ratio:.3f} (bound {bound}), load {os.getloadavg()[0]:.1f}")
                for name, ms in times.items():
                    print(f"  {name:32} median {medians[name]:9.2f} ms  best {min(ms):9.2f} ms  "
                          f"on cores: median {statistics.median(cpu[name]):9.2f}, best {min(cpu[name]):9.2f} ms ({len(ms)} steps)", flush=True)
                print(f"  {'forebay, next batch on its way':32} mean   {statistics.mean(overlapped):9.2f} ms", flush=True)
                results.append({"model": model, "device": device, "batch": batch, "ratio": ratio, "ms": times, "cpu_ms": cpu, "overlapped_ms": overlapped})
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(results))
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
