"""Marks: free without a trace, counted with one."""

import json
import subprocess
import sys
import timeit
from pathlib import Path

import forebay


def test_marks_cost_nothing_without_a_trace() -> None:
    n = 200_000
    overhead = min(timeit.repeat("nothing()", "def nothing(): pass", number=n, repeat=5)) / n * 1e9
    for name, call in (("step", "step()"), ("phase", "phase('train')")):
        seconds = min(timeit.repeat(call, globals={name: getattr(forebay, name)}, number=n, repeat=5))
        print(f"forebay.{name}: {seconds / n * 1e9:.0f} ns, an empty function: {overhead:.0f} ns")
        assert seconds / n < 2e-6, "the goal is 200 ns; ten times that only on a machine that is busy"


JOB = """
import sys, time
import forebay
loader = forebay.ImageLoader(sys.argv[1], batch_size=4, image_size=32, output="numpy", threads=1)
for epoch in range(2):
    forebay.phase("train")
    for batch in loader:
        time.sleep(0.01)
        forebay.step()
    forebay.phase("validate")
    time.sleep(0.05)
"""


def test_a_trace_counts_steps_and_waits(photos: Path, tmp_path: Path) -> None:
    command = Path(sys.executable).parent / "forebay"
    traced = [command, "trace", "--out", tmp_path / "run", "--", sys.executable, "-c", JOB, photos]
    done = subprocess.run(traced, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    cell = record["cells"][0]
    totals = cell["totals"]
    assert totals["steps"] == 12, "two epochs of six batches"
    assert 0 < totals["wait_s"] < totals["loop_s"]
    phases = {phase["name"]: phase for phase in cell["phases"]}
    assert list(phases) == ["train", "validate"]
    assert (phases["train"]["steps"], phases["validate"]["steps"]) == (12, 0)
    assert phases["train"]["seconds"] >= 0.12 and phases["validate"]["seconds"] >= 0.05
    said = " ".join(done.stderr.split())
    assert "Phases: train " in said and ", 12 steps, waited " in said
