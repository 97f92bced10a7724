"""The bytes of a snapshot and the list of its parts read back; other data is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kainite.base.errors import LogCorruptError
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.snapshot_sections import manifest, part_ids


def sections(*made: dict[str, Any]) -> bytes:
    """Returns sections of a snapshot, each as it is given."""
    encoded = [msgspec.msgpack.encode(section) for section in made]
    return b"".join(len(data).to_bytes(4, "big") + data for data in encoded)


EMPTY: dict[str, Any] = msgspec.to_builtins(snapshot.capture(FoldedLog()).header)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "does not begin with its header"),
        (b"[]", "unpack_from"),
        (b"\0\0\0\x09{}", "cut short"),
        (b"\0\0\0\x02{}", "cannot be read"),
        (sections(EMPTY | {"version": 2}), "Invalid enum value 2 - at `\\$.version`"),
        (sections(EMPTY | {"positions": {"s0": ["x", 0]}}), "matching regex"),
        (sections(EMPTY | {"next_id": -1}), "`int` >= 0"),
        (sections(EMPTY, EMPTY), "two headers"),
        (sections({"type": "units", "items": []}), "does not begin with its header"),
        (sections(EMPTY, {"type": "open", "items": [["T"]]}), "cannot be read"),
        (sections(EMPTY, {"type": "units", "items": [[1, [2, "T", 1], "odd"]]}), "Invalid enum value 'odd'"),
        (sections(EMPTY, {"type": "other", "items": []}), "Invalid value 'other'"),
    ],
)
def test_what_is_no_snapshot_of_this_version_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(LogCorruptError, match=message):
        snapshot.load(data)


DEEP = b"\xa1x" + b"\x91" * 100_000 + b"\x90"
"""A field of a MessagePack map that no release knows, too deep for any reader."""


def test_a_field_that_is_nested_too_deeply_is_refused() -> None:
    section = b"\x83\xa4type\xa4open\xa5items\x90" + DEEP
    with pytest.raises(LogCorruptError, match="recursion"):
        snapshot.load(len(section).to_bytes(4, "big") + section)
    with pytest.raises(LogCorruptError, match="recursion"):
        part_ids(b"\x83\xa7version\x01\xa5parts\x91\x01" + DEEP)


def packed(**fields: Any) -> bytes:
    return msgspec.msgpack.encode(fields)


def test_a_list_of_parts_reads_back() -> None:
    assert part_ids(manifest([3, 5])) == (3, 5)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        packed(version=1),
        packed(version=1, parts=["x"]),
        packed(version=1, parts=[]),
        packed(version=2, parts=[1]),
    ],
)
def test_what_is_no_list_of_parts_is_refused(data: bytes) -> None:
    with pytest.raises(LogCorruptError, match="cannot be read"):
        part_ids(data)
