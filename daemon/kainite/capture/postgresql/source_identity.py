"""Which server and database a source is, and whether an offset belongs to it; pure.

An LSN means a place in the WAL of one cluster. Another cluster (a dump that was restored, another host) counts its own
LSNs: a slot there would skip, without a word, every transaction below the offset. So an offset carries the identity of
the source that it was read from, and the extractor compares it with the server before it reads.

==========================================  ===========================================================================
the server                                  then
==========================================  ===========================================================================
has another system identifier               refused: it is another cluster, whose LSNs say nothing about the offset
is connected to another database            refused: a slot sees one database
is on a later timeline (it was promoted)    read, if the offset is not behind the point where the timeline left the
                                            noted one; else refused: what was extracted behind that point is not there
is on an earlier timeline                   refused: it is the former primary, or a backup
has not written WAL up to the offset        refused: the offset was made elsewhere
==========================================  ===========================================================================

An offset that a person begins with carries no identity; the first offset that the extractor gives carries one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kainite.base.errors import SourceError
from kainite.capture.postgresql.replication_frames import format_lsn, parse_lsn

_BEGIN_ANEW = (
    "copy the tables again and begin with the LSN of a new slot and the number of the last transaction"
    " (docs/extract.md, *PostgreSQL*)"
)


@dataclass(frozen=True, slots=True)
class SourceIdentity:
    """The cluster and database that an offset was read from.

    Attributes:
        system: the cluster's system identifier, which ``initdb`` chose.
        timeline: the timeline of the cluster's WAL; a promotion begins a new one.
        database: the database's name.
    """

    system: str
    timeline: int
    database: str

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SourceIdentity:
        """Reads the result of :meth:`as_json`; raises KeyError, TypeError or ValueError for another value."""
        return cls(str(value["system"]), int(value["timeline"]), str(value["database"]))

    def as_json(self) -> dict[str, Any]:
        return {"system": self.system, "timeline": self.timeline, "database": self.database}


@dataclass(frozen=True, slots=True)
class SourceServer:
    """A server as it is now.

    Attributes:
        identity: the cluster and the database.
        written_lsn: the end of its WAL.
        left_at: for each earlier timeline of its WAL, the LSN at which the WAL left that timeline.
    """

    identity: SourceIdentity
    written_lsn: int
    left_at: Mapping[int, int]


def timeline_ends(history: str) -> dict[int, int]:
    """Returns the LSN at which each earlier timeline was left, by timeline.

    Args:
        history: a timeline history file: lines of a timeline, the LSN of the switch and a reason, parted by tabs; lines
            that begin with ``#`` are comments (PostgreSQL manual, *Continuous Archiving*, *Timelines*).
    """
    lines = (line.split() for line in history.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return {int(words[0]): parse_lsn(words[1]) for words in lines}


def check_source(noted: SourceIdentity | None, lsn: int, server: SourceServer) -> None:
    """Checks that an offset belongs to a server.

    Args:
        noted: the identity that the offset carries; None where a person has begun with it.
        lsn: the offset's place: all that committed before it is extracted.
        server: the server that is to be read.

    Raises:
        SourceError: the offset belongs to another source.
    """
    found = server.identity
    if noted is not None and noted.system != found.system:
        raise SourceError(
            f"the offset was read from the cluster with the system identifier {noted.system} (database"
            f" {noted.database}), and this server is cluster {found.system}: its LSNs are others, and transactions"
            f" would be skipped; {_BEGIN_ANEW}"
        )
    if noted is not None and noted.database != found.database:
        raise SourceError(
            f"the offset was read from database {noted.database}, and --source names database {found.database}"
        )
    if noted is not None and noted.timeline != found.timeline:
        _check_timeline(noted, lsn, server)
    if lsn > server.written_lsn:
        raise SourceError(
            f"the offset is at {format_lsn(lsn)}, and the server has written WAL up to"
            f" {format_lsn(server.written_lsn)} alone: the offset was made on another server; {_BEGIN_ANEW}"
        )


def _check_timeline(noted: SourceIdentity, lsn: int, server: SourceServer) -> None:
    found = server.identity
    if found.timeline < noted.timeline:
        raise SourceError(
            f"the offset was read on timeline {noted.timeline}, and this server is on timeline {found.timeline}: it is"
            " a former primary or a backup; name the present primary as --source"
        )
    left = server.left_at.get(noted.timeline)
    if left is None or lsn > left:
        until = "never had it" if left is None else f"left it at {format_lsn(left)}"
        raise SourceError(
            f"the offset {format_lsn(lsn)} was read on timeline {noted.timeline}, and this server, on timeline"
            f" {found.timeline}, {until}: transactions that were extracted are not on this server; {_BEGIN_ANEW}"
        )
