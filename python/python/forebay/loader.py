"""What all loaders have in common: epochs, places, frameworks, a function on every batch, copies to a GPU."""

from __future__ import annotations

import operator
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from . import devices, frameworks, marks
from ._forebay import Feed, Tensor

_STATE_VERSION = 1

Path = str | os.PathLike[str]
Place = tuple[int, int]


class Loader:
    """Batches of samples that threads of Rust read, in an order that a state can continue. See its subclasses."""

    # Passed on to the native half by every loader.
    _feed: Feed

    def __init__(
        self,
        *,
        seed: int,
        shuffle: bool,
        errors: str,
        output: str | None,
        device: Any,
        map: Callable[[Any], Any] | None,
        map_threads: int,
    ) -> None:
        if output is not None and output not in frameworks.names():
            raise ValueError(f"output={output!r} is not one of {', '.join(frameworks.names())}")
        if map is not None and not callable(map):
            raise TypeError(f"map is a function of a batch, not {map!r}")
        self._output, self._seed, self._shuffle = output, seed, shuffle
        self._map, self._map_threads = map, count("map_threads", map_threads, 1)
        self._skips, self._map_failures = errors == "skip", 0
        self._device = None if device is None else devices.find(device)
        if self._device is not None and output not in (None, "torch"):
            raise ValueError(f'device={device!r} is for output="torch", not output={output!r}')
        # The place after the last batch that the loop got; batches behind it may be on their way.
        self._place: Place | None = None

    def __len__(self) -> int:
        """Batches of an epoch."""
        return self._feed.batches_per_epoch()

    def __iter__(self) -> Iterator[Any]:
        """An epoch: the next one, or what is left of the one whose state was loaded."""
        return self._batches("torch" if self._device is not None else self._output or frameworks.usual())

    def torch(self) -> Iterator[Any]:
        """An epoch as torch tensors."""
        return self._batches("torch")

    def numpy(self) -> Iterator[Any]:
        """An epoch as NumPy arrays, in the host's memory."""
        return self._batches("numpy")

    def jax(self) -> Iterator[Any]:
        """An epoch as JAX arrays."""
        return self._batches("jax")

    def tf(self) -> Iterator[Any]:
        """An epoch as TensorFlow tensors."""
        return self._batches("tf")

    def _batches(self, framework: str) -> Iterator[Any]:
        convert = frameworks.converter(framework)
        self._map_failures = 0
        run = self._feed.begin()
        self._place = self._feed.place()
        batches = self._taken(run, convert)
        if self._map is not None:
            batches = self._mapped(batches, self._map)
        if self._device is not None and framework == "torch":
            # A mapped batch is ready when it comes; others are looked for while the one before is used.
            ready = (lambda: self._feed.ready(run)) if self._map is None else lambda: False
            batches = devices.copied(batches, self._device, ready, lambda: self._feed.ring(run))
        batches = marks.waits(batches)
        try:
            for batch, place in batches:
                self._place = place
                yield batch
            self._place = self._feed.place()
        finally:
            batches.close()
            self._feed.end(run)

    def _taken(self, run: int, convert: frameworks.Convert) -> Iterator[tuple[Any, Place]]:
        while (batch := self._feed.next(run)) is not None:
            yield _each(self._chosen(batch), convert), self._feed.place()

    def _chosen(self, batch: Any) -> Any:
        """What of a native batch the loop gets."""
        return batch

    def _mapped(self, batches: Iterator[tuple[Any, Place]], function: Callable[[Any], Any]) -> Iterator[tuple[Any, Place]]:
        """Runs the user's function in threads, a few batches ahead; their order stays."""
        pool = ThreadPoolExecutor(self._map_threads, "forebay:map")
        waiting: deque[tuple[Future[Any], Place]] = deque()
        try:
            for batch, place in batches:
                waiting.append((pool.submit(function, batch), place))
                del batch
                if len(waiting) > self._map_threads:
                    yield from self._outcome(*waiting.popleft())
            while waiting:
                yield from self._outcome(*waiting.popleft())
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            batches.close()

    def _outcome(self, future: Future[Any], place: Place) -> Iterator[tuple[Any, Place]]:
        try:
            value = future.result()
        except Exception:
            if not self._skips:
                raise
            self._map_failures += 1
            return
        yield value, place

    @property
    def n_samples(self) -> int:
        """Samples of the data, over all ranks."""
        return self._feed.n_samples

    @property
    def notes(self) -> list[str]:
        """What was noticed about the data: files left out, damaged shards."""
        return self._feed.notes

    @property
    def epoch(self) -> int:
        """The epoch that is being iterated, or the next one."""
        return self._now()[0]

    def name_of(self, index: int) -> str:
        """The file of a sample, by its index in the data; with the offset or the row in it."""
        if not 0 <= operator.index(index) < self.n_samples:
            raise ValueError(f"there is no sample {index} of {self.n_samples}")
        return self._feed.name_of(index)

    def _now(self) -> Place:
        return self._place or self._feed.place()

    def state_dict(self) -> dict[str, Any]:
        """The place after the last batch, small and made of plain values.

        It holds for any number of threads, any batch size and any number of ranks, if all ranks have taken the same number
        of batches and no sample was skipped. Where samples were skipped, each rank loads its own state.
        """
        epoch, taken = self._now()
        return {
            "version": _STATE_VERSION,
            "epoch": epoch,
            "samples_taken": taken,
            "seed": self._seed,
            "shuffle": self._shuffle,
            "data": self._feed.fingerprint(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a place: the next `for` begins with the next sample after it.

        Raises:
            ValueError: The state is of other data, another seed or another order, or its place is in no epoch.
            TypeError: It is no state at all.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"a state is a dict as state_dict() returns it, not {state!r}")
        ours = self.state_dict()
        missing = [key for key in ours if key not in state]
        if missing:
            raise ValueError(f"not a state of an {type(self).__name__}: it has no {', '.join(missing)}")
        if state["version"] != _STATE_VERSION:
            raise ValueError(f"the state has version {state['version']}; this forebay reads version {_STATE_VERSION}")
        for key, said in (
            ("data", "the state is of other data: the names, labels or order of the samples differ"),
            ("seed", f"the state is of seed {state['seed']}; this loader has seed {ours['seed']}"),
            ("shuffle", f"the state has shuffle={state['shuffle']}; this loader has shuffle={ours['shuffle']}"),
        ):
            if state[key] != ours[key]:
                raise ValueError(said)
        epoch, taken = (count(f"the state's {key}", state[key], 0) for key in ("epoch", "samples_taken"))
        if (epoch + 1) * self.n_samples >= 1 << 63:
            raise ValueError(f"the state is in epoch {epoch}, which is more than can be counted")
        self._feed.set_place(epoch, taken)
        self._place = None

    def stats(self) -> dict[str, Any]:
        """What the running epoch has done, or the last one did.

        Keys: `batches`, `samples`, `failed` and `failures` (file, reason), `bytes_read`, `threads`, `wall_s`, `wait_s`
        (seconds that the loop waited), `wait_by_cause_s` (the same seconds by cause: "storage", "decode", "threads" for too
        few of them, "prefetch" for too little of it, "cores", "order", "other"), `first_batch_s`, `copied_batches` (batches
        that were copied because the program keeps many), `map_failed` (batches that `map` raised an error for).
        """
        return {**self._feed.stats(), "map_failed": self._map_failures}

    def __reduce__(self) -> Any:
        raise TypeError("a loader has threads and cannot be pickled: make it in the process that uses it")


def _each(value: Any, convert: frameworks.Convert) -> Any:
    """A batch with its tensors as those of a framework."""
    if isinstance(value, Tensor):
        return convert(value)
    if isinstance(value, tuple):
        return tuple(_each(part, convert) for part in value)
    if isinstance(value, dict):
        return {name: _each(part, convert) for name, part in value.items()}
    return value


def common(
    data: Sequence[Path],
    *,
    batch_size: int,
    seed: int,
    shuffle: bool,
    threads: int | str,
    prefetch: int,
    rank: int,
    world_size: int,
    drop_last: bool,
    errors: str,
    device: Any,
    map: Any,
    map_threads: int,
) -> dict[str, Any]:
    """The settings that every native loader takes."""
    if errors not in ("raise", "skip"):
        raise ValueError(f'errors={errors!r} is neither "raise" nor "skip"')
    ahead = (devices.IN_FLIGHT if device is not None else 0) + (count("map_threads", map_threads, 1) if map is not None else 0)
    return {
        "data": [os.fspath(path) for path in data],
        "batch_size": count("batch_size", batch_size, 1),
        "seed": count("seed", seed, 0),
        "shuffle": shuffle,
        "threads": _threads(threads),
        "prefetch": count("prefetch", prefetch, 0),
        "rank": count("rank", rank, 0),
        "world_size": count("world_size", world_size, 1),
        "drop_last": drop_last,
        "skip_errors": errors == "skip",
        "ahead": ahead,
    }


def paths(data: Path | Sequence[Path]) -> list[Path]:
    """One path or several as a list."""
    return [data] if isinstance(data, (str, os.PathLike)) else list(data)


def count(name: str, value: int, least: int) -> int:
    """A whole number in a sensible range."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {value!r}") from None
    if number < least:
        raise ValueError(f"{name} is at least {least}, not {number}")
    if number >= 1 << 63:
        raise ValueError(f"{name} is too large: {number}")
    return number


def _threads(threads: int | str) -> int:
    if isinstance(threads, str):
        if threads != "auto":
            raise ValueError(f'threads is a number or "auto", not {threads!r}')
        return 0
    return count("threads", threads, 1)
