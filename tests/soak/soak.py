"""Loaders and a saver for as long as asked, as programs use and misuse them; fails if memory, threads or files grow.

`cargo xtask soak MINUTES` builds the package and runs this.
"""

import argparse
import gc
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

import forebay

# Growth of resident memory from the second quarter to the last that is put down to fragments.
SLACK_BYTES = 8 << 20


def make_data(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(300):
        (folder / "photos" / str(number % 5)).mkdir(parents=True, exist_ok=True)
        side = 64 + number % 7 * 32
        picture = np.repeat(np.repeat(rng.integers(0, 256, (side // 8, side // 8, 3), np.uint8), 8, 0), 8, 1)
        path = folder / "photos" / str(number % 5) / f"{number}.jpg"
        Image.fromarray(picture).save(path, quality=90)
        if number % 50 == 7:
            path.write_bytes(path.read_bytes()[:-200])
    np.save(folder / "rows.npy", rng.random((4_000, 300), np.float32))
    rng.integers(0, 60_000, 400_000, dtype=np.uint16).tofile(folder / "tokens.bin")


def resident() -> int:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


class Work:
    """One round is an epoch of each loader, each used in another way, and two saves."""

    def __init__(self, folder: Path) -> None:
        self.draw, self.folder, self.step = random.Random(1), folder, 0
        self.images = forebay.ImageLoader(
            folder / "photos", batch_size=16, image_size=96, train=True, normalize="imagenet", jitter=(0.2, 0.2, 0.2, 0.1),
            threads=2, errors="skip", output="numpy",
        )  # fmt: skip
        self.rows = forebay.ArrayLoader(folder / "rows.npy", batch_size=64, shuffle=True, threads=2, output="numpy")
        self.tokens = forebay.TokenLoader(folder / "tokens.bin", length=128, batch_size=32, shuffle=True, output="numpy")
        self.saver = forebay.Checkpointer(folder / "checkpoints", keep=3)

    def round(self) -> int:
        """Returns the batches that were seen."""
        return sum(part() for part in (self._whole, self._left_early, self._kept, self._mapped, self._new, self._resumed))

    def _whole(self) -> int:
        n = sum(len(labels) for _, labels in self.images)
        stats = self.images.stats()
        assert n in (272, 288) and stats["failed"] <= 6, stats
        return n // 16

    def _left_early(self) -> int:
        stop = self.draw.randrange(1, 30)
        for n, _ in enumerate(self.rows, 1):
            if n == stop:
                break
        return n

    def _kept(self) -> int:
        kept = [batch["data"] for batch in self.rows]
        rows = np.sort(np.concatenate(kept)[:, 0])
        assert len(np.unique(rows)) > 3_900, "kept batches keep their values"
        return len(kept)

    def _mapped(self) -> int:
        loader = forebay.TokenLoader(
            self.folder / "tokens.bin", length=64, batch_size=64, output="numpy", map=lambda batch: batch[0].sum(), map_threads=2
        )
        return sum(1 for _ in loader)

    def _new(self) -> int:
        iterators = [iter(self.images), iter(self.tokens)]
        for iterator in iterators:
            next(iterator)
        return len(iterators)

    def _resumed(self) -> int:
        weights = {"w": np.full(200_000, self.step, np.float32)}
        for _ in range(2):
            self.step += 1
            self.saver.save(self.step, model=weights, loader=self.images, rows=self.rows)
        assert self.saver.wait()
        restored = self.saver.restore(model=weights, loader=self.images)
        assert restored.step == self.step
        return 0


def watched(work: Work, seconds: float, say: Callable[[str], None]) -> list[tuple[float, int, int, int]]:
    """Rounds until the time is over: time, resident bytes, threads, open files after each."""
    start, seen, n_batches, told = time.monotonic(), [], 0, 0.0
    while (passed := time.monotonic() - start) < seconds or len(seen) < 40:
        n_batches += work.round()
        gc.collect()
        seen.append((passed, resident(), len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))))
        if passed - told > 60:
            told = passed
            say(f"{passed / 60:.0f} min: {len(seen)} rounds, {n_batches} batches, {seen[-1][1] / 1e6:.1f} MB, {seen[-1][2]} threads")
    say(f"{len(seen)} rounds, {n_batches} batches, {work.step} checkpoints in {passed / 60:.1f} min")
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("minutes", type=float)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make_data(Path(folder))
        work = Work(Path(folder))
        seen = watched(work, given.minutes * 60, lambda line: print(line, flush=True))
        work.saver.close()
    quarter = len(seen) // 4
    early, late = seen[quarter : 2 * quarter], seen[-quarter:]
    before, after = (statistics.median(row[1] for row in rows) for rows in (early, late))
    print(f"resident memory: median {before / 1e6:.1f} MB in the second quarter, {after / 1e6:.1f} MB in the last")
    if after > before + SLACK_BYTES:
        raise SystemExit("memory grew")
    for at, what in ((2, "threads"), (3, "open files")):
        before, after = max(row[at] for row in early), max(row[at] for row in late)
        if after > before:
            raise SystemExit(f"{what} grew from {before} to {after}")


if __name__ == "__main__":
    main()
