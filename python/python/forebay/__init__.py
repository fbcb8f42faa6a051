"""forebay: feeds training from Python, and saves its state.

`ImageLoader` reads, decodes and augments images in threads of Rust, without Python's lock, and gives batches to PyTorch,
NumPy, JAX or TensorFlow without a copy. `Checkpointer` saves models, optimisers and the loader's place durably.
"""

from ._forebay import CheckpointError, SampleError, __version__
from .checkpoints import Checkpointer, Restored
from .images import ImageLoader

__all__ = ["CheckpointError", "Checkpointer", "ImageLoader", "Restored", "SampleError", "__version__"]
