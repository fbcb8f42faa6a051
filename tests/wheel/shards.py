"""Shards written by the definitions of their formats, without the packages that define them."""

import io
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()


def _crc(data: bytes) -> int:
    """TFRecord's masked crc32c."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def write_tfrecord(path: Path, records: list[bytes]) -> None:
    """Frames of length, checksum, payload, checksum."""
    with open(path, "wb") as file:
        for record in records:
            length = struct.pack("<Q", len(record))
            file.write(length + struct.pack("<I", _crc(length)) + record + struct.pack("<I", _crc(record)))


def _varint(value: int) -> bytes:
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _message(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def example(**features: Any) -> bytes:
    """A serialised tf.train.Example of bytes, float arrays and integers."""
    entries = b""
    for name, value in features.items():
        if isinstance(value, bytes):
            body = _message(1, _message(1, value))
        elif np.asarray(value).dtype.kind == "f":
            body = _message(2, _message(1, np.asarray(value, "<f4").tobytes()))
        else:
            body = _message(3, _message(1, b"".join(_varint(int(one)) for one in np.ravel(value))))
        entries += _message(1, _message(1, name.encode()) + _message(2, body))
    return _message(1, entries)


def write_tar(path: Path, samples: list[dict[str, bytes]]) -> None:
    """Samples of files with a common name, as WebDataset has them."""
    with tarfile.open(path, "w") as tar:
        for number, files in enumerate(samples):
            for extension, content in files.items():
                info = tarfile.TarInfo(f"{number:04}.{extension}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))


def write_indexed(path: Path, records: list[bytes]) -> None:
    """Records one after the other, their offsets and sizes in two files beside."""
    path.write_bytes(b"".join(records))
    sizes = np.array([len(record) for record in records], np.uint64)
    np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype("<u8").tofile(f"{path}.off.idx")
    sizes.astype("<u8").tofile(f"{path}.sz.idx")
