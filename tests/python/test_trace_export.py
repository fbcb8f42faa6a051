"""`forebay trace export`, read by the programs it is for."""

import csv
import gzip
import json
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
from conftest import Forebay

JOB = """
import os
fd = os.open("f,\\u00e9", os.O_RDWR | os.O_CREAT)
os.write(fd, bytes(1000))
for i in range(200_000):
    os.pread(fd, 1 + i % 90, i % 900)
"""
N = 200_000
BYTES = sum(1 + i % 90 for i in range(N))


@pytest.fixture(scope="module")
def folder(forebay: Forebay, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traced")
    (folder / "job.py").write_text(f"import os; os.chdir({str(folder)!r})\n" + JOB)
    forebay("trace", "--out", folder / "traced", "--", sys.executable, folder / "job.py")
    return folder


def test_parquet_is_read_by_pyarrow(forebay: Forebay, folder: Path) -> None:
    forebay("trace", "export", folder / "traced", folder / "out.parquet", "--to", "parquet")
    table = pyarrow.parquet.read_table(folder / "out.parquet")
    assert table.column_names == ["pid", "thread", "start_ns", "duration_ns", "result", "offset", "name", "category", "file"]
    rows = table.to_pylist()
    reads = [row for row in rows if row["name"] == "pread" and row["file"].endswith("/f,é")]
    assert (len(reads), sum(row["result"] for row in reads)) == (N, BYTES)
    assert max(row["offset"] for row in reads) == 899
    assert all(row["offset"] == -1 for row in rows if row["name"] == "write")
    starts = [row["start_ns"] for row in reads]
    assert starts == sorted(starts)


def test_chrome_and_csv_have_the_same_events(forebay: Forebay, folder: Path) -> None:
    forebay("trace", "export", folder / "traced", folder / "out.json", "--to", "perfetto")
    events = json.loads((folder / "out.json").read_text())["traceEvents"]
    reads = [event for event in events if event["name"] == "pread" and event["args"]["file"].endswith("/f,é")]
    assert (len(reads), sum(event["args"]["bytes"] for event in reads)) == (N, BYTES)
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in reads)
    forebay("trace", "export", folder / "traced", folder / "out.csv", "--to", "csv")
    with (folder / "out.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["name"] == "pread" and row["file"].endswith("/f,é")]
    assert (len(rows), sum(int(row["result"]) for row in rows)) == (N, BYTES)


def test_dftracer_lines_name_each_file_once(forebay: Forebay, folder: Path) -> None:
    forebay("trace", "export", folder / "traced", folder / "out.pfw.gz", "--to", "dftracer")
    with gzip.open(folder / "out.pfw.gz", "rt") as file:
        assert file.readline() == "[\n"
        lines = [json.loads(line) for line in file]
    names = {line["args"]["value"]: line["args"]["name"] for line in lines if line["name"] == "FH"}
    assert len(names) == sum(line["name"] == "FH" for line in lines)
    reads = [line for line in lines if line["name"] == "pread" and names[line["args"]["fhash"]].endswith("/f,é")]
    assert (len(reads), sum(line["args"]["ret"] for line in reads)) == (N, BYTES)
    assert {line["cat"] for line in lines} >= {"POSIX", "dftracer"}
