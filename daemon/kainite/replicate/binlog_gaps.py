"""Finds live tables of a target whose source's changes are missing, by the offset of the extraction.

A table that the extraction does not read for a while (``--table``), and an extraction that is begun anew behind what it
has not read, leave changes out that no unit of the log tells of. The offset says since which number each table is read
without a gap (:mod:`kainite.capture.mysql.taken_options`), and the target as of which number it was copied.
"""

from __future__ import annotations

from collections.abc import Iterator

from kainite.base.errors import SourceError
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_point import offset_of
from kainite.replicate.findings import CheckFinding, warning, wrong
from kainite.replicate.ledger import LoadState
from kainite.replicate.load_target import LoadSession, load_in, tables_in
from kainite.replicate.table_ledger import OwnLoadState


def gaps_of(ends: BinlogEnds, connection: LoadSession) -> Iterator[CheckFinding]:
    """Yields what is missing, with what mends it.

    Args:
        ends: source and target.
        connection: a session with the target.
    """
    load = load_in(connection, ends.log_partition)
    if load is None or load.state is not LoadState.LIVE:
        return
    try:
        offset = offset_of(ends)
    except SourceError as error:
        yield warning("gaps", f"whether changes of tables are missing is not known: {error}",
                      "extractorOffsetFile where this runs")  # fmt: skip
        return
    for schema, name, point, state in tables_in(connection, ends.log_partition):
        table = f"{schema}.{name}"
        if state != OwnLoadState.LIVE or point is None:
            continue
        if (since := offset.read_since([name])) is None:
            yield wrong("gaps", f"the extraction does not read {table}: its changes are missing in the target",
                        f"--table {name} in extractorName, then kainite extract anew, then kainite replicate reload"
                        f" {table}")  # fmt: skip
        elif since >= point:
            yield wrong("gaps", f"{table} was copied as of transaction {point - 1}, and the extraction reads it without"
                        f" a gap since transaction {since} alone: changes between them may be missing",
                        f"kainite replicate reload {table}")  # fmt: skip
