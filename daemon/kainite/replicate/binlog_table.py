"""Asks a MariaDB source, and the extraction that reads it, whether tables can be loaded, all or one by itself.

What commits behind the point of a load must come through the log. So the extraction has to read the tables before
there is a point, and from then on. Which ones it reads is a matter of its command line (``--table``), which it takes
when it starts, and its offset says what it has taken, and since which number. Its numbers do not depend on it.
:mod:`kainite.capture.mysql.taken_options` has the invariant of the offset.

So a copy at a point is whole with what the log brings if the offset says, when the copy is made live, that each of its
tables is read since a number before the point: every unit that came by then was put under such options. Whoever takes a
table away from an extraction and puts it back, whenever that was, raises the number beyond the point.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Final

from kainite.base.errors import CatalogueError, SourceError
from kainite.capture.mysql.silent_actions import silent_actions
from kainite.capture.mysql.snapshot_tables import INNODB, of_other_engines, snapshot_tables
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.capture.mysql.source_checks import check_source
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_plan import PairedTable, check_pairs, paired_tables
from kainite.replicate.binlog_point import offset_of, source_catalogue
from kainite.uow.catalogue.tables import Catalogue

READ_S: Final = 30.0
"""Seconds for which the load of a table waits for an extraction that reads it."""

_LOOK_S: Final = 0.5


def check_copied(catalogue: MysqlSourceCatalogue, database: str, only: Collection[str]) -> None:
    """Raises SourceError where the source, or one of the tables, all where there are none, cannot be copied."""
    check_source(catalogue, database, only)
    if others := of_other_engines(catalogue, database, only):
        raise SourceError(f"no snapshot of {', '.join(others)} has a place in the binlog: {INNODB}")


def paired_table(ends: BinlogEnds, name: str, target: Catalogue) -> PairedTable:
    """Returns one table that may be loaded by itself, and the target's.

    Args:
        ends: source and target.
        name: the table, as the source lists it, or with its schema as the target does.
        target: the target's tables.

    Raises:
        SourceError: the source has no such table, or it cannot be copied, or not by itself, or is not read.
        CatalogueError: the target has no such table, or it lacks a column.
    """
    with source_catalogue(ends) as (catalogue, database):
        pairs, missing = paired_tables(snapshot_tables(catalogue, database, ()), target)
        if name in missing:
            raise CatalogueError(
                f"the target has no table {name}: make it by hand, with its keys and with types that fit"
                " (docs/replicate.md, *From MariaDB*), then start again"
            )
        found = next((pair for pair in pairs if name in (pair.source.name, ".".join(pair.place))), None)
        if found is None:
            raise SourceError(f"the source has no table {name}")
        if ends.source.tables and found.source.name not in ends.source.tables:
            raise SourceError(
                f"extractorName names the tables that are read (--table), and {name} is none of them: add --table"
                f" {found.source.name} there, start again, and meanwhile start kainite extract anew"
            )
        check_copied(catalogue, database, [found.source.name])
        _check_actions(catalogue, database, found.source.name, ends.source.tables)
    check_pairs([found], ())
    return found


def check_read(ends: BinlogEnds, tables: Collection[str]) -> None:
    """Checks that the extraction gives the changes of tables.

    Args:
        ends: source and target.
        tables: which; all where there are none.

    Raises:
        SourceError: it reads others, or the offset's file is missing, or broken.
    """
    _read_since(ends, tables)


def check_point(ends: BinlogEnds, tables: Collection[str], point: int) -> None:
    """Checks that the extraction has given, and gives, all changes of tables from the point of their copy on.

    Args:
        ends: source and target.
        tables: which; all where there are none.
        point: the number of the first transaction that the copy does not have.

    Raises:
        SourceError: some are missing, or the offset's file is missing, or broken.
    """
    since = _read_since(ends, tables)
    if since >= point:
        raise SourceError(
            f"offset file {ends.offsets.path} says that the extraction reads {_names(tables)} without a gap since"
            f" transaction {since} alone, and the copy has those up to {point - 1}: what lies between may be missing"
            " (--table in extractorName was taken away and put back, or the extraction was begun anew), so the copy is"
            " worth nothing"
        )


def _read_since(ends: BinlogEnds, tables: Collection[str]) -> int:
    """Returns the number since which tables are read; raises SourceError where one is not."""
    offset = offset_of(ends)
    if (since := offset.read_since(tables)) is None:
        assert offset.options is not None, "who has not begun reads all"
        raise SourceError(
            f"offset file {ends.offsets.path} says that the extraction reads {_names(offset.options.tables)} alone:"
            " start kainite extract anew, which takes the options of extractorName behind what has committed by then;"
            " and start this again"
        )
    return since


def _names(tables: Collection[str]) -> str:
    return ", ".join(tables) or "all tables"


def wait_until_read(ends: BinlogEnds, table: str) -> None:
    """Waits for an extraction that gives a table's changes; raises SourceError after :data:`READ_S` seconds."""
    until = time.monotonic() + READ_S
    while offset_of(ends).read_since([table]) is None and time.monotonic() < until:
        time.sleep(_LOOK_S)
    check_read(ends, [table])


def _check_actions(catalogue: MysqlSourceCatalogue, database: str, table: str, only: Collection[str]) -> None:
    """Refuses a table of which the source changes rows, or whose rows change those of others, beside the binlog.

    The target's own foreign keys do that, and are off while the table is loaded.
    """
    found = [
        str(one)
        for one in silent_actions(catalogue, database)
        if table in (one.child, one.parent) and (not only or {one.child, one.parent} <= set(only))
    ]
    if found:
        raise SourceError(
            f"{table} cannot be loaded by itself: the foreign key {', '.join(found)} changes rows in the source (ON"
            " DELETE, ON UPDATE) of which its binlog says nothing, and the target's is off meanwhile. kainite replicate"
            " load --anew loads all tables again"
        )
