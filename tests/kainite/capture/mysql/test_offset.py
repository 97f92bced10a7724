"""Offsets as Kainite keeps them, and requests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from kainite.capture.mysql.offset import BinlogOffset, start_in
from kainite.capture.mysql.place import BinlogIdentity, BinlogPlace
from kainite.capture.mysql.taken_options import TakenOptions
from kainite.capture.serving import BadRequestError
from kainite.capture.truncate import OnTruncate

WHOLE = BinlogOffset(
    BinlogPlace("binlog.000003", 4711),
    16,
    "0-1-42",
    BinlogIdentity("7", "shop", 1),
    {"X'78'": BinlogPlace("binlog.000001", 5)},
    TakenOptions({"item": 3, "line": 12}, OnTruncate.SKIP),
)


@pytest.mark.parametrize("offset", [WHOLE, BinlogOffset(None, 3, "0-1-2"), BinlogOffset(BinlogPlace("b", 4), 0)])
def test_an_offset_is_read_as_it_was_written(offset: BinlogOffset) -> None:
    assert start_in(orjson.dumps({"start": offset.as_json(), "end": None})) == offset


@pytest.mark.parametrize(
    ("offset", "tables", "since"),
    [
        (WHOLE, ["item"], 3), (WHOLE, ["item", "line"], 12), (WHOLE, ["item", "more"], None), (WHOLE, [], None),
        (replace(WHOLE, options=None), ["more"], 16), (replace(WHOLE, options=None), [], 16),
    ],
)  # fmt: skip
def test_an_offset_says_since_when_tables_are_read(offset: BinlogOffset, tables: list[str], since: int | None) -> None:
    assert offset.read_since(tables) == since


@pytest.mark.parametrize(
    "start",
    [
        None, {}, {"number": 1}, {"file": "b", "number": 1}, {"file": "b", "position": "x", "number": 1}, [1],
        {"file": "b", "position": 4, "number": 1, "options": {"tables": ["item"], "truncate": "fail"}},
        {"file": "b", "position": 4, "number": 1, "options": {"tables": {}, "truncate": "never"}},
    ],
)  # fmt: skip
def test_what_is_no_offset_is_refused(start: Any) -> None:
    with pytest.raises(BadRequestError, match="begin with"):
        start_in(orjson.dumps({"start": start}))


def test_an_offset_of_many_levels_is_refused_too() -> None:
    with pytest.raises(BadRequestError, match="begin with"):
        start_in(b'{"start":' + b"[" * 300 + b"]" * 300 + b"}")


@pytest.mark.parametrize("request_", [b"", b"{}", b"[]"])
def test_what_is_no_request_is_refused(request_: bytes) -> None:
    with pytest.raises(BadRequestError, match="extractorOffsets=kainite"):
        start_in(request_)
