"""`forebay trace` on DLIO itself: its steps, samples, bytes and checkpoints."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Forebay
from traced import Traced

WORKLOAD = """
model: {name: small}
framework: pytorch
workflow: {generate_data: True, train: False, checkpoint: False}
dataset:
  data_folder: FOLDER/set
  format: npz
  num_files_train: 8
  num_files_eval: 0
  num_samples_per_file: 1
  record_length: 200000
reader: {data_loader: pytorch, batch_size: 2, read_threads: 2, file_shuffle: seed, sample_shuffle: seed}
train: {epochs: 2, computation_time: 0.01}
checkpoint: {checkpoint_folder: FOLDER/saves, checkpoint_after_epoch: 1, epochs_between_checkpoints: 1, model_size: 1000000}
"""


def test_dlio_has_its_steps_bytes_and_checkpoints(forebay: Forebay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    quiet = {"DFTRACER_ENABLE": "0", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    for name, value in quiet.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "workload").mkdir()
    (tmp_path / "workload" / "small.yaml").write_text(WORKLOAD.replace("FOLDER", str(tmp_path)))
    dlio = Path(sys.executable).parent / "dlio_benchmark"
    words = [dlio, "--config-dir", ".", "workload=small", "++workload.output.folder=out", "++hydra.run.dir=out/hydra"]
    subprocess.run(words, check=True, capture_output=True, env=os.environ)
    trains = ["generate_data=False", "train=True", "checkpoint=True"]
    forebay("trace", "--out", "traced", "--", *words, *(f"++workload.workflow.{flag}" for flag in trains))
    found = Traced(tmp_path / "traced")
    assert (found.totals["steps"], found.totals["lost_events"]) == (8, 0)
    assert (found.cell["fetch"]["batches"], found.cell["fetch"]["samples"]) == (8, 16)
    data = found.below(tmp_path / "set" / "train")
    size = sum(file.stat().st_size for file in (tmp_path / "set" / "train").iterdir())
    assert data["opens"] == 16
    # numpy reads the directory of a zip file twice.
    assert 2 * size <= data["bytes_read"] < 2.1 * size, (size, data)
    files = sorted(file.stat().st_size for file in (tmp_path / "saves").iterdir())
    assert sorted(save["bytes"] for save in found.cell["saves"]) == files, "each file of a checkpoint is a save"
