"""Events of a binlog that MariaDB 10.11 wrote, without checksums, for tests without a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kainite.base.errors import SourceError
from kainite.capture.mysql.events import Event, Kind, decode_event
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.rows import ChangedRow, changed_rows
from kainite.capture.mysql.table_map import decode_table_map
from kainite.capture.mysql.transactions import BinlogAssembler, Rows, Step
from kainite.capture.mysql.values import reader_of

BINLOG: Final = (Path(__file__).parents[1] / "kainite/capture/mysql/golden/binlog").read_bytes()
"""A table with many types: an insert, an update, a savepoint, compressed rows, XA, TRUNCATE, a rollback."""


def events(data: bytes = BINLOG) -> Iterator[Event]:
    """Yields the events."""
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        if size < 1:
            raise SourceError("binlog: an event without a size")
        yield decode_event(data[at : at + size], checksums=False)
        at += size


def steps(data: bytes = BINLOG) -> list[Step]:
    """Returns what the events mean."""
    assembler = BinlogAssembler()
    return [step for event in events(data) for step in assembler.feed(event, BinlogPlace("binlog.000001", event.end))]


def text(raw: bytes, collation: int) -> str:
    """Returns characters of latin1 or UTF-8."""
    return raw.decode("latin-1" if collation == 8 else "utf-8", "replace")


def changed(rows: Rows) -> list[ChangedRow]:
    """Returns the rows of an event, read by what the binlog says of their table."""
    table = decode_table_map(rows.table)
    return list(changed_rows(rows.event, [reader_of(column, text) for column in table.columns]))


def first(kind: Kind) -> Event:
    """Returns the first event of a kind."""
    return next(event for event in events() if event.kind == kind)
