"""The examples that need no framework."""

import os
import subprocess
import sys
from pathlib import Path


def test_the_loop_runs(photos: Path) -> None:
    folder = Path(os.environ.get("FOREBAY_EXAMPLES", Path(__file__).parents[2] / "examples/python"))
    command = [sys.executable, folder / "numpy_loop.py", photos, "--batch-size", "4", "--image-size", "24", "--threads", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "stopped and went on: 23 samples, each once" in done.stdout and "2 threads; 0 failed" in done.stdout
