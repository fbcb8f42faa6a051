"""Derives figures, bars and a Markdown table from raw measurements.

Images per CPU-second is the median of all timed units. Images per second is shown as median and best, and compared best
against best: a round in which the scheduler was unkind must count for neither side.
"""

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import Any

from contest import FOREBAY
from plan import MODES

Row = dict[str, Any]


@dataclass(frozen=True)
class Bar:
    """`forebay` must reach `ratio` times the best of `peers` in `figure`, on `dataset` (or on all of them)."""

    mode: str
    dataset: str | None
    peers: tuple[str, ...]
    figure: str
    ratio: float


WALL, PER_CPU = "images_per_s_best", "images_per_cpu_s"
BARS = [
    Bar("full", "imagenet", ("tfdata",), PER_CPU, 1.28),
    Bar("full", "imagenet", ("torch",), PER_CPU, 1.7),
    Bar("full", "imagenet", ("dali",), PER_CPU, 1.8),
    Bar("full", "caltech", ("tfdata",), PER_CPU, 2.0),
    Bar("read", None, ("tfdata", "torch", "dali"), WALL, 2.0),
    Bar("tfrecord", None, ("tfdata",), WALL, 2.0),
    Bar("tar", None, ("tfdata",), WALL, 2.0),
    Bar("tensor", None, ("ffcv",), PER_CPU, 1.2),
]


def figures(measurements: list[Row]) -> list[Row]:
    """One row per set, mode, thread count, contestant and variant, over all rounds."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for m in measurements:
        groups[m["dataset"], m["mode"], m["threads"], m["peer"], m["variant"]].append(m)
    rows = [_figure(key, group) for key, group in groups.items()]
    for row in rows:
        own = next((r for r in rows if r["peer"] == FOREBAY and _cell(r) == _cell(row)), None)
        for figure in (WALL, PER_CPU):
            row[f"forebay_ratio_{figure}"] = own[figure] / row[figure] if own else None
    return rows


def _cell(row: Row) -> tuple[str, str, int]:
    return row["dataset"], row["mode"], row["threads"]


def _figure(key: tuple[Any, ...], group: list[Row]) -> Row:
    units = [unit for m in group for unit in m["units"]]
    rates = [unit["images"] / unit["wall_s"] for unit in units]
    return dict(zip(("dataset", "mode", "threads", "peer", "variant"), key, strict=True)) | {
        "images_per_s": median(rates),
        WALL: max(rates),
        PER_CPU: median(unit["images"] / unit["cpu_s"] for unit in units),
        "first_batch_s": _median_known(m["first_batch_s"] for m in group),
        "start_s": _median_known(m["start_s"] for m in group),
        "disturbed_rounds": sum(m["disturbed"] for m in group),
        "rounds": len(group),
    }


def _median_known(values: Any) -> float | None:
    known = [v for v in values if v is not None]
    return median(known) if known else None


def bars(rows: list[Row]) -> list[Row]:
    """Each bar on each set it speaks of: `met` is None where a side of it was not run."""
    datasets = sorted({r["dataset"] for r in rows})
    checked = [_check(rows, bar, d) for bar in BARS for d in datasets if bar.dataset in (None, d)]
    threads = sorted({r["threads"] for r in rows if r["mode"] == "full"})
    ahead = Bar("full", None, ("tfdata", "torch", "dali"), WALL, 1.0)
    return checked + [_check(rows, ahead, d, n) for d in datasets for n in threads]


def _check(rows: list[Row], bar: Bar, dataset: str, threads: int | None = None) -> Row:
    def best(names: tuple[str, ...]) -> float | None:
        found = [
            r[bar.figure]
            for r in rows
            if (r["dataset"], r["mode"]) == (dataset, bar.mode)
            and r["peer"] in names
            and threads in (None, r["threads"])
        ]
        return max(found, default=None)

    own, peer = best((FOREBAY,)), best(bar.peers)
    ratio = own / peer if own and peer else None
    complete = all(best((name,)) for name in bar.peers)
    return {
        "dataset": dataset,
        "mode": bar.mode,
        "threads": threads,
        "peers": list(bar.peers),
        "figure": bar.figure,
        "asked": bar.ratio,
        "reached": ratio,
        "met": _verdict(ratio, bar.ratio, complete),
    }


def _verdict(reached: float | None, asked: float, complete: bool) -> bool | None:
    """A bar over several peers is missed as soon as one is not beaten, and met only when all of them ran."""
    if reached is None:
        return None
    return False if reached < asked else (True if complete else None)


def markdown(rows: list[Row], checked: list[Row], not_run: list[Row]) -> str:
    """Tables for people."""
    parts = []
    for dataset, mode in dict.fromkeys((r["dataset"], r["mode"]) for r in rows):
        chosen = [r for r in rows if (r["dataset"], r["mode"]) == (dataset, mode)]
        parts.append(_contest_table(dataset, mode, sorted(chosen, key=lambda r: r["threads"])))
    if checked:
        parts.append(_bar_table(checked))
    if not_run:
        lines = [f"- {n['peer']} ({n['scope']}): {n['reason']}" for n in not_run]
        parts.append("### Not run\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def _contest_table(dataset: str, mode: str, rows: list[Row]) -> str:
    head = [
        "threads",
        "pipeline",
        "images/s median",
        "best",
        "images per CPU-s",
        "first batch s",
        "from process start s",
    ]
    table = [head + ["forebay ÷ it, wall", "forebay ÷ it, CPU"]]
    for r in rows:
        name = r["peer"] if r["peer"] == FOREBAY else f"{r['peer']} {r['variant']}"
        disturbed = "*" if r["disturbed_rounds"] else ""
        rates = [f"{r[k]:,.0f}" for k in ("images_per_s", WALL, PER_CPU)]
        ratios = [_number(r[f"forebay_ratio_{k}"]) for k in (WALL, PER_CPU)]
        table.append(
            [str(r["threads"]), name + disturbed, *rates, _number(r["first_batch_s"]), _number(r["start_s"]), *ratios]
        )
    note = "\n\n`*` other processes disturbed at least one round." if any("*" in line[1] for line in table) else ""
    return f"### {dataset}, {mode}: {MODES[mode]}\n\n{_render(table)}{note}"


def _bar_table(checked: list[Row]) -> str:
    verdict = {None: "not run", True: "yes", False: "no"}
    table = [["set", "mode", "threads", "against", "figure", "asked", "reached", "met"]]
    for b in checked:
        threads = "best" if b["threads"] is None else str(b["threads"])
        peers = "best of " + ", ".join(b["peers"]) if len(b["peers"]) > 1 else b["peers"][0]
        asked = f"{b['asked']:.2f}"
        figure = "images/s" if b["figure"] == WALL else "images per CPU-s"
        table.append([b["dataset"], b["mode"], threads, peers, figure, asked, _number(b["reached"]), verdict[b["met"]]])
    return f"### Figures to reach\n\n{_render(table)}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _render(table: list[list[str]]) -> str:
    lines = ["| " + " | ".join(line) + " |" for line in table]
    return "\n".join([lines[0], "|" + "---|" * len(table[0]), *lines[1:]])
