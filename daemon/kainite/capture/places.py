"""Reads from a unit's name where its transaction stands among all others of its source; pure.

A load brings what committed before one *place*, and the log brings what committed from there on. A place is a number
that grows from commit to commit:

* PostgreSQL: the LSN of the commit record;
* MariaDB: the transaction's own number, from 1 without gaps, which the extractor gives in the order of the binlog
  (:mod:`kainite.capture.mysql.units`). GTIDs have no such order where a server has several domains.

What came late of a unit (``NAME+late``) has the place of its transaction: a load that has the transaction has it too.

A repair (:mod:`kainite.replicate.repair`) has the source's rows as of a point, with what committed before it and
nothing else; so it stands where a transaction would that committed at the point. Its name ends with that place.
"""

from __future__ import annotations

import re
from typing import Final

from kainite.capture.postgresql.replication_frames import format_lsn
from kainite.capture.postgresql.transactions import commit_lsn_of
from kainite.log.state.ended_units import on_time_name

# A GTID of MariaDB, or what a repair is called, and the number.
_NUMBERED: Final = re.compile(r"(?:my-\d+-\d+-\d+|repair-\d{8}T\d{6}Z-[0-9a-f]{4}-my)-(\d+)", re.ASCII)
_MARIADB: Final = "mariadb-"


def commit_place_of(uow: str) -> int | None:
    """Returns the place of the transaction whose unit has this name; None for a unit of another source."""
    name = on_time_name(uow)
    found = _NUMBERED.fullmatch(name)
    return commit_lsn_of(name) if found is None else int(found[1])


def repair_name(run: str, place: int) -> str:
    """Returns the name of a repair's unit whose source is MariaDB; :func:`commit_place_of` reads the place.

    Args:
        run: ``repair-TIME-DIGITS``.
        place: the point of the rows.
    """
    return f"{run}-my-{place}"


def mariadb_source(server: str) -> str:
    """Returns how a ledger names a MariaDB server, by its ``server_id``."""
    return f"{_MARIADB}{server}"


def format_place(place: int, source: str | None) -> str:
    """Returns a place as people read it.

    Args:
        place: what committed before it came with the copy.
        source: the source, as a ledger has it: the server's name and the database.
    """
    if source is not None and source.startswith(_MARIADB):
        return f"transaction {place - 1}"
    return format_lsn(place)
