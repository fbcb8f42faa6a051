"""Starts the hook of `forebay trace` in every Python process of a job, then the sitecustomize that would have run without it."""

import os
import sys


def _start():
    here = os.path.dirname(os.path.abspath(__file__))
    try:
        if os.environ.get("FOREBAY_TRACE_RINGS"):
            import _forebay_trace

            _forebay_trace.install()
    except Exception:
        # A job must never fail because it is traced.
        pass
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    sys.path_importer_cache.pop(here, None)
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_start()
