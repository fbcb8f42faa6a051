"""How each framework takes a batch: one function per framework, imported when it is first used."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from ._forebay import Tensor

Convert = Callable[[Tensor], Any]


def _torch() -> Convert:
    import torch

    convert: Convert = torch.from_dlpack
    return convert


def _numpy() -> Convert:
    import numpy

    def convert(tensor: Tensor) -> Any:
        if tensor.dtype == "bfloat16":
            raise TypeError('numpy has no bfloat16: give dtype="float16" or "float32", or output="torch"')
        return numpy.from_dlpack(tensor)

    return convert


def _jax() -> Convert:
    import jax

    # JAX takes arrays without gaps only.
    return lambda tensor: jax.dlpack.from_dlpack(tensor.contiguous())


def _tf() -> Convert:
    import tensorflow

    # TensorFlow takes capsules of DLPack's first version, of arrays without gaps.
    return lambda tensor: tensorflow.experimental.dlpack.from_dlpack(tensor.contiguous().__dlpack__())


_FRAMEWORKS: dict[str, Callable[[], Convert]] = {"torch": _torch, "numpy": _numpy, "jax": _jax, "tf": _tf}


def names() -> tuple[str, ...]:
    """The names that `output` takes."""
    return tuple(_FRAMEWORKS)


def usual() -> str:
    """torch where it is installed, else numpy."""
    return "torch" if importlib.util.find_spec("torch") else "numpy"


def converter(name: str) -> Convert:
    """What turns a batch into the tensors of a framework."""
    return _FRAMEWORKS[name]()
