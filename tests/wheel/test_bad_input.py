"""Python exceptions of the fitting type, with the path; never a panic, a hang or an abort."""

import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import N_IMAGES, picture
from PIL import Image

import forebay

Make = Callable[..., forebay.ImageLoader]


def test_data_that_is_not_there_or_holds_nothing(tmp_path: Path) -> None:
    def make(data: object) -> None:
        forebay.ImageLoader(data, batch_size=2)

    with pytest.raises(FileNotFoundError, match="nowhere"):
        make(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="no images or shards found"):
        make(tmp_path)
    with pytest.raises(ValueError, match="ftp:// is none of s3://, "):
        make("ftp://bucket/photos")
    with pytest.raises(OSError, match="this build has no object stores: build it with `--features object`"):
        make("s3://bucket/photos")
    with pytest.raises(ValueError, match="empty list"):
        make([])
    (tmp_path / "noise").write_bytes(b"\x81" * 99)
    with pytest.raises(ValueError, match="expected images, a shard or a list"):
        make(tmp_path / "noise")
    with pytest.raises(ValueError, match="expected images, a shard or a list"):
        make([tmp_path / "noise"] * 2)
    with pytest.raises(TypeError):
        make(5)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"batch_size": 0}, "batch_size is at least 1"),
        ({"batch_size": 1 << 40}, "batch_size is from 1 to 1,000,000"),
        ({"batch_size": 24, "drop_last": True}, "make no batch of 24"),
        ({"rank": 2, "world_size": 2}, "rank 2 of world_size 2 does not exist"),
        ({"world_size": 0}, "world_size is at least 1"),
        ({"image_size": 0}, "image_size is at least 1"),
        ({"image_size": (9, 99_999)}, "image_size of 9x99999"),
        ({"dtype": "float64"}, "dtype \"float64\" is not one of"),
        ({"layout": "CHW"}, "layout \"CHW\""),
        ({"crop": "left"}, "crop \"left\""),
        ({"flip": 1.5}, "flip probability"),
        ({"resize": 31}, "less than the sample's 32"),
        ({"train": True, "resize": 40}, "centre crop"),
        ({"train": True, "crop_scale": (0.5, 0.1)}, "scale"),
        ({"train": True, "crop_ratio": (0.0, 1.0)}, "ratio"),
        ({"normalize": "nothing"}, "normalize='nothing'"),
        ({"normalize": ([0, 0], [1, 1])}, "three numbers"),
        ({"normalize": ([0, 0, 0], [1, 0, 1])}, "deviation"),
        ({"normalize": "unit", "dtype": "uint8"}, "float type"),
        ({"threads": "all"}, "threads is a number"),
        ({"threads": 0}, "threads is at least 1"),
        ({"threads": 9999}, "1,024 threads"),
        ({"prefetch": -1}, "prefetch is at least 0"),
        ({"errors": "ignore"}, "errors='ignore'"),
        ({"output": "mxnet"}, "output='mxnet'"),
        ({"image_key": "x"}, "only TFRecord records have named features"),
        ({"prefetch": 10_000, "image_size": 16_000, "batch_size": 20}, "cannot allocate its buffers"),
    ],
)
def test_values_out_of_range(loader: Make, settings: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        for _ in loader(**settings):
            pass


def test_wrong_types_are_type_errors(loader: Make) -> None:
    with pytest.raises(TypeError, match="batch_size is a whole number"):
        loader(batch_size=2.5)
    with pytest.raises(TypeError, match="unexpected keyword argument 'devise'"):
        loader(devise="cuda:0")


def test_a_state_that_was_tampered_with_is_refused(loader: Make) -> None:
    made = loader()
    state = made.state_dict()
    for changed, error, said in (
        ({"epoch": -1}, ValueError, "the state's epoch is at least 0, not -1"),
        ({"epoch": "x"}, TypeError, "the state's epoch is a whole number, not 'x'"),
        ({"epoch": 1.5}, TypeError, "the state's epoch is a whole number, not 1.5"),
        ({"epoch": 1 << 62}, ValueError, "the state is in epoch 4611686018427387904"),
        ({"epoch": (1 << 64) - 1}, ValueError, "the state's epoch is too large: 18446744073709551615"),
        ({"samples_taken": N_IMAGES}, ValueError, f"the state is at sample {N_IMAGES} of an epoch of {N_IMAGES}"),
        ({"samples_taken": None}, TypeError, "the state's samples_taken is a whole number, not None"),
        ({"data": None}, ValueError, "the state is of other data"),
        ({"version": 9}, ValueError, "the state has version 9; this forebay reads version 1"),
    ):
        with pytest.raises(error, match=said):
            made.load_state_dict({**state, **changed})
    with pytest.raises(TypeError, match="a state is a dict as state_dict"):
        made.load_state_dict(None)
    with pytest.raises(ValueError, match="it has no seed, shuffle, data"):
        made.load_state_dict({"version": 1, "epoch": 0, "samples_taken": 0})
    assert sum(len(labels) for _, labels in made) == N_IMAGES, "the loader is as it was"
    for index in (-1, N_IMAGES, 1 << 40):
        with pytest.raises(ValueError, match=f"there is no sample {index} of {N_IMAGES}"):
            made.name_of(index)


def test_a_device_that_is_not_there_is_named(loader: Make) -> None:
    with pytest.raises(RuntimeError, match="device='cuda:99' (is not there: torch finds|needs torch, which is not installed)"):
        loader(device="cuda:99", output=None)


def test_an_unreadable_image_is_named_or_skipped(photos: Path, tmp_path: Path) -> None:
    for number, path in enumerate(sorted(photos.rglob("*.png"))[:6]):
        (tmp_path / f"{number}.png").write_bytes(path.read_bytes())
    (tmp_path / "2.png").write_bytes((tmp_path / "2.png").read_bytes()[:-40])
    (tmp_path / "4.png").write_bytes(b"")
    made = forebay.ImageLoader(tmp_path, batch_size=2, image_size=16, output="numpy")
    with pytest.raises(forebay.SampleError, match=r"2\.png: .*png"):
        list(made)
    made = forebay.ImageLoader(tmp_path, batch_size=2, image_size=16, output="numpy", errors="skip", return_index=True)
    assert [indices.tolist() for *_, indices in made] == [[0, 1], [3, 5]]
    stats = made.stats()
    assert (stats["failed"], stats["samples"], [Path(name).name for name, _ in stats["failures"]]) == (2, 4, ["2.png", "4.png"])
    assert len(list(made)) == 2, "a second epoch"
    (tmp_path / "0.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"0\.png"):
        list(forebay.ImageLoader([tmp_path / "1.png"], batch_size=1, output="numpy")) and list(_vanishing(tmp_path))
    small = forebay.ImageLoader(tmp_path, batch_size=1, output="numpy", max_sample_size=10)
    with pytest.raises(forebay.SampleError, match="exceeds the sample size limit"):
        list(small)


def _vanishing(folder: Path) -> forebay.ImageLoader:
    """A loader whose first image is gone when it is read."""
    (folder / "0.png").write_bytes((folder / "1.png").read_bytes())
    made = forebay.ImageLoader(folder, batch_size=1, output="numpy")
    (folder / "0.png").unlink()
    return made


def test_a_fork_is_refused_and_ends(loader: Make) -> None:
    made = loader()
    run = iter(made)
    batch = next(run)
    child = os.fork()
    if child == 0:
        # Neither the loader nor the batch may be freed here: their threads and locks are the parent's.
        try:
            next(run)
        except RuntimeError as error:
            status = 0 if "is a fork of it" in str(error) and "spawn" in str(error) else 3
        else:
            status = 4
        del run, made, batch
        os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert len(list(run)) == len(made) - 1, "the parent goes on"


def test_forked_workers_may_make_their_own(photos: Path) -> None:
    made = forebay.ImageLoader(photos, batch_size=4, image_size=8, output="numpy")
    list(made)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(_count, [photos] * 2) == [N_IMAGES] * 2


def _count(photos: Path) -> int:
    return sum(len(labels) for _, labels in forebay.ImageLoader(photos, batch_size=4, image_size=8, output="numpy"))


def test_a_loader_is_not_pickled(loader: Make) -> None:
    with pytest.raises(TypeError, match="make it in the process that uses it"):
        pickle.dumps(loader())


def test_ctrl_c_ends_a_wait(tmp_path: Path) -> None:
    Image.fromarray(picture(3000, 3000, 1)).save(tmp_path / "large.png", compress_level=1)
    (tmp_path / "list.txt").write_text("large.png 0\n" * 400)
    program = textwrap.dedent(
        f"""
        import forebay, os, signal, threading, time
        made = forebay.ImageLoader({str(tmp_path / "list.txt")!r}, batch_size=400, image_size=8, output="numpy", threads=1)
        run = iter(made)
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        start = time.perf_counter()
        try:
            next(run)
        except KeyboardInterrupt:
            print("interrupted", time.perf_counter() - start < 10)
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted True\n", done.stderr


def test_threads_do_not_outlive_a_loop_that_is_left(loader: Make) -> None:
    def n_threads() -> int:
        return len(os.listdir("/proc/self/task"))

    before = n_threads()
    for _ in loader(threads=8, prefetch=1):
        assert n_threads() >= before + 8
        break
    assert n_threads() == before


def test_another_thread_runs_during_a_wait(photos: Path) -> None:
    """The interpreter's lock is free while a batch is awaited: a thread counts meanwhile."""
    program = textwrap.dedent(
        f"""
        import forebay, threading, time
        made = forebay.ImageLoader({str(photos)!r}, batch_size=23, image_size=512, output="numpy", threads=1, prefetch=0)
        count, done = 0, False
        def work():
            global count
            while not done:
                count += 1
                time.sleep(0.001)
        thread = threading.Thread(target=work)
        thread.start()
        start = time.perf_counter()
        next(iter(made))
        waited = time.perf_counter() - start
        done = True
        thread.join()
        print(waited, count)
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    waited, count = done.stdout.split()
    assert float(waited) > 0.02 and int(count) > float(waited) * 1000 / 40, done.stdout
