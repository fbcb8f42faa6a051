"""forebay beside DLIO: the same workload on the same files, turn by turn.

    run.py --forebay BINARY --work DIR --out results.json [--rounds 2] [--core 1]

Prints a row a figure, with the goal where there is one. Exit status: 0 all goals met, 1 one was missed, 2 could not run.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from tools import Dlio, Forebay, Shape

AU_HELD = 90.0
ACCELERATORS = 32
MB = 1_000_000


class Table:
    """Figures with their goals."""

    def __init__(self) -> None:
        self.rows: list[dict] = []
        print(f"{'figure':44} {'DLIO':>12} {'forebay':>12} {'ratio':>8}  goal")

    def add(self, what: str, dlio: float | None, ours: float, ratio: float | None, goal: str, is_met: bool) -> None:
        verdict = "met" if is_met else "MISSED"
        left = "–" if dlio is None else f"{dlio:.3f}"
        middle = "–" if ratio is None else f"{ratio:.1f}×"
        print(f"{what:44} {left:>12} {ours:12.3f} {middle:>8}  {goal}: {verdict}", flush=True)
        self.rows.append({"figure": what, "dlio": dlio, "forebay": ours, "ratio": ratio, "goal": goal, "met": is_met})


def limit(tool, core: str, threads: int, rate: float) -> float:
    """The most bytes a second at which one core holds an accelerator at 90 %, where it reads `rate` when nothing is computed.

    The time a step computes is searched for the shortest that is held, to a tenth. One accelerator of a great demand stands
    for many of a small one that share the core.
    """
    step = tool.shape.step_bytes
    low, high = 0.7 * step / rate, 3 * step / rate
    found = held_at(tool, core, threads, high)
    while found is None:
        low, high = high, 2 * high
        found = held_at(tool, core, threads, high)
    while high / low > 1.1:
        middle = (low * high) ** 0.5
        result = held_at(tool, core, threads, middle)
        low, high, found = (middle, high, found) if result is None else (low, middle, result)
    return found


def held_at(tool, core: str, threads: int, seconds: float) -> float | None:
    """The bytes a second of an accelerator whose steps compute so long; `None` where it is not held."""
    result = tool.run(seconds, core, threads)
    return tool.shape.step_bytes * result.au / 100 / seconds if result.au >= AU_HELD else None


def generation(dlio: Dlio, forebay: Forebay, table: Table, rounds: int) -> None:
    """Rates of making the data. DLIO's last set stays: both tools read it."""
    rates = {"dlio": [], "ours": []}
    for _ in range(rounds):
        shutil.rmtree(dlio.data, ignore_errors=True)
        rates["dlio"].append(dlio.shape.bytes / dlio.make(ranks=2) / MB)
        subprocess.run(["sync"], check=True)
        made = forebay.work / "made"
        rates["ours"].append(forebay.shape.bytes / forebay.make(made) / MB)
        shutil.rmtree(made)
    ratio = statistics.median(ours / theirs for ours, theirs in zip(rates["ours"], rates["dlio"]))
    table.add("data generation, MB/s", max(rates["dlio"]), max(rates["ours"]), ratio, "≥ 10×", ratio >= 10)


def truth(dlio: Dlio, forebay: Forebay, table: Table, rounds: int) -> None:
    """Utilisation when nothing limits, and the time to the first step."""
    theirs = [dlio.run(0.1) for _ in range(rounds)]
    ours = [forebay.run(0.1) for _ in range(rounds)]
    au = [statistics.median(result.au for result in results) for results in (theirs, ours)]
    table.add("AU when not limited, % (truth: 100)", *au, None, "within 1 point", abs(au[1] - 100) <= 1)
    compute = [1000 * statistics.median(result.compute_s for result in results) for results in (theirs, ours)]
    table.add("emulated step, ms (truth: 100)", *compute, None, "within 1 %", abs(compute[1] - 100) <= 1)
    first = [min(result.first_step_s for result in results) for results in (theirs, ours)]
    table.add("from process to first step, s", *first, first[0] / first[1], "≤ 0.2 s", first[1] <= 0.2)


def held(dlio: Dlio, forebay: Forebay, table: Table, rounds: int, core: str) -> None:
    """GB/s of one core at 90 %, each tool with the best of its numbers of threads."""
    best = {}
    for tool in (dlio, forebay):
        # Nothing is computed to speak of: the number of threads that reads fastest is the tool's best.
        rates_of = {threads: tool.run(0.001, core, threads).rate for threads in (1, 2, 4)}
        best[tool] = max(rates_of.items(), key=lambda found: found[1])
    rates = {tool: [] for tool in best}
    for _ in range(rounds):
        for tool, (threads, rate) in best.items():
            rates[tool].append(limit(tool, core, threads, rate) / 1e9)
    ratio = max(rates[forebay]) / max(rates[dlio])
    what = f"npz at AU ≥ 90 %, GB/s a core ({best[dlio][0]}, {best[forebay][0]} threads)"
    table.add(what, max(rates[dlio]), max(rates[forebay]), ratio, "≥ 8×", ratio >= 8)


def memory(dlio: Dlio, forebay: Forebay, table: Table) -> None:
    """Resident memory of an emulated accelerator, in MB of 10^6 bytes."""
    theirs = dlio.run(0.1, ranks=2).pss_bytes / 2 / MB
    short = "++workload.reader.batch_size=2"
    result = forebay.run(0.1, None, 4, ACCELERATORS, short)
    ours = result.pss_bytes / ACCELERATORS / MB
    goal = result.whole["prefetch"] * result.whole["batch"] * 2_097_152 / MB + 20
    table.add("memory an accelerator, MB", theirs, ours, theirs / ours, f"≤ {goal:.0f} MB", ours <= goal)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--forebay", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--core", default="1")
    arguments = parser.parse_args()
    work, shape = arguments.work.resolve(), Shape()
    data = work / "data"
    # The environment's own interpreter is a link: its folder has DLIO's script.
    dlio = Dlio(Path(sys.executable), shape, data, work / "dlio")
    forebay = Forebay(arguments.forebay.resolve(), shape, data, work / "forebay")
    table = Table()
    generation(dlio, forebay, table, arguments.rounds)
    truth(dlio, forebay, table, arguments.rounds)
    held(dlio, forebay, table, arguments.rounds, arguments.core)
    memory(dlio, forebay, table)
    arguments.out.write_text(json.dumps(table.rows, indent=2) + "\n")
    shutil.rmtree(data, ignore_errors=True)
    missed = [row["figure"] for row in table.rows if not row["met"]]
    print("all goals met" if not missed else f"missed: {'; '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
