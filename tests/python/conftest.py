"""The forebay binary named by FOREBAY, against the real TensorFlow, webdataset, Pillow and tarfile."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

Forebay = Callable[..., subprocess.CompletedProcess[str]]


def flat(said: str) -> str:
    """Words a space apart, wherever the lines were folded."""
    return " ".join(said.split())


@pytest.fixture(scope="session")
def binary() -> Path:
    """The binary under test."""
    named = os.environ.get("FOREBAY")
    if not named:
        pytest.fail("set FOREBAY to the path of the forebay binary", pytrace=False)
    path = Path(named).resolve()
    if not path.is_file():
        pytest.fail(f"FOREBAY names {path}, which is not a file", pytrace=False)
    return path


@pytest.fixture(scope="session")
def forebay(binary: Path) -> Forebay:
    """Runs forebay and insists on its exit status."""

    def run(*arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
        command = [str(binary), *(str(a) for a in arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        said = f"{' '.join(command)}\nstdout: {done.stdout}\nstderr: {done.stderr}"
        assert done.returncode == status, f"exit status {done.returncode}, not {status}: {said}"
        return done

    return run


@pytest.fixture(scope="session")
def forebay_json(forebay: Forebay) -> Callable[..., dict[str, Any]]:
    """Runs forebay with `--json -` and returns what it printed."""
    return lambda *arguments: json.loads(forebay(*arguments, "--json", "-").stdout)


@pytest.fixture(scope="session")
def photos(forebay: Forebay, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty generated photographs in class folders."""
    folder = tmp_path_factory.mktemp("photos") / "caltech"
    forebay("data", "make", "caltech101", folder, "--count", 60, "--seed", 7)
    return folder
