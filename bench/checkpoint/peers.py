"""Saves one state with other people's savers, each made durable in the way its users would.

    peers.py DIR MEGABYTES < orders > seconds

An order is a saver's name on a line: torch, safetensors, tensorflow. The answer is the seconds that the save took, until a
power cut would not lose it as far as its caller can bring that about: the file is synced (torch, safetensors), or the whole
file system (TensorFlow's Saver writes several files). None of them syncs the folder; that would cost no measurable time.
The state is there before the first order and touched; the file of the last save is removed before the next, off the clock.
"""

import os
import shutil
import sys
import time

import numpy


def tensors(megabytes):
    """Float tensors of the shapes that AlexNet's have, as many as it takes; values without a pattern."""
    shapes = [(64, 11, 11, 3), (192, 5, 5, 64), (384, 3, 3, 192), (256, 3, 3, 384), (256, 3, 3, 256),
              (4096, 9216), (4096, 4096), (102, 4096)]
    random = numpy.random.default_rng(0)
    left, made = megabytes * 1_000_000 // 4, []
    while left > 0:
        for shape in shapes:
            n = min(left, int(numpy.prod(shape)))
            if n == 0:
                break
            whole = n == int(numpy.prod(shape))
            made.append(random.standard_normal(n, dtype=numpy.float32).reshape(shape if whole else (n,)))
            left -= n
    return {f"layer.{k}": tensor for k, tensor in enumerate(made)}


def sync_file(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


class Torch:
    def __init__(self, state):
        import torch

        self.save_file = torch.save
        self.state = {name: torch.from_numpy(tensor) for name, tensor in state.items()}

    def save(self, folder):
        path = os.path.join(folder, "state.pt")
        self.save_file(self.state, path)
        sync_file(path)


class Safetensors:
    def __init__(self, state):
        import safetensors.numpy

        self.save_file = safetensors.numpy.save_file
        self.state = state

    def save(self, folder):
        path = os.path.join(folder, "state.safetensors")
        self.save_file(self.state, path)
        sync_file(path)


class TensorFlow:
    """The Saver of the paper: a graph, a session, and `save` with the graph's description."""

    def __init__(self, state):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        import tensorflow

        tf = tensorflow.compat.v1
        tf.disable_eager_execution()
        places = {name: tf.placeholder(tf.float32, tensor.shape) for name, tensor in state.items()}
        variables = [tf.Variable(place, name=name.replace(".", "_")) for name, place in places.items()]
        self.session = tf.Session()
        self.session.run([variable.initializer for variable in variables],
                         {places[name]: tensor for name, tensor in state.items()})
        self.saver = tf.train.Saver(variables)

    def save(self, folder):
        self.saver.save(self.session, os.path.join(folder, "state"))
        descriptor = os.open(folder, os.O_RDONLY)
        # Python has no syncfs of its own.
        import ctypes

        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            raise OSError(ctypes.get_errno(), "syncfs")
        os.close(descriptor)


SAVERS = {"torch": Torch, "safetensors": Safetensors, "tensorflow": TensorFlow}


def main():
    folder, state = os.path.join(sys.argv[1], "peers"), tensors(int(sys.argv[2]))
    ready = {}
    for order in map(str.strip, sys.stdin):
        saver = ready.get(order) or ready.setdefault(order, SAVERS[order](state))
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        os.sync()
        start = time.perf_counter()
        saver.save(folder)
        print(time.perf_counter() - start, flush=True)
    shutil.rmtree(folder, ignore_errors=True)


main()
