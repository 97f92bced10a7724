"""Lets several sessions begin snapshots at one place of a source's binlog.

No session of MariaDB can take over another's snapshot (:mod:`~kainite.capture.mysql.snapshot_session`), so who reads in
parallel begins in all of them until the places are the same. Where too much commits for that, commits are kept out of
the source for the instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final

import pymysql

from kainite.base.errors import SourceError
from kainite.base.redaction import redacted
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.snapshot_session import LOCK_WAIT_S
from kainite.capture.mysql.source_catalogue import as_source_error
from kainite.targets.mariadb.connection import connect

BEGINNINGS: Final = 50
"""Times that all sessions begin a snapshot, before commits are kept out of the source for the instant."""

BEGIN_S: Final = 10.0
"""Seconds for which a beginning waits for a session: commits may be kept out of the source meanwhile."""

_XA: Final = "SHOW GLOBAL STATUS WHERE variable_name IN ('Com_xa_prepare', 'Com_xa_commit')"
_LOCK: Final = (
    f"SET SESSION lock_wait_timeout = {LOCK_WAIT_S}, wait_timeout = {2 * BEGIN_S:.0f}", "FLUSH TABLES WITH READ LOCK",
)  # fmt: skip
_REFUSED: Final = frozenset({1044, 1045, 1227})


def same_place(url: str, begin: Callable[[], set[BinlogPlace]], least: BinlogPlace) -> BinlogPlace:
    """Lets all sessions begin until their places are the same, and not before the least; returns the place.

    ``XA COMMIT`` stands in the binlog before InnoDB commits, so a snapshot may lack what its place has. Where anybody
    has prepared or committed an XA transaction since the server began, commits are kept out, which waits for those
    under way.

    Args:
        url: the source.
        begin: begins a snapshot in each session, in place of an earlier one; returns their places.
        least: up to where the binlog has been read; no transaction before it is missing in the snapshots.

    Raises:
        SourceError: the source refused, is away, or lets no two sessions begin at one place.
    """
    for _ in range(BEGINNINGS):
        places = begin()
        if has_xa(url):
            break
        if len(places) == 1 and not any(place.is_before(least) for place in places):
            return places.pop()
    with _nobody_commits(url):
        places = begin()
    if len(places) != 1:
        raise SourceError(f"snapshots of the source begin at different places: {', '.join(map(str, places))}")
    if (place := places.pop()).is_before(least):
        raise SourceError(f"a snapshot of the source begins at {place}, and its binlog was read up to {least}")
    return place


def has_xa(url: str) -> bool:
    """Tells whether an XA transaction was prepared since the server began, or one of before then committed."""
    with as_source_error(), closing(connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(_XA)
        counts = [int(count) for _, count in cursor.fetchall()]
    return not counts or any(counts)


@contextmanager
def _nobody_commits(url: str) -> Iterator[None]:
    """Keeps commits out of the source meanwhile, which takes the right RELOAD.

    The server lets them in again when this process has been silent for longer than it would wait for the sessions.

    Raises:
        SourceError: commits could not be kept out, or not for all the time.
    """
    with as_source_error():
        connection = connect(url)
    with closing(connection):
        try:
            for statement in _LOCK:
                connection.query(statement)
        except pymysql.Error as error:
            raise SourceError(_no_lock(error)) from None
        yield
        with as_source_error():
            connection.query("UNLOCK TABLES")


def _no_lock(error: pymysql.Error) -> str:
    """Returns why commits could not be kept out."""
    begun = "so much commits in the source, or by XA, or so slowly, that sessions find no common point"
    why = redacted(" ".join(str(error.args[-1] if error.args else error).split()))
    if error.args and error.args[0] in _REFUSED:
        return f"{begun}, and its user may not keep commits out for an instant ({why}): GRANT RELOAD ON *.* TO the user"
    return f"{begun}, and commits could not be kept out for an instant ({why}): try again"
