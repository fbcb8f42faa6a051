"""Making the data: both tools to the same destination, beside what that destination takes when nothing is made.

A disk is slower than either generator may be, so there are memory file systems too: of pages as the system has them, and of
huge ones, whose upkeep takes less of the cores. Every destination has a ceiling, measured between the tools: the same files
from one ready buffer. Where not even the ceiling is ten times DLIO, the goal is to come near the ceiling. A ceiling that
forebay is well above is none, as on a busy machine: it excuses nothing.
"""

import ctypes
import mmap
import os
import resource
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from table import GB, MB, Table
from tools import Dlio, Forebay

FILES = 192
TIMES = 10
NEAR = 0.9
PIECE = 1 << 20
WRITERS = 4
MEMORY = Path("/dev/shm")


@dataclass
class Rates:
    """MB/s of the rounds to one destination, and the seconds of all cores a GB."""

    dlio: list[float] = field(default_factory=list)
    durable: list[float] = field(default_factory=list)
    forebay: list[float] = field(default_factory=list)
    ceiling: list[float] = field(default_factory=list)
    dlio_cpu: list[float] = field(default_factory=list)
    forebay_cpu: list[float] = field(default_factory=list)


def generation(dlio: Dlio, forebay: Forebay, table: Table, rounds: int) -> None:
    """Rates to every destination there is."""
    disk = measured(dlio, forebay, dlio.work.parent / "data-made", rounds)
    theirs, ours = median(disk.dlio), median(disk.forebay)
    table.add("generation, disk: DLIO as it ends, forebay durable", theirs, ours, ours / theirs)
    judged(table, "generation, disk: both until durable, MB/s", disk.durable, disk)
    if MEMORY.is_dir():
        memory = measured(dlio, forebay, MEMORY / f"forebay-dlio-{os.getpid()}", rounds)
        judged(table, "generation, memory: /dev/shm, MB/s", memory.dlio, memory)
        cores(table, "/dev/shm", memory)
    if huge := huge_pages(dlio.work.parent / "huge"):
        memory = measured(dlio, forebay, huge / "made", rounds)
        subprocess.run(["umount", str(huge)], check=True)
        judged(table, "generation, memory: tmpfs of huge pages, MB/s", memory.dlio, memory)
        cores(table, "tmpfs of huge pages", memory)
    else:
        print("generation, memory: tmpfs of huge pages: not run, for it takes root to mount one")


def judged(table: Table, what: str, theirs: list[float], rates: Rates) -> None:
    """A row with the goal, and one with the ceiling."""
    theirs, ours, ceiling = median(theirs), median(rates.forebay), max(rates.ceiling)
    ratio, share = ours / theirs, ours / ceiling
    if ceiling >= TIMES * theirs or share > 1 / NEAR:
        table.add(what, theirs, ours, ratio, f"≥ {TIMES}×", ratio >= TIMES)
    else:
        table.add(what, theirs, ours, ratio, f"≥ {NEAR:.0%} of the ceiling, which is below {TIMES}×", share >= NEAR)
    table.add(f"  its ceiling, MB/s (forebay is at {share:.0%})", None, ceiling, ceiling / theirs)


def cores(table: Table, where: str, rates: Rates) -> None:
    """What it takes of the cores, which a busy machine changes less than the rates."""
    theirs, ours = median(rates.dlio_cpu), median(rates.forebay_cpu)
    table.add(f"  CPU seconds a GB, {where}", theirs, ours, theirs / ours)


def measured(dlio: Dlio, forebay: Forebay, folder: Path, rounds: int) -> Rates:
    """Both tools and the ceiling in turn; nothing of it stays."""
    rates, shape = Rates(), replace(dlio.shape, files=FILES)

    def timed(make) -> tuple[float, float]:
        """The seconds that it says it took, and those of all cores."""
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(["sync"], check=True)
        before = cpu_s()
        return make(), cpu_s() - before

    try:
        # Its imports, and a file a rank.
        _, imports = timed(lambda: dlio.make(2, folder, 2))
        rest = shape.bytes - 2 * shape.record
        for _ in range(rounds):
            seconds, cpu = timed(lambda: dlio.make(2, folder, FILES))
            rates.dlio.append(shape.bytes / seconds / MB)
            rates.durable.append(shape.bytes / (seconds + synced(folder)) / MB)
            rates.dlio_cpu.append((cpu - imports) / rest * GB)
            seconds, _ = timed(lambda: plain_writes(folder, FILES, shape.record))
            rates.ceiling.append(shape.bytes / seconds / MB)
            seconds, cpu = timed(lambda: forebay.make(folder, FILES))
            rates.forebay.append(shape.bytes / seconds / MB)
            rates.forebay_cpu.append(cpu / shape.bytes * GB)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return rates


def cpu_s() -> float:
    """Seconds that all ended children took of the cores."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def synced(folder: Path) -> float:
    """The seconds until what was written is on the device."""
    start = time.monotonic()
    subprocess.run(["sync", "--file-system", str(folder)], check=True)
    return time.monotonic() - start


def plain_writes(folder: Path, files: int, record: int) -> float:
    """The seconds to write files of one ready buffer, past the page cache where there is such a thing; not synced."""
    folder.mkdir(parents=True)
    piece = mmap.mmap(-1, PIECE)
    piece.write(os.urandom(PIECE))

    def write(number: int) -> None:
        file = opened(folder / str(number))
        try:
            for offset in range(0, record // PIECE * PIECE, PIECE):
                os.pwrite(file, piece, offset)
            # Whole pages only: a ceiling may leave out less than one of them.
            rest = record % PIECE // mmap.PAGESIZE * mmap.PAGESIZE
            os.pwrite(file, memoryview(piece)[:rest], record // PIECE * PIECE)
        finally:
            os.close(file)

    start = time.monotonic()
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(files)))
    return time.monotonic() - start


def opened(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT
    with suppress(OSError):
        return os.open(path, flags | os.O_DIRECT)
    return os.open(path, flags)


def huge_pages(folder: Path) -> Path | None:
    """A memory file system of huge pages that nobody but this process and its children sees; it goes when they end."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts = 0x0002_0000
    if os.geteuid() != 0 or libc.unshare(new_mounts) != 0:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    for words in (["--make-rprivate", "/"], ["-t", "tmpfs", "-o", "huge=always,size=3g", "tmpfs", str(folder)]):
        if subprocess.run(["mount", *words], capture_output=True).returncode != 0:
            return None
    return folder
