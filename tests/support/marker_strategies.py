"""Markers, chunkings and a scanner to compare with, for tests of the ``markers`` dialect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from hypothesis import strategies as st

from kainite.base.markers import Markers
from kainite.child.markers.framing import MarkedPiece

_ALPHABET = b"ab\n\0\x17\xff"


def texts(min_size: int = 0, max_size: int = 8) -> st.SearchStrategy[bytes]:
    """Draws bytes of an alphabet so small that markers come again and again."""
    return st.lists(st.sampled_from(_ALPHABET), min_size=min_size, max_size=max_size).map(bytes)


def _valid(four: tuple[bytes, ...]) -> bool:
    try:
        Markers(*four)
    except ValueError:
        return False
    return True


def marker_sets() -> st.SearchStrategy[Markers]:
    """Draws markers of one to three bytes, whose ends and beginnings may overlap."""
    return st.tuples(*[texts(1, 3)] * 4).filter(_valid).map(lambda four: Markers(*four))


def chunked(data: bytes, cuts: Iterable[int]) -> Iterator[bytes]:
    """Cuts ``data`` at some places."""
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return (data[begin:end] for begin, end in pairwise(places))


def cuts() -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 10_000), max_size=12)


def slowly_scanned(markers: Markers, data: bytes) -> tuple[list[MarkedPiece], bytes]:
    """Scans byte by byte: returns the pieces, and the bytes after the last marker."""
    pieces: list[MarkedPiece] = []
    rest = b""
    for number in data:
        rest += bytes([number])
        for mark in markers.marks().values():
            if rest.endswith(markers.of(mark)):
                pieces.append(MarkedPiece(rest.removesuffix(markers.of(mark)), mark))
                rest = b""
                break
    return pieces, rest
