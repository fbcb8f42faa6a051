"""Copies of batches to a GPU, on a stream of their own, through torch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

# Batches whose copies may be on their way: the one that the loop gets next, and the one behind it.
IN_FLIGHT = 2


def find(device: Any) -> Any:
    """The torch device of this name, if it is there.

    Raises:
        RuntimeError: It is not there, or torch is not installed.
        ValueError: Batches cannot be copied to such a device.
    """
    try:
        import torch
    except ImportError:
        raise RuntimeError(f"device={str(device)!r} needs torch, which is not installed") from None
    try:
        found = torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"device={str(device)!r} is not a device of torch: {error}") from None
    if found.type == "cpu":
        return None
    if found.type != "cuda":
        raise ValueError(f"device={str(device)!r}: batches are copied to CUDA devices only; omit it and use tensor.to()")
    n = torch.cuda.device_count()
    if n == 0:
        raise RuntimeError(f"device={str(device)!r} is not there: torch finds no GPU")
    if found.index is not None and found.index >= n:
        raise RuntimeError(f"device={str(device)!r} is not there: torch finds {n} GPUs")
    return torch.device("cuda", torch.cuda.current_device() if found.index is None else found.index)


def copied(batches: Any, device: Any, ready: Callable[[], bool], ring: Callable[[], Any]) -> Iterator[tuple[Any, Any]]:
    """The batches on the device. A yielded batch may be used at once on the stream that is current then: that stream waits
    for its copy. Whatever is ready then is sent on its way, and arrives while the yielded batch is used.
    """
    import torch

    stream = torch.cuda.Stream(device)
    pins = _Pins(torch)
    sent: deque[tuple[Any, Any, Any, Any]] = deque()
    # Host batches whose copies may still be read from.
    held: deque[tuple[Any, Any]] = deque()

    def send() -> bool:
        found = next(batches, None)
        if found is None:
            return False
        batch, place = found
        pins.keep(ring())
        while len(held) >= IN_FLIGHT:
            held.popleft()[1].synchronize()
        with torch.cuda.stream(stream):
            moved: list[Any] = []
            there = _moved(batch, device, torch.Tensor, moved)
            arrived = torch.cuda.Event()
            arrived.record(stream)
        held.append((batch, arrived))
        sent.append((there, moved, arrived, place))
        return True

    try:
        while sent or send():
            there, moved, arrived, place = sent.popleft()
            while held and held[0][1].query():
                held.popleft()
            failure = None
            if len(sent) + 1 < IN_FLIGHT and ready():
                try:
                    send()
                except Exception as error:
                    # The loop gets the batch before it first.
                    failure = error
            current = torch.cuda.current_stream(device)
            current.wait_event(arrived)
            for tensor in moved:
                # The memory was allocated on the other stream: it is not to be reused before this one is done with it.
                tensor.record_stream(current)
            del moved
            yield there, place
            del there
            if failure is not None:
                raise failure
    finally:
        batches.close()
        # The ring's memory is read until the last copy is done.
        stream.synchronize()
        sent.clear()
        held.clear()
        pins.free()


def _moved(value: Any, device: Any, kind: type, moved: list[Any]) -> Any:
    if isinstance(value, kind):
        there = value.to(device, non_blocking=True)
        moved.append(there)
        return there
    if isinstance(value, (tuple, list)):
        return type(value)(_moved(part, device, kind, moved) for part in value)
    if isinstance(value, dict):
        return {name: _moved(part, device, kind, moved) for name, part in value.items()}
    return value


class _Pins:
    """Rings whose pages are locked, so that the device reads them by itself."""

    def __init__(self, torch: Any) -> None:
        self._cudart = torch.cuda.cudart()
        self._torch = torch
        self._rings: list[Any] = []

    def keep(self, ring: Any) -> None:
        """Locks a ring's pages, if they are not locked."""
        if ring is None or any(known.address == ring.address for known in self._rings):
            return
        code = int(self._cudart.cudaHostRegister(ring.address, ring.nbytes, 0))
        if code != 0:
            raise RuntimeError(f"cannot lock {ring.nbytes} bytes of batches for the GPU: CUDA error {code}")
        # Kept until they are unlocked: memory must not be returned to the system while it is locked.
        self._rings.append(ring)

    def free(self) -> None:
        """Unlocks all."""
        while self._rings:
            self._cudart.cudaHostUnregister(self._rings.pop().address)
