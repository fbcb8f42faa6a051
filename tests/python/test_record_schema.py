"""Records of every command, and those of schema 1 written again, are valid by docs/reference/record.schema.json."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Forebay
from jsonschema import Draft202012Validator

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "crates/forebay-report/tests/fixtures"
OLD = sorted([*FIXTURES.glob("*.json"), *FIXTURES.glob("*/record.jsonl")])

STUDY = """
name = "all"
title = "One cell of each experiment"

[[dataset]]
name = "photos"
make = "caltech101"
count = 16

[[tier]]
name = "disk"
profile = "ssd"

[[experiment]]
name = "ingest"
run = "ingest"
dataset = "photos"
repeats = { quick = 2, full = 3 }
warmups = 0
[experiment.factors]
threads = [1, 2]
[experiment.settings]
batch = 8

[[experiment]]
name = "look"
run = "inspect"
dataset = "photos"

[[experiment]]
name = "train"
run = "train"
dataset = "photos"
repeats = 1
warmups = 0
[experiment.settings]
accelerator = "emulated:1ms"
batch = 8
threads = 1

[[experiment]]
name = "save"
run = "checkpoint"
repeats = 2
[experiment.settings]
tier = "disk"
size = "1MB"
format = "safetensors"

[[experiment]]
name = "raw"
run = "probe"
repeats = 1
[experiment.settings]
tier = "disk"
size = "4MiB"
depth = 1

[[reference]]
experiment = "ingest"
metric = "images_per_s"
at = { threads = 1 }
value = 100
source = "nowhere"

[[figure]]
id = "rates"
title = "Rates"
kind = "bars"
experiment = "ingest"
metrics = ["images_per_s"]
x = "threads"
"""


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = json.loads((ROOT / "docs/reference/record.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def assert_valid(validator: Draft202012Validator, record: Any, definition: str) -> None:
    """Validates by the definition alone, whose errors say more than those of a choice, and by the whole."""
    alone = validator.evolve(schema={"$ref": f"#/$defs/{definition}", "$defs": validator.schema["$defs"]})
    errors = [f"{error.json_path}: {error.message[:300]}" for error in alone.iter_errors(record)]
    assert not errors, "\n".join(errors)
    assert validator.is_valid(record)


def test_ingest(validator: Draft202012Validator, forebay_json: Any, photos: Path) -> None:
    record = forebay_json("ingest", photos, "--threads", "1,auto", "--batch", 8, "--repeats", 2)
    assert_valid(validator, record, "IngestRecord")


def test_probe(validator: Draft202012Validator, forebay_json: Any, photos: Path, tmp_path: Path) -> None:
    record = forebay_json("probe", tmp_path, "--size", "8MiB", "--depth", "1", "--runs", 2, "--like", photos)
    assert_valid(validator, record, "ProbeRecord")


def test_train(validator: Draft202012Validator, forebay_json: Any, photos: Path, tmp_path: Path) -> None:
    saves = ["--checkpoint-every", 2, "--checkpoint-dir", tmp_path / "saves", "--checkpoint-size", "1MB"]
    record = forebay_json("train", photos, "--accelerator", "emulated:1ms", "--batch", 8, "--steps", 6, *saves)
    assert_valid(validator, record, "TrainRecord")
    record = forebay_json("train", photos, "--model", "alexnet-small", "--batch", 16, "--epochs", 1, "--validate=0.1")
    assert_valid(validator, record, "TrainRecord")


def test_checkpoint(validator: Draft202012Validator, forebay_json: Any, tmp_path: Path) -> None:
    slow, fast = tmp_path / "slow", tmp_path / "fast"
    slow.mkdir()
    fast.mkdir()
    record = forebay_json("checkpoint", "bench", slow, "--burst-dir", fast, "--size", "1MB", "--saves", 2)
    assert_valid(validator, record, "CheckpointRecord")


def test_workload(validator: Draft202012Validator, forebay: Forebay, tmp_path: Path) -> None:
    small = ["dataset.num_files_train=32", "dataset.num_files_eval=8", "train.computation_time=0.004", "train.epochs=2"]
    overrides = [f"++workload.{key}" for key in [*small, "evaluation.eval_time=0.002", "workflow.generate_data=True"]]
    out = tmp_path / "out"
    forebay("workload", "run", "default", "--data", tmp_path / "data", "--out", out, "--threshold", 0.001, *overrides)
    assert_valid(validator, json.loads((out / "record.json").read_text()), "WorkloadRecord")


def test_study(validator: Draft202012Validator, forebay: Forebay, tmp_path: Path) -> None:
    (tmp_path / "all.toml").write_text(STUDY)
    forebay("study", "run", tmp_path / "all.toml", "--out", tmp_path / "run")
    lines = (tmp_path / "run/record.jsonl").read_text().splitlines()
    kinds = [assert_line(validator, line) for line in lines]
    assert kinds == ["head"] + ["cell"] * 6
    measured = {next(iter(json.loads(line)["measured"])) for line in lines[1:]}
    assert measured == {"ingest", "inspect", "train", "checkpoint", "probe"}


@pytest.mark.parametrize("path", OLD, ids=lambda path: str(path.relative_to(FIXTURES)))
def test_a_record_of_schema_1_written_again(path: Path, validator: Draft202012Validator) -> None:
    named = os.environ.get("FOREBAY_RECORD_SCHEMA")
    if not named:
        pytest.fail("set FOREBAY_RECORD_SCHEMA to the path of the example record_schema", pytrace=False)
    old = path.read_text()
    done = subprocess.run([named, "rewrite"], input=old, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    if path.suffix == ".jsonl":
        assert not validator.is_valid(json.loads(old.splitlines()[0]))
        assert {assert_line(validator, line) for line in done.stdout.splitlines()} >= {"head", "cell"}
    else:
        assert not validator.is_valid(json.loads(old))
        record = json.loads(done.stdout)
        assert_valid(validator, record, f"{record['command'].capitalize()}Record")


def assert_line(validator: Draft202012Validator, line: str) -> str:
    read = json.loads(line)
    assert_valid(validator, read, f"Study{read['line'].capitalize()}")
    return read["line"]
