"""Judges, while nothing comes, whether the server's binlog still is the one that is being read. Pure.

``RESET MASTER`` (MySQL 8.4: ``RESET BINARY LOGS AND GTIDS``) throws the binlog away and begins a new one. Who reads the
old one keeps the connection, gets the server's heartbeats, and never gets an event again. So an extractor that has got
no event for :data:`QUIET_S` seconds asks the server, over another connection, where its binlog is:

=====================================================  ===============================================================
the server                                             then
=====================================================  ===============================================================
is another one than at the start                       refused: somebody put it at the other one's address
lacks the file, or the file is shorter than the place  refused: the binlog was thrown away, or copied back
has other GTIDs at the place (MariaDB)                 refused, likewise
is at a place behind, and has sent nothing of what is  the connection is given up, if that is so a second time: what a
between                                                new one finds (when the file was begun) tells
is at the place, with its GTIDs                        nothing was missed
=====================================================  ===============================================================

A server that sends a transaction just now is at a place behind for a moment; an event that comes ends the quiet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kainite.base.errors import SourceError
from kainite.capture.mysql.place import BEGIN_ANEW, BinlogPlace

QUIET_S: Final = 10.0
"""Seconds without an event after which the server is asked."""


@dataclass(frozen=True, slots=True)
class BinlogNow:
    """What a server says of its binlog.

    Attributes:
        server: its own name: MySQL's UUID, MariaDB's number.
        end: the place behind the last event.
        files: the binlog's files, and their sizes.
        gtids: those that it has at the place that is read; None where it cannot tell (MySQL).
    """

    server: str
    end: BinlogPlace
    files: Mapping[str, int]
    gtids: str | None = None


def check_still_there(server: str, place: BinlogPlace, gtids: str, now: BinlogNow) -> bool:
    """Checks that a server still has the binlog that is being read.

    Args:
        server: the server that it is read from.
        place: up to where it was read.
        gtids: those of the transactions up to there.
        now: what the server at the address says.

    Returns:
        Whether the server has sent all that it has.

    Raises:
        SourceError: it has another binlog.
    """
    if now.server != server:
        raise SourceError(
            f"the address of the source leads to another server now (server {now.server}; {server} was read):"
            f" nothing that committed there was sent; {BEGIN_ANEW}"
        )
    size = now.files.get(place.file)
    if size is None:
        raise _thrown_away(place, f"the server has no file {place.file} any more, its first is {min(now.files)}")
    if size < place.position:
        raise _thrown_away(place, f"the server's file {place.file} has {size} bytes alone")
    if now.gtids is not None and _set(now.gtids) != _set(gtids):
        raise _thrown_away(place, f"the GTIDs there were {gtids or 'none'}, and now are {now.gtids or 'none'}")
    return now.end == place


def not_sent(place: BinlogPlace, end: BinlogPlace) -> SourceError:
    """Returns the error of a server that has written on, and sent nothing of it."""
    return SourceError(
        f"the server's binlog has come to {end}, and nothing behind {place} was sent for {QUIET_S:g} s and more:"
        " the connection is given up, and a new one tells whether the binlog was written anew"
    )


def _thrown_away(place: BinlogPlace, why: str) -> SourceError:
    return SourceError(
        f"the binlog that was read up to {place} is gone while it was read: {why}. It was written anew (RESET MASTER, a"
        f" restored copy), and what committed since was not sent; {BEGIN_ANEW}"
    )


def _set(gtids: str) -> set[str]:
    return {gtid for gtid in gtids.split(",") if gtid}
