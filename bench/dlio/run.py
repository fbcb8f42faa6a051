"""forebay beside DLIO: the same workload on the same files, turn by turn.

    run.py --forebay BINARY --mpi BINARY --work DIR --out results.json [--rounds 3] [--core 1] [--only SECTION]…

Figures are medians of the rounds. Prints a row a figure, with the goal where there is one.
Exit status: 0 all goals met, 1 one was missed, 2 could not run.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

from generation import generation
from table import GB, MB, Table
from tools import Dlio, Failed, Forebay, Result, Run, Shape, add_up

AU_HELD = 90.0
# DLIO reads up to four batches while it waits for the first, which its utilisation leaves out: less than 2 % of these.
HELD_STEPS = 256
TRUTH_STEPS = 64
COMPUTE_S = 0.1
# How much longer a step is tried while none is held, and how much shorter then, until it is not.
COARSE, STRIDE = 1.25, 1.06
MOST_STRIDES = 12


def truth(dlio: Dlio, forebay: Forebay, table: Table, rounds: int) -> None:
    """Utilisation when nothing limits, where the truth is known: steps compute and nothing waits. And the first step."""
    theirs, ours = [], []
    for _ in range(rounds):
        theirs.append(dlio.run(Run(COMPUTE_S, TRUTH_STEPS)))
        ours.append(forebay.run(Run(COMPUTE_S, TRUTH_STEPS)))

    def both(figure):
        return [median(figure(result) for result in results) for results in (theirs, ours)]

    au = both(lambda result: result.au_whole)
    table.add("not limited: AU of the whole epoch, % (truth 100)", *au, None, "within 1 point", abs(au[1] - 100) <= 1)
    table.add("not limited: AU as DLIO reckons, % (truth 100)", *both(lambda result: result.au_dlio))
    first = both(lambda result: result.first_step_s)
    table.add("from process to first step, s", *first, first[0] / first[1], "≤ 0.2 s", first[1] <= 0.2)


def fastest(tool, core: str, accelerators: int) -> tuple[int, float]:
    """The number of threads that reads fastest when next to nothing is computed, and its bytes a second."""
    run = Run(0.001, HELD_STEPS // 2, accelerators, core=core)
    rates = {threads: tool.run(replace(run, threads=threads)).rate for threads in (1, 2, 4)}
    return max(rates.items(), key=lambda found: found[1])


def held_at(tool, run: Run) -> Result | None:
    """What a run came to, if its accelerators were held."""
    result = tool.run(run)
    return result if result.au >= AU_HELD else None


def hardest(tool, run: Run, harder, easier) -> tuple[Run, Result]:
    """The hardest run that is held, found from a first guess: easier ones until one is held, then harder ones until one is not."""
    for _ in range(MOST_STRIDES):
        if found := held_at(tool, run):
            while result := held_at(tool, harder(run)):
                run, found = harder(run), result
            return run, found
        run = easier(run)
    raise Failed(f"{type(tool).__name__} holds nothing, not even with {run}")


def longer(run: Run) -> Run:
    return replace(run, seconds=run.seconds * COARSE)


def shorter(run: Run) -> Run:
    return replace(run, seconds=run.seconds / STRIDE)


def more(run: Run) -> Run:
    return replace(run, accelerators=run.accelerators + 1)


def fewer(run: Run) -> Run:
    if run.accelerators == 1:
        raise Failed(f"forebay does not hold one accelerator with {run}")
    return replace(run, accelerators=run.accelerators - 1)


def held(dlio: Dlio, forebay: Forebay, table: Table, rounds: int, core: str) -> None:
    """Accelerators a core holds at 90 %.

    Their demand is the greatest of which DLIO holds one on the core, found anew in every round; forebay then adds
    accelerators of that demand until they are not held. Each tool has the best of its numbers of threads.
    """
    their_threads, their_rate = fastest(dlio, core, 1)
    our_threads, our_rate = fastest(forebay, core, 8)
    what = f"npz with one core, GB/s ({their_threads}, {our_threads} threads)"
    table.add(what, their_rate / GB, our_rate / GB, our_rate / their_rate)
    one = Run(AU_HELD / 100 * dlio.shape.step_bytes / their_rate, HELD_STEPS, 1, their_threads, core)
    guess = max(1, int(our_rate / their_rate))
    theirs, ours, limits, counts = [], [], [], []
    for _ in range(rounds):
        one, result = hardest(dlio, one, shorter, longer)
        theirs.append(result)
        limits.append(one.seconds)
        many, result = hardest(forebay, replace(one, accelerators=guess, threads=our_threads), more, fewer)
        ours.append(result)
        counts.append(guess := many.accelerators)
    demand, count = dlio.shape.step_bytes / median(limits) / GB, median(counts)
    table.add(f"accelerators of {demand:.2f} GB/s a core holds at AU ≥ 90 %", 1, count, count, "≥ 8×", count >= 8)
    rates = [median(result.rate / GB for result in results) for results in (theirs, ours)]
    table.add("  the bytes they read, GB/s", *rates, rates[1] / rates[0])
    aus = [median(result.au_whole for result in results) for results in (theirs, ours)]
    table.add("  their AU of the whole epoch, %", *aus)
    aus = [median(result.au_dlio for result in results) for results in (theirs, ours)]
    table.add("  their AU as DLIO reckons, %", *aus)
    two = dlio.run(Run(median(limits), HELD_STEPS // 2, 2, their_threads, core))
    table.add("  AU as DLIO reckons when it has two of them, %", two.au, None)


def memory(dlio: Dlio, forebay: Forebay, table: Table) -> None:
    """Memory of one more emulated accelerator, in MB of 10^6 bytes: from one process to two, from one to sixteen in one."""
    few, many = (dlio.run(Run(COMPUTE_S, 16, ranks)).memory_bytes for ranks in (1, 2))
    theirs = (many - few) / MB
    few, many = (forebay.run(Run(COMPUTE_S, 16, count)).memory_bytes for count in (1, 16))
    ours = (many - few) / 15 / MB
    # Two batches ahead of what is handed on.
    goal = 2 * forebay.shape.batch * forebay.shape.delivered / MB + 20
    table.add("memory an accelerator, MB", theirs, ours, theirs / ours, f"≤ {goal:.0f} MB", ours <= goal)


def crowds(forebay: Forebay, table: Table) -> None:
    """Many accelerators end, all steps made, and their times add up."""
    for what, run, ranks in [
        ("256 accelerators in one process, s", Run(COMPUTE_S, 4, 256, 1), 1),
        ("8 ranks of mpirun, s", Run(COMPUTE_S, 16, 8, 1), 8),
    ]:
        start = time.monotonic()
        cell = forebay.cell(run, ranks)
        seconds = time.monotonic() - start
        is_whole = cell["steps"] == run.steps * run.accelerators and cell["ranks"] == ranks
        table.add(what, None, seconds, None, "ends; parts = wall", is_whole and add_up(cell))


def sections(dlio: Dlio, forebay: Forebay, table: Table, rounds: int, core: str) -> dict:
    return {
        "generation": lambda: generation(dlio, forebay, table, rounds),
        "truth": lambda: truth(dlio, forebay, table, rounds),
        "held": lambda: held(dlio, forebay, table, rounds, core),
        "memory": lambda: memory(dlio, forebay, table),
        "crowds": lambda: crowds(forebay, table),
    }


SECTIONS = list(sections(None, None, None, 0, ""))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--forebay", type=Path, required=True)
    parser.add_argument("--mpi", type=Path, required=True, help="forebay with the feature mpi")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", default="1")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="all by default; may be given again")
    arguments = parser.parse_args()
    work, shape = arguments.work.resolve(), Shape()
    data, start = work / "data", time.monotonic()
    for left in work.glob("data*"):
        shutil.rmtree(left)
    # The environment's own interpreter is a link: its folder has DLIO's script.
    dlio = Dlio(Path(sys.executable), shape, data, work / "dlio")
    forebay = Forebay(arguments.forebay.resolve(), arguments.mpi.resolve(), shape, data, work / "forebay")
    table = Table()
    try:
        chosen = arguments.only or SECTIONS
        if chosen != ["generation"]:
            # What both tools read.
            dlio.make(2, data, shape.files)
        for name, section in sections(dlio, forebay, table, arguments.rounds, arguments.core).items():
            if name in chosen:
                section()
    except (Failed, OSError, subprocess.SubprocessError) as error:
        print(f"could not run: {error}", file=sys.stderr)
        return 2
    finally:
        arguments.out.write_text(json.dumps(table.rows, indent=2) + "\n")
        for left in work.glob("data*"):
            shutil.rmtree(left)
    missed = [row["figure"] for row in table.rows if row["met"] is False]
    verdict = "all goals met" if not missed else f"missed: {'; '.join(missed)}"
    print(f"{verdict}, in {time.monotonic() - start:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
