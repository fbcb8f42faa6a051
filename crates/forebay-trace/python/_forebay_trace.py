"""Marks of a training job for `forebay trace`: batch waits, fetches, steps, epochs, checkpoints.

A finder waits for the modules below to be imported and wraps a few of their functions. Nothing is imported for its own sake, and a
function that a version of a package does not have is left out. What a wrapped function returns or raises is unchanged.
"""

import functools
import importlib.util
import resource
import sys
import time

WAIT, STEP, EPOCH, SAVE, LOAD, FETCH, LOADER = 1, 2, 3, 4, 5, 6, 8

_mark = None
_busy = set()
_steps = 0
_is_own = False


def own_steps():
    """Called by a program that marks its steps itself, from now on. Returns how many were marked for it so far."""
    global _is_own
    _is_own = True
    return _steps


def _step():
    global _steps
    if not _is_own:
        _steps += 1
        _mark(STEP, time.monotonic_ns(), 0, 1, 0)


def _load():
    global _mark
    if _mark is None:
        import ctypes

        # PyDLL keeps the interpreter's lock: a mark takes less time than giving the lock away.
        mark = ctypes.PyDLL(None).forebay_mark
        mark.argtypes = [ctypes.c_uint, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64, ctypes.c_uint64]
        mark.restype = None
        _mark = mark


def _user_ns():
    """Processor time of the process outside the kernel: what calls take inside is part of their own time."""
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_utime * 1e9)


def _span(kind, start, value=0, index=0):
    _mark(kind, start, time.monotonic_ns() - start, value, index)


def _wrap(owner, name, make):
    original = getattr(owner, name, None)
    if original is None or getattr(original, "_forebay", False):
        return
    wrapped = functools.wraps(original)(make(original))
    wrapped._forebay = True
    setattr(owner, name, wrapped)


def _waits(original, begins=False):
    """Of an iterator's __next__: the outermost one is what the training loop waits for. With `begins`, the first of an object begins a
    pass over the data."""

    def __next__(self, *args, **kwargs):
        if WAIT in _busy:
            return original(self, *args, **kwargs)
        _busy.add(WAIT)
        start, busy = time.monotonic_ns(), _user_ns()
        brought = -1
        try:
            if begins and not getattr(self, "_forebay_began", False):
                self._forebay_began = True
                _mark(EPOCH, start, 0, 0, 0)
            batch = original(self, *args, **kwargs)
            brought = 0
            return batch
        finally:
            _busy.discard(WAIT)
            # What the process computed meanwhile tells decoding in its threads from waiting for storage.
            _span(WAIT, start, brought, max(_user_ns() - busy, 0))

    return __next__


def _passes(original):
    return _waits(original, begins=True)


def _fetches(original):
    def fetch(self, indices):
        start = time.monotonic_ns()
        _mark(FETCH, start, 0, -1, 0)
        busy = time.thread_time_ns()
        try:
            return original(self, indices)
        finally:
            n = len(indices) if isinstance(indices, (list, tuple)) else 1
            _span(FETCH, start, n, time.thread_time_ns() - busy)

    return fetch


def _spans(kind):
    def make(original):
        def call(*args, **kwargs):
            # A saver that calls another one is one checkpoint.
            if kind in _busy:
                return original(*args, **kwargs)
            _busy.add(kind)
            start = time.monotonic_ns()
            try:
                return original(*args, **kwargs)
            finally:
                _busy.discard(kind)
                _span(kind, start)

        return call

    return make


def _torch_loader(module):
    _wrap(module._BaseDataLoaderIter, "__next__", _waits)

    def make(original):
        def __iter__(self):
            start, busy = time.monotonic_ns(), time.process_time_ns()
            _mark(EPOCH, start, 0, 0, 0)
            workers, batch, ahead = (int(getattr(self, name, 0) or 0) for name in ("num_workers", "batch_size", "prefetch_factor"))
            _mark(LOADER, start, 0, workers, ahead << 32 | batch)
            try:
                return original(self)
            finally:
                # Starting workers is part of the wait for the first batch.
                _span(WAIT, start, -1, time.process_time_ns() - busy)

        return __iter__

    _wrap(module.DataLoader, "__iter__", make)


