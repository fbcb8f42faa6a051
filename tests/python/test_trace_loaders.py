"""`forebay trace` on other loaders and formats: ImageFolder, npz, mapped arrays, HuggingFace datasets, DALI on the CPU, Grain."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from traced import traced  # noqa: F401


@pytest.fixture
def pictures(tmp_path: Path) -> int:
    """Twenty JPEG files in two class folders; returns their bytes."""
    random = np.random.default_rng(3)
    for i in range(20):
        file = tmp_path / "photos" / "ab"[i % 2] / f"{i}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (96, 96, 3), dtype=np.uint8)).save(file, quality=90)
    return sum(file.stat().st_size for file in (tmp_path / "photos").rglob("*.jpg"))


def below(found, folder: Path, name: str) -> int:
    return sum(row[name] for row in found.cell["folders"] if row["name"].startswith(str(folder.resolve()) + "/"))


def test_an_image_folder_has_every_byte(traced, pictures: int, tmp_path: Path) -> None:
    found = traced("""
import torchvision
from torch.utils.data import DataLoader
if __name__ == "__main__":
    to_tensor = torchvision.transforms.ToTensor()
    for epoch in range(2):
        for images, labels in DataLoader(torchvision.datasets.ImageFolder("photos", to_tensor), batch_size=5, num_workers=2):
            assert images.shape == (5, 3, 96, 96)
""")
    assert below(found, tmp_path / "photos", "bytes_read") == 2 * pictures
    assert found.totals["steps"] == 2 * 4
    assert (found.cell["fetch"]["samples"], found.cell["fetch"]["workers"]) == (40, 4)


def test_compressed_and_mapped_arrays(traced, tmp_path: Path) -> None:
    for i in range(10):
        np.savez(tmp_path / "data" / f"{i:02}.npz", x=np.random.default_rng(i).random(50_000))
    np.save(tmp_path / "data" / "all.npy", np.zeros((10, 100_000)))
    found = traced("""
import numpy as np, torch
from torch.utils.data import DataLoader, Dataset
class Both(Dataset):
    def __len__(self): return 10
    def __getitem__(self, i):
        row = np.load("data/all.npy", mmap_mode="r")[i]
        return torch.from_numpy(np.load(f"data/{i:02}.npz")["x"]), torch.from_numpy(row.copy())
if __name__ == "__main__":
    for batch in DataLoader(Both(), batch_size=2, num_workers=2):
        pass
""")
    for i in range(10):
        size = (tmp_path / "data" / f"{i:02}.npz").stat().st_size
        assert size <= found.named(f"/{i:02}.npz")["bytes_read"] < 1.3 * size
    assert found.totals["bytes_mapped"] >= 10 * 8_000_000, "each of ten samples maps the whole file"
    assert found.named("/all.npy")["bytes_read"] < 100_000, "its rows are touched, not read"
    assert found.totals["steps"] == 5


def test_huggingface_datasets_map_their_arrow_files(traced, tmp_path: Path) -> None:
    import datasets

    rows = {"x": [list(range(1_000))] * 1_000, "y": list(range(1_000))}
    datasets.Dataset.from_dict(rows).save_to_disk(tmp_path / "arrow")
    size = sum(file.stat().st_size for file in (tmp_path / "arrow").glob("*.arrow"))
    found = traced("""
import os
os.environ["HF_HUB_OFFLINE"] = "1"
import datasets
from torch.utils.data import DataLoader
if __name__ == "__main__":
    rows = datasets.load_from_disk("arrow").with_format("torch")
    for batch in DataLoader(rows, batch_size=50, num_workers=2, shuffle=True):
        assert batch["x"].shape == (50, 1000)
""")
    assert found.totals["steps"] == 20
    assert found.totals["bytes_mapped"] >= size
    assert found.cell["fetch"]["batches"] == 20


@pytest.mark.parametrize("maps", [True, False])
def test_dali_on_the_cpu_has_its_waits_and_every_byte(traced, pictures: int, tmp_path: Path, maps: bool) -> None:
    found = traced(f"""
from nvidia.dali import fn, pipeline_def, types
@pipeline_def(batch_size=5, num_threads=2, device_id=None, prefetch_queue_depth=1)
def photos():
    files, labels = fn.readers.file(file_root="photos", dont_use_mmap={not maps}, prefetch_queue_depth=1)
    return fn.decoders.image(files, device="cpu", output_type=types.RGB), labels
pipeline = photos()
for step in range(8):
    images, labels = pipeline.run()
    assert len(images) == 5
""")
    assert found.totals["steps"] == 8
    assert 0 < found.totals["wait_s"] <= found.totals["loop_s"]
    # Eight batches are two passes, and it reads ahead by some.
    read = below(found, tmp_path / "photos", "bytes_read")
    if maps:
        assert read == 0 and found.totals["bytes_mapped"] >= 2 * pictures
    else:
        assert 2 * pictures <= read <= 3 * pictures, (read, pictures)


def test_grain_has_its_waits_and_every_byte(traced, tmp_path: Path) -> None:
    found = traced("""
import grain.python as grain
class Files:
    def __len__(self): return 20
    def __getitem__(self, i):
        with open(f"data/{i:02}.bin", "rb", buffering=0) as file:
            return len(file.read())
if __name__ == "__main__":
    loader = grain.DataLoader(
        data_source=Files(),
        sampler=grain.SequentialSampler(20, grain.NoSharding()),
        operations=[grain.Batch(4)],
        worker_count=0,
    )
    assert sum(1 for batch in loader) == 5
""")
    data = found.below(tmp_path / "data")
    assert (data["opens"], data["bytes_read"]) == (20, 20 * 30_000)
    assert found.totals["steps"] == 5
    assert 0 < found.totals["wait_s"] <= found.totals["loop_s"]
