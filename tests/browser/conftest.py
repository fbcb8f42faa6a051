"""Pages that the forebay binary named by FOREBAY makes, opened in a headless Chromium."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

FIXTURES = Path(__file__).resolve().parents[2] / "crates/forebay-report/tests/fixtures"
NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]


# The built-in study of processes in small: six, three and two steps an epoch, with a reader as slow as its source's.
PROCESSES = """
name = "processes"
title = "A loader on 1 to 3 processes"
source = "a paper"

[[experiment]]
name = "as-source"
run = "workload"
factors = { processes = [1, 2, 3, 64] }

[experiment.settings]
workload = "unet3d_h100"
shrink_bytes = 10000
shrink_time = 50
"dataset.num_files_train" = 42
"train.epochs" = 2
"model.model_size_bytes" = 10240
dlio_decode_mb_per_s = 950

[[reference]]
experiment = "as-source"
metric = "au_dlio"
at = { processes = 3 }
value = 0.8652
source = "a table"

[[reference]]
experiment = "as-source"
metric = "mb_per_s_moved"
at = { processes = 3 }
value = 4259.3
scale = "full"
source = "a table"

[[figure]]
id = "utilisation"
title = "Accelerator utilisation"
kind = "utilisation"
experiment = "as-source"
x = "processes"
metrics = ["au_epoch", "au_dlio"]

[[figure]]
id = "throughput"
title = "Throughput"
kind = "utilisation"
experiment = "as-source"
x = "processes"
metrics = ["mb_per_s_moved", "dlio_mib_per_s"]

[[figure]]
id = "time"
title = "Where the time went"
kind = "time"
experiment = "as-source"
x = "processes"
"""


@dataclass
class Opened:
    """A page and everything that it did."""

    page: Page
    said: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def forebay() -> Callable[..., str]:
    """Runs forebay and insists that it succeeds; its stdout."""
    named = os.environ.get("FOREBAY")
    if not named or not Path(named).is_file():
        pytest.fail("set FOREBAY to the path of the forebay binary", pytrace=False)

    def run(*arguments: object) -> str:
        command = [named, *(str(a) for a in arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def pages(forebay: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each kind: studies, a probe, trainings, checkpoints, and two ingest runs made right now side by side."""
    folder = tmp_path_factory.mktemp("pages")
    data = folder / "photos"
    forebay("data", "make", "caltech101", data, "--count", 24, "--median-size", "4KB")
    for name in ["now", "again"]:
        forebay("ingest", data, "--threads", "1,2", "--repeats", 3, "--batch", 8, "--json", folder / f"{name}.json")
    small = ["dataset.num_files_train=32", "dataset.num_files_eval=8", "train.computation_time=0.004", "train.epochs=2"]
    overrides = [f"++workload.{key}" for key in [*small, "evaluation.eval_time=0.002", "workflow.generate_data=True"]]
    where = ["--data", folder / "records", "--out", folder / "workload", "--accelerators", 2, "--threshold", 0.01]
    forebay("workload", "run", "default", *where, *overrides)
    (folder / "processes.toml").write_text(PROCESSES)
    forebay("study", "run", folder / "processes.toml", "--out", folder / "processes")
    runs = {
        "workload": [folder / "workload"],
        "processes": [folder / "processes"],
        "study": [FIXTURES / "chien"],
        "probe": [FIXTURES / "probe.json"],
        "ingest": [FIXTURES / "ingest.json"],
        "mini": [FIXTURES / "mini"],
        "train": [FIXTURES / "train.json"],
        "saved": [FIXTURES / "saved"],
        "saving": [FIXTURES / "saved.json"],
        "bench": [FIXTURES / "checkpoint.json"],
        "compared": [folder / "now.json", folder / "again.json"],
    }
    made = {}
    for name, records in runs.items():
        made[name] = folder / f"{name}.html"
        forebay("report", *records, "--html", made[name], "--json", folder / f"{name}-report.json")
    return made


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium."""
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        pytest.fail("there is no chromium: install the Debian package chromium", pytrace=False)
    with sync_playwright() as playwright:
        # As root, as in most containers, Chromium has no sandbox; the pages are our own.
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser: Browser, pages: dict[str, Path]) -> Iterator[Callable[..., Opened]]:
    """Opens a page and watches it; at the end nothing may have been said and nothing else been fetched."""
    contexts = []
    all_opened: list[Opened] = []

    def go(name: str, **context: Any) -> Opened:
        contexts.append(browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | context)))
        page = contexts[-1].new_page()
        watched = Opened(page)
        page.on("console", lambda message: watched.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: watched.said.append(f"error: {error}"))
        page.on("request", lambda request: watched.requests.append(request.url))
        page.goto(pages[name].as_uri())
        all_opened.append(watched)
        return watched

    yield go
    for watched in all_opened:
        assert watched.said == []
        own = [url for url in watched.requests if not url.startswith("data:")]
        assert own == [watched.page.url.split("#")[0]], "a page loads nothing but itself"
    for context in contexts:
        context.close()
