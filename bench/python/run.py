"""Compares `forebay.ImageLoader` with `forebay ingest` and other loaders on the same files.

Every measurement is a process of its own; the contenders take turns, so a machine that becomes slower is slower for all. The
figure is images per CPU second, which other programs disturb less than the wall clock.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from contenders import CONTENDERS, RAW_SIDE

# Least ratio of the loader to each, as set for this package.
GOALS = {
    ("forebay_plain", "ingest"): 0.95,
    ("forebay_augmented", "dataloader_augmented"): 2.3,
    ("forebay_plain", "dataloader_plain"): 2.3,
    ("forebay_augmented", "tfdata_augmented"): 1.7,
    ("forebay_plain", "tfdata_plain"): 1.7,
    ("forebay_augmented", "dali_augmented"): 1.0,
    ("forebay_augmented", "spdl_augmented"): 1.0,
    ("forebay_raw_augmented", "ffcv_raw_augmented"): 1.2,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the sets imagenet and caltech")
    parser.add_argument("--forebay", required=True, help="the binary")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="contenders to run")
    given = parser.parse_args()

    def one(*words: object) -> dict[str, float]:
        command = [sys.executable, Path(__file__).parent / "contenders.py", *words]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{words[0]}: {done.stderr.strip().splitlines()[-1]}")
        return json.loads(done.stdout.splitlines()[-1])

    names = [name for name in ["ingest", *CONTENDERS] if not given.only or name in given.only]
    for data in (given.data / "imagenet", given.data / "caltech"):
        if "forebay_raw_augmented" in names and not (shards := data.with_name(f"{data.name}.tensor")).exists():
            pack = [given.forebay, "data", "pack", data, shards, "--to", "tensor", "--size", str(RAW_SIDE), "--shard-size", "64MiB"]
            subprocess.run(pack, check=True, stdout=subprocess.DEVNULL)
        rates: dict[str, list[float]] = {name: [] for name in names}
        failed: dict[str, str] = {}
        for _ in range(given.rounds):
            for name in names:
                if name in failed:
                    continue
                try:
                    result = one(name, data, given.threads, *([given.forebay] if name == "ingest" else []))
                    rates[name].append(result["images"] / result["cpu_s"])
                except RuntimeError as error:
                    failed[name] = str(error)
        print(f"\n{data.name}: images per CPU second, {given.threads} threads, median of {given.rounds} rounds")
        medians = {name: statistics.median(found) for name, found in rates.items() if found}
        for name, rate in medians.items():
            print(f"  {name:22} {rate:8.0f}   ({min(rates[name]):.0f} to {max(rates[name]):.0f})")
        for name, why in failed.items():
            print(f"  {name:22}  not run: {why}")
        for (ours, theirs), goal in GOALS.items():
            if ours in medians and theirs in medians:
                ratio = medians[ours] / medians[theirs]
                print(f"  {ours} / {theirs}: {ratio:.2f} (goal {goal}: {'reached' if ratio >= goal else 'not reached'})")
    small = given.data / "caltech"
    for what, key, goal in (("overhead", "us_per_batch", 20.0), ("first_batch", "s", 0.3)):
        found = statistics.median(one(what, small)[key] for _ in range(given.rounds))
        print(f"{what}, {key}: {found:.3g} (goal {goal}: {'reached' if found <= goal else 'not reached'})")


if __name__ == "__main__":
    main()
