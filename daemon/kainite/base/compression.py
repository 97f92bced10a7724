"""Compresses bytes into one Zstandard frame, and reads such a frame without trusting its size."""

from __future__ import annotations

import sys
from mmap import mmap

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def compressed(data: bytes, level: int = 3) -> bytes:
    """Returns one frame, whose header says how many bytes it holds.

    Args:
        data: what to compress.
        level: Zstandard's level, 1 to 22.
    """
    return zstd.ZstdCompressor(level).compress(data, zstd.ZstdCompressor.FLUSH_FRAME)


def contents_size(frame: bytes) -> int | None:
    """Returns how many bytes a frame says that it holds; None when it does not say so, or is no frame."""
    try:
        return zstd.get_frame_info(frame).decompressed_size
    except (zstd.ZstdError, EOFError):
        return None


def end_of_whole_frames(data: bytes | mmap) -> int:
    """Returns the offset behind the last of the whole frames that ``data`` begins with; reads the blocks' headers only.

    Args:
        data: frames one behind the other; the last one may be cut off, or be no frame.
    """
    end = 0
    with memoryview(data) as view:
        while end < len(view):
            with view[end:] as rest:
                try:
                    end += zstd.get_frame_size(rest)
                except zstd.ZstdError:
                    break
    return end


def decompressed(frame: bytes, limit: int) -> bytes:
    """Returns what a frame holds; bytes behind the frame are not read.

    The frame's header decides how much memory decompression takes, so it is looked at first.

    Args:
        frame: as :func:`compressed` or another program wrote it.
        limit: most bytes that the frame may hold.

    Raises:
        ValueError: the bytes are no whole frame, or one that holds more than ``limit`` bytes or does not say how many.
    """
    try:
        size = contents_size(frame)
        if size is None or size > limit:
            raise ValueError(f"a frame says that it holds {size} bytes, of at most {limit}")
        decompressor = zstd.ZstdDecompressor()
        data = decompressor.decompress(frame, size)
        if not decompressor.eof:
            data += decompressor.decompress(b"", 1)  # reads the frame's end, where there is one
    except (zstd.ZstdError, EOFError, MemoryError) as error:
        raise ValueError(f"a frame cannot be decompressed: {error}") from error
    if not decompressor.eof or len(data) != size:
        raise ValueError(f"a frame of {size} bytes ends after {len(data)}")
    return data
