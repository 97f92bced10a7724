"""Makes a point of a MariaDB source: snapshots at one place of its binlog, and the number that the place has.

::

    offset of the extraction ─► binlog up to now ─► snapshots at one place of it ─► tables held ─► number at that place

The point is a transaction's *number*: the extractor numbers all that commit in the database in the order of the binlog,
so the snapshots have those up to some number, and the log brings those behind it. Nothing but the binlog says which
number a place has. So the binlog is read from the extraction's offset, whose number is known, up to the place, with the
extractor's own code. Most of it is read before there is a snapshot, which would wait for it.

A transaction stands in the binlog before InnoDB has committed it, and may be numbered then: for long, where its commit
waits for a semi-synchronous replica (``AFTER_SYNC``). So a snapshot whose place is before what was read is begun again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from kainite.base.errors import SourceError
from kainite.capture.mysql.extractor import MysqlExtractor
from kainite.capture.mysql.offset import BinlogOffset
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.snapshot_tables import SnapshotTable, snapshot_tables
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.replicate.binlog_ends import BinlogEnds


class BegunSnapshots(Protocol):
    """Snapshots at one place of the binlog."""

    @property
    def place(self) -> BinlogPlace:
        """Returns the place."""

    def hold(self, tables: Sequence[str]) -> None:
        """Keeps tables from being altered; raises SourceError."""

    def release(self) -> None:
        """Ends them."""


BegunT = TypeVar("BegunT", bound=BegunSnapshots)


@dataclass(frozen=True, slots=True)
class BinlogPoint:
    """A point.

    Attributes:
        number: the number of the last transaction that the snapshots have.
        server: the source's ``server_id``.
        database: the source's database.
    """

    number: int
    server: str
    database: str


def binlog_point(
    ends: BinlogEnds, tables: Sequence[SnapshotTable], begin: Callable[[BinlogPlace], BegunT]
) -> tuple[BegunT, BinlogPoint]:
    """Makes a point, and returns its snapshots with it; they are released where that fails.

    Args:
        ends: source and target.
        tables: the tables that are read, as they were planned.
        begin: begins the snapshots, at a place that is not before the given one.

    Raises:
        SourceError: the source refused, is away, or a table was altered meanwhile.
    """
    with source_catalogue(ends) as (catalogue, database), closing(_Numbers(ends)) as numbers:
        end = end_of_binlog(catalogue)
        numbers.at(end)
        snapshots = begin(end)
        try:
            snapshots.hold([table.name for table in tables])
            _check_tables(catalogue, database, tables)
            number = numbers.at(snapshots.place)
            server = catalogue.variables("server_id").get("server_id", "")
        except BaseException:
            snapshots.release()
            raise
    return snapshots, BinlogPoint(number, server, database)


def number_now(ends: BinlogEnds) -> int:
    """Returns the number of the last transaction in the binlog; raises SourceError."""
    with source_catalogue(ends) as (catalogue, _), closing(_Numbers(ends)) as numbers:
        return numbers.at(end_of_binlog(catalogue))


@contextmanager
def source_catalogue(ends: BinlogEnds) -> Iterator[tuple[MysqlSourceCatalogue, str]]:
    """Gives the source's catalogue and the database's name; raises SourceError."""
    with closing(MysqlSourceCatalogue(ends.source.url)) as catalogue:
        yield catalogue, str(catalogue.value("SELECT database()"))


def offset_of(ends: BinlogEnds) -> BinlogOffset:
    """Returns where the extraction is; raises SourceError where the file is missing, or broken."""
    return BinlogOffset.from_json(ends.offsets.load().start)


def second_extractor(ends: BinlogEnds) -> MysqlExtractor:
    """Returns an extractor beside that of the extraction, which writes nothing anywhere."""
    return MysqlExtractor(replace(ends.source, heartbeat=None, journal=None))


class _Numbers:
    """Numbers places of the binlog, one after the other."""

    def __init__(self, ends: BinlogEnds) -> None:
        self._offset = offset_of(ends)
        self._extractor = second_extractor(ends)

    def at(self, place: BinlogPlace) -> int:
        """Returns the number of the last transaction before a place; raises SourceError."""
        return self._extractor.number_at(self._offset, place)

    def close(self) -> None:
        self._extractor.close()


def _check_tables(catalogue: MysqlSourceCatalogue, database: str, tables: Iterable[SnapshotTable]) -> None:
    """Raises SourceError where a table was altered before it was held."""
    planned = {table.name: table for table in tables}
    for now in snapshot_tables(catalogue, database, tuple(planned)):
        if (now.columns, now.key) != (planned[now.name].columns, planned[now.name].key):
            raise SourceError(f"table {now.name} was altered meanwhile: start again")


def end_of_binlog(catalogue: MysqlSourceCatalogue) -> BinlogPlace:
    """Returns the place behind the last event; raises SourceError."""
    file, position = catalogue.rows("SHOW MASTER STATUS")[0][:2]
    return BinlogPlace(str(file), int(position))
