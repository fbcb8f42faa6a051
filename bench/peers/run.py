"""Runs forebay's `ingest` and its peers side by side on the same files, interleaved, and compares them.

Exit status: 0 all bars that could be checked were met, 1 one was missed, 2 could not run.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import data
import summary
from contest import FOREBAY, Limits, NotRun, environment, measure
from plan import MODES, PEERS
from task import Task


def main() -> int:
    options = _arguments()
    not_run = _missing(options)
    record = {
        "schema": "forebay.peers/1",
        "command": sys.argv,
        "environment": environment() | _versions(),
        "measurements": [],
    }
    options.out.touch()
    for dataset in options.sets:
        for mode in options.modes:
            _prepare(options, dataset, mode)
            for threads in options.threads:
                for measurement in _contest(options, dataset, mode, threads, not_run):
                    record["measurements"].append(measurement)
                    _save(options.out, record, not_run)
    rows = summary.figures(record["measurements"])
    print(summary.markdown(rows, summary.bars(rows), not_run))
    if any(entry["peer"] == FOREBAY for entry in not_run):
        return 2
    return int(any(bar["met"] is False for bar in summary.bars(rows)))


def _contest(
    o: argparse.Namespace, dataset: str, mode: str, threads: int, not_run: list[Any]
) -> Iterator[dict[str, Any]]:
    """All rounds of one cell; a contestant that cannot run leaves the contest and is named."""
    tasks = [
        Task(peer, variant, mode, o.data, dataset, threads) for peer, variant in _contestants(o.peers, mode, not_run)
    ]
    for round_ in range(o.rounds):
        for task in list(tasks):
            scope = f"{dataset}, {mode}, {threads} threads, {task.variant or 'default'}"
            print(f"round {round_ + 1}/{o.rounds}: {task.peer} ({scope})", file=sys.stderr)
            try:
                yield measure(task, o.forebay, o.epochs, o.limits) | {"round": round_}
            except NotRun as e:
                print(f"not run: {task.peer} ({scope}): {e}", file=sys.stderr)
                not_run.append({"peer": task.peer, "scope": scope, "reason": str(e)})
                tasks.remove(task)


def _contestants(peers: list[str], mode: str, not_run: list[Any]) -> list[tuple[str, str]]:
    absent = {entry["peer"] for entry in not_run if entry["scope"] == "all"}
    present = [peer for peer in peers if peer not in absent]
    return [(FOREBAY, "")] + [(peer, variant) for peer in present for variant in PEERS[peer].variants.get(mode, [])]


def _missing(options: argparse.Namespace) -> list[dict[str, str]]:
    """Peers whose package is not installed."""
    found = []
    for peer in options.peers:
        package = PEERS[peer].package
        if not _is_installed(package):
            found.append({"peer": peer, "scope": "all", "reason": f"the Python package {package} is not installed"})
            print(f"not run: {peer}: {found[-1]['reason']}", file=sys.stderr)
    return found


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _prepare(options: argparse.Namespace, dataset: str, mode: str) -> None:
    """Makes the shards a mode needs and brings everything it reads into the page cache."""
    kinds = {"tar": ("tar", "tfrecord"), "tfrecord": ("tfrecord",), "tensor": ("tensor",)}.get(mode, ())
    for kind in kinds:
        data.ensure_packed(options.forebay, options.data, dataset, kind)
        data.warm(data.packed_path(options.data, dataset, kind))
    data.warm(options.data / dataset)


def _save(out: Path, record: dict[str, Any], not_run: list[Any]) -> None:
    rows = summary.figures(record["measurements"])
    derived = {"figures": rows, "bars": summary.bars(rows), "not_run": not_run}
    partial = out.with_name(out.name + ".partial")
    partial.write_text(json.dumps(record | derived, indent=1))
    partial.replace(out)


def _versions() -> dict[str, dict[str, str]]:
    names = ("tensorflow-cpu", "torch", "torchvision", "nvidia-dali-cuda120", "webdataset", "ffcv", "numpy")
    known = {}
    for name in names:
        try:
            known[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {"packages": known}


def _arguments() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=Path, help="folder with one folder of images per set")
    parser.add_argument("--forebay", required=True, type=Path, help="the forebay binary")
    parser.add_argument("--out", required=True, type=Path, help="where the JSON record goes")
    parser.add_argument("--sets", type=names, default=["imagenet", "caltech"])
    parser.add_argument("--peers", type=names, default=list(PEERS))
    parser.add_argument("--modes", type=names, default=list(MODES))
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2, 4])
    parser.add_argument("--epochs", type=int, default=3, help="timed epochs per process, after one warm-up epoch")
    parser.add_argument("--rounds", type=int, default=2, help="processes per contestant and cell")
    parser.add_argument("--foreign-max", type=float, default=0.2, help="cores others may use before a run is repeated")
    parser.add_argument("--retries", type=int, default=2, help="how often a disturbed run is repeated")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds after which one process is given up")
    options = parser.parse_args()
    for given, known in ((options.peers, PEERS), (options.modes, MODES)):
        if unknown := set(given) - set(known):
            parser.error(f"unknown: {', '.join(sorted(unknown))} (known: {', '.join(known)})")
    for path in [options.forebay, *(options.data / name for name in options.sets)]:
        if not path.exists():
            parser.error(f"{path} does not exist")
    options.data, options.forebay = options.data.resolve(), options.forebay.resolve()
    options.limits = Limits(options.foreign_max, options.retries, options.timeout)
    return options


if __name__ == "__main__":
    sys.exit(main())
