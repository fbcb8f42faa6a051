"""forebay: feeds training from Python, and saves its state.

`ImageLoader`, `ArrayLoader`, `RecordLoader` and `TokenLoader` read and decode in threads of Rust, without Python's lock, and
give batches to PyTorch, NumPy, JAX or TensorFlow. `Checkpointer` saves models, optimisers and the loader's place durably.
`step` and `phase` mark a training loop for `forebay trace`.
"""

from ._forebay import CheckpointError, SampleError, __version__
from .arrays import ArrayLoader, TokenLoader
from .checkpoints import Checkpointer, Restored
from .images import ImageLoader
from .marks import phase, step
from .records import RecordLoader
from .states import Shard

__all__ = [
    "ArrayLoader", "CheckpointError", "Checkpointer", "ImageLoader", "RecordLoader", "Restored", "SampleError", "Shard",
    "TokenLoader",
    "__version__", "phase", "step",
]  # fmt: skip