def _torch_fetch(module):
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        if hasattr(module, name):
            _wrap(getattr(module, name), "fetch", _fetches)


def _torch_optimizer(module):
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is not None:
        register(lambda *_: _step())


def _functions(*pairs):
    def patch(module):
        for name, kind in pairs:
            if hasattr(module, name):
                _wrap(module, name, _spans(kind))

    return patch


def _iterators(*pairs):
    """Classes and their functions that bring a batch."""

    def patch(module):
        for owner, name in pairs:
            if hasattr(module, owner):
                _wrap(getattr(module, owner), name, _passes)

    return patch


def _methods(*owners, of):
    def patch(module):
        for owner in owners:
            found = getattr(module, owner, None)
            for name, kind in of if found is not None else ():
                if hasattr(found, name):
                    _wrap(found, name, _spans(kind))

    return patch


def _keras_callbacks(module):
    owner = module.CallbackList

    def steps(original):
        def on_train_batch_end(self, *args, **kwargs):
            _step()
            return original(self, *args, **kwargs)

        return on_train_batch_end

    def epochs(original):
        def on_epoch_begin(self, *args, **kwargs):
            _mark(EPOCH, time.monotonic_ns(), 0, 0, 0)
            return original(self, *args, **kwargs)

        return on_epoch_begin

    _wrap(owner, "on_train_batch_end", steps)
    _wrap(owner, "on_epoch_begin", epochs)


_HOOKS = {
    "torch.utils.data.dataloader": _torch_loader,
    "torch.utils.data._utils.fetch": _torch_fetch,
    "torch.optim.optimizer": _torch_optimizer,
    "torch.serialization": _functions(("save", SAVE), ("load", LOAD)),
    "safetensors.torch": _functions(("save_file", SAVE), ("load_file", LOAD)),
    "safetensors.numpy": _functions(("save_file", SAVE), ("load_file", LOAD)),
    "tensorflow.python.data.ops.iterator_ops": _iterators(("OwnedIterator", "__next__")),
    "nvidia.dali.pipeline": _iterators(("Pipeline", "run"), ("Pipeline", "outputs"), ("Pipeline", "share_outputs")),
    "grain._src.python.data_loader": _iterators(("DataLoaderIterator", "__next__")),
    "tensorflow.python.checkpoint.checkpoint": _methods(
        "Checkpoint", "CheckpointV1", of=(("save", SAVE), ("write", SAVE), ("restore", LOAD), ("read", LOAD))
    ),
    "tensorflow.python.training.saver": _methods("Saver", of=(("save", SAVE), ("restore", LOAD))),
    "tensorflow.python.saved_model.save": _functions(("save", SAVE)),
    "keras.src.saving.saving_lib": _functions(
        ("save_model", SAVE), ("save_weights_only", SAVE), ("load_model", LOAD), ("load_weights_only", LOAD)
    ),
    "keras.src.callbacks.callback_list": _keras_callbacks,
}


class _Loader:
    """The loader of a module, which wraps its functions once it has run."""

    def __init__(self, loader, patch):
        self._loader = loader
        self._patch = patch

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        # The module keeps its own loader: others read its source through it.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        try:
            _load()
            self._patch(module)
        except Exception:
            pass


class _Finder:
    """Comes first, finds the few modules of the table by asking the finders behind it."""

    def __init__(self):
        self._finding = set()

    def find_spec(self, name, path=None, target=None):
        patch = _HOOKS.get(name)
        if patch is None or name in self._finding:
            return None
        self._finding.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._finding.discard(name)
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, patch)
        return spec


def install():
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
