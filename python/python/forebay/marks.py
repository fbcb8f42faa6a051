"""Marks of a training loop for `forebay trace`."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Iterator
from typing import Any

# Kinds of marks, as in the layout of a trace.
_WAIT, _EPOCH = 1, 3


def _function(name: str, *arguments: Any) -> Any:
    """A function of the library that `forebay trace` loads into a job, if it is there."""
    try:
        # PyDLL keeps the interpreter's lock: a mark takes less time than giving the lock away.
        found = getattr(ctypes.PyDLL(None), name)
    except (AttributeError, OSError):
        return None
    found.argtypes, found.restype = arguments, None
    return found


_step = _function("forebay_step")
_phase = _function("forebay_phase", ctypes.c_char_p)
_mark = _function("forebay_mark", ctypes.c_uint, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64, ctypes.c_uint64)
_is_first = True


def step() -> None:
    """Marks the end of a training step, for `forebay trace`. Without a trace, it does nothing.

    The trace sees steps of PyTorch's optimisers and of Keras by itself; a program that calls this counts its own instead.
    """
    global _is_first
    if _step is None:
        return
    if _is_first:
        _is_first = False
        # An older `forebay trace` may run the job.
        own_steps = getattr(sys.modules.get("_forebay_trace"), "own_steps", None)
        if own_steps is not None and own_steps() > 0:
            # The hook has marked this step already.
            return
    _step()


def phase(name: str) -> None:
    """Says what the program does from now on, such as "train" or "validate", for `forebay trace`. Without a trace, it does
    nothing.
    """
    if _phase is not None:
        _phase(name.encode())


def waits(batches: Iterator[Any]) -> Iterator[Any]:
    """The same batches. In a trace, the waits for them are marked, as those of other loaders are."""
    if _mark is None:
        return batches
    return _marked(batches, _mark)


def _marked(batches: Any, mark: Any) -> Iterator[Any]:
    mark(_EPOCH, time.monotonic_ns(), 0, 0, 0)
    try:
        while True:
            start, busy, brought = time.monotonic_ns(), time.process_time_ns(), -1
            try:
                batch = next(batches)
                brought = 0
            except StopIteration:
                return
            finally:
                # With the processor time of the loader's threads, decoding can be told from waiting for storage.
                mark(_WAIT, start, time.monotonic_ns() - start, brought, time.process_time_ns() - busy)
            yield batch
            del batch
    finally:
        batches.close()
