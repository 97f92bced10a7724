"""A place in a server's binlog, and the identity of the server; pure.

A place is a file and a position. Another server has files of the same names, so an offset carries what tells servers
apart: MySQL's ``server_uuid``; of MariaDB, whose ``server_id`` many share, also when the file was begun, and the GTIDs
that the server has at the place (``BINLOG_GTID_POS``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kainite.base.errors import SourceError

BEGIN_ANEW = (
    "copy the tables again and begin with their place and the number of the last transaction (docs/extract.md, *MariaDB"
    " and MySQL*)"
)
"""What helps where the binlog does not lead on from the offset."""


@dataclass(frozen=True, slots=True, order=True)
class BinlogPlace:
    """A position in a file of the binlog; the first one is 4."""

    file: str
    position: int

    def __str__(self) -> str:
        return f"{self.file}:{self.position}"

    def is_before(self, other: BinlogPlace) -> bool:
        """Returns whether a place of the same server stands before another; file numbers may grow by a digit."""
        mine, theirs = ((len(one.file), one.file, one.position) for one in (self, other))
        return mine < theirs


@dataclass(frozen=True, slots=True)
class BinlogIdentity:
    """Which server and database an offset was read from.

    Attributes:
        server: MySQL's ``server_uuid``, or MariaDB's ``server_id``.
        database: the database that is read.
        begun: when the offset's file was begun, seconds since the epoch.
    """

    server: str
    database: str
    begun: int

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> BinlogIdentity:
        """Reads the result of :meth:`as_json`; raises KeyError, TypeError or ValueError for another value."""
        return cls(str(value["server"]), str(value["database"]), int(value["begun"]))

    def as_json(self) -> dict[str, Any]:
        return {"server": self.server, "database": self.database, "begun": self.begun}


def check_identity(noted: BinlogIdentity | None, found: BinlogIdentity) -> None:
    """Checks that an offset belongs to a server.

    Args:
        noted: what the offset carries; None where a person has begun with it.
        found: the server, and the file of the offset there.

    Raises:
        SourceError: the offset belongs to another source.
    """
    if noted is None or noted == found:
        return
    if noted.database != found.database:
        raise SourceError(
            f"the offset was read from database {noted.database}, and --source names database {found.database}"
        )
    raise SourceError(
        f"the offset was read from another server (server {noted.server}, file begun at {noted.begun}; this one is"
        f" server {found.server}, file begun at {found.begun}): its positions are others, and transactions would be"
        f" skipped; {BEGIN_ANEW}. Where this server is a replica of that one with the same GTIDs (MariaDB), begin with"
        " the offset's gtid, number and options"
    )


def check_gtids(noted: str, found: str, place: BinlogPlace) -> None:
    """Raises SourceError where MariaDB has other GTIDs at a place than an offset noted there."""
    if noted and set(noted.split(",")) != set(found.split(",")):
        raise SourceError(
            f"the offset has the GTID {noted} at {place}, and this server {found or 'none'}: the binlog was written"
            f" anew (RESET MASTER, a restored copy); {BEGIN_ANEW}"
        )
