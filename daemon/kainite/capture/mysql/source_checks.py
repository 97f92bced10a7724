"""Checks at the start that a server's binlog has all that is to be read; each problem names what mends it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kainite.base.errors import SourceError
from kainite.capture.mysql.place import BEGIN_ANEW, BinlogPlace
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.capture.mysql.source_tables import TableNow

WANTED: Final[Mapping[str, tuple[str, str]]] = {
    "log_bin": ("ON", "start the server with log_bin = binlog"),
    "binlog_format": ("ROW", "SET GLOBAL binlog_format = 'ROW', which sessions take that begin later"),
    "binlog_row_image": ("FULL", "SET GLOBAL binlog_row_image = 'FULL', which sessions take that begin later"),
    "binlog_row_metadata": ("FULL", "SET GLOBAL binlog_row_metadata = 'FULL'"),
    "binlog_row_value_options": ("", "SET GLOBAL binlog_row_value_options = ''"),
    "binlog_transaction_compression": ("OFF", "SET GLOBAL binlog_transaction_compression = OFF"),
}
"""The server's variables that matter: the value that is needed, and what mends another."""
_WRAPS: Final = 2**32
_NEEDED: Final = frozenset({"log_bin", "binlog_format", "binlog_row_image", "binlog_row_metadata"})


def wrong_settings(found: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields what is wrong with the server's variables, each with what mends it.

    A wrong one would leave changes out of the binlog, or write them in a form that is not readable.
    """
    for name, (wanted, help_) in WANTED.items():
        if name not in found and name in _NEEDED:
            yield f"the server has no {name}", "MariaDB 10.5 or MySQL 8.0 is needed, or a newer one"
        elif (value := found.get(name, wanted)).upper() != wanted:
            yield f"{name} is {value} on the source, and must be {wanted or 'empty'}", help_


def check_settings(found: Mapping[str, str]) -> None:
    """Raises SourceError where a variable of the server is wrong (:func:`wrong_settings`)."""
    for cause, mend in wrong_settings(found):
        raise SourceError(f"{cause}: {mend}")


def check_source(catalogue: MysqlSourceCatalogue, database: str, expected: Iterable[str]) -> None:
    """Checks the server, and the tables that are read.

    Args:
        catalogue: of the server.
        database: the one that is read.
        expected: the tables that are read; all where there are none.

    Raises:
        SourceError: changes would be missing, or could not be carried.
    """
    check_settings(catalogue.variables(*WANTED))
    names = tuple(expected)
    found = catalogue.tables(database, names)
    if missing := sorted(set(names) - found.keys()):
        raise SourceError(
            f"the source has no table {', '.join(missing)} in {database}: --table takes names as the server lists them"
        )
    if not found:
        raise SourceError(f"database {database} has no table: no change would come")
    check_tables(found)


def check_tables(found: Mapping[str, TableNow]) -> None:
    """Raises SourceError where the changes of a table could not be carried."""
    problems = [f"table {name}: {problem}" for name, table in sorted(found.items()) if (problem := table.problem())]
    if problems:
        raise SourceError(f"{'; '.join(problems)} (or name the tables that are read with --table)")


def check_filters(database: str, only: str, without: str) -> None:
    """Checks what the server leaves out of its binlog.

    Args:
        database: the one that is read.
        only: the databases that it logs, behind commas; empty for all.
        without: those that it does not log.

    Raises:
        SourceError: the database is left out.
    """
    if (only and database not in only.split(",")) or database in without.split(","):
        raise SourceError(
            f"the server leaves {database} out of its binlog (binlog_do_db, binlog_ignore_db): no change would come"
        )


def check_told_places(file: str, size: int) -> None:
    """Checks that a file's places can be told where a reading begins in it with a GTID.

    Events say the lower 32 bits of their places. Behind a place that is known they say all; the first event behind a
    GTID may stand anywhere in the file.

    Args:
        file: the binlog's file in which the server begins to send.
        size: its bytes.

    Raises:
        SourceError: they cannot.
    """
    if size >= _WRAPS:
        raise SourceError(
            f"the GTID stands in {file}, which has {size} bytes: beyond 4 GiB the server does not tell where the first"
            " event behind a GTID stands. Begin with a GTID of a later file (FLUSH BINARY LOGS begins one), or with the"
            " file and the position behind the transaction (SHOW BINLOG EVENTS)"
        )


def check_place(place: BinlogPlace, files: Mapping[str, int]) -> None:
    """Checks that the server still has a place.

    Args:
        place: where the reading is to begin.
        files: the binlog's files, and their sizes.

    Raises:
        SourceError: it does not.
    """
    if place.file not in files:
        first = min(files, default="none")
        raise SourceError(
            f"the source has no binlog file {place.file} any more (its first is {first}): it was purged, and what"
            f" committed since the offset is lost; {BEGIN_ANEW}. A longer binlog_expire_logs_seconds (or"
            " expire_logs_days) keeps the files until they are read"
        )
    if not 4 <= place.position <= files[place.file]:
        raise SourceError(
            f"the offset is at {place}, and that file has {files[place.file]} bytes: the offset was made on another"
            f" server, or the server lost the end of its binlog in a crash (sync_binlog = 1 prevents it); {BEGIN_ANEW}"
        )
