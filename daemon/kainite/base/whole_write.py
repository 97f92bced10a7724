"""Writes bytes to a file descriptor whole: the system may take a part of them at a time."""

from __future__ import annotations

import os


def write_whole(descriptor: int, data: bytes) -> None:
    """Writes all bytes; blocks while the descriptor takes none.

    Raises:
        OSError: the descriptor takes no more; a part of the bytes may be written.
    """
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
