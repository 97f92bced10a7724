"""A process of its own that keeps a consistent point's snapshot alive while a load needs it.

PostgreSQL ends a snapshot with the session that made it. The load's driver may be killed and go on, so the session is
not the driver's: :func:`kept_snapshot` starts ``python -m kainite.replicate.keeper``, in a process group of its own,
and returns when the point is made. The keeper then looks at the target's ledger each :data:`LOOK_S` seconds, and ends
when

* the ledger does not need the snapshot any more: another generation has another point, or all rows are copied; or
* no driver has given a sign of life for :data:`LEFT_ALONE_S` seconds, by the target's clock: a snapshot holds back
  vacuum on the source; or
* the target has not answered for so long; or the source has ended the session.

The keeper is told its work on standard input, since it includes addresses with passwords; it answers with one line of
JSON on standard output.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import psycopg
from psycopg import pq

from kainite.base.errors import KainiteError, SourceError
from kainite.base.redaction import redacted
from kainite.base.whole_write import write_whole
from kainite.capture.postgresql.consistent_snapshot import LOCK_WAIT_S, ConsistentPoint, consistent_snapshot
from kainite.capture.postgresql.replication_connection import execute
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.replicate import ledger
from kainite.replicate.ends import ReplicaEnds, is_mariadb, target_session
from kainite.replicate.own_process import OwnProcess

LOOK_S: Final = 2.0
"""Seconds between two looks at the ledger."""

LEFT_ALONE_S: Final = 600.0
"""Seconds for which a load whose driver was killed may be gone on with."""

_NEEDED: Final = f"""
    SELECT snapshot IS NULL AND generation = %(generation)s
        OR snapshot = %(snapshot)s AND EXISTS (
            SELECT FROM kainite_load_step s
            WHERE s.log_partition = l.log_partition AND s.stage < {ledger.STATEMENT_STAGE} AND s.done_at IS NULL)
    FROM kainite_load l
    WHERE log_partition = %(log)s AND state = 'loading'
      AND seen_at > CURRENT_TIMESTAMP - {LEFT_ALONE_S} * interval '1 s'"""


class KeeperWork(msgspec.Struct, frozen=True):
    """What a keeper is told.

    Attributes:
        source, target: the databases' URLs.
        log_partition: the log's name in the target.
        generation: the load's generation, which has no point yet.
        oids: the tables of the source that are locked against being written anew.
        lock_wait: seconds to wait for open transactions of the source.
    """

    source: str
    target: str
    log_partition: str
    generation: int
    oids: tuple[int, ...]
    lock_wait: float


class KeptSnapshot(msgspec.Struct, frozen=True):
    """What a keeper answers: a point, or why there is none.

    Attributes:
        lsn, snapshot, system, timeline, database: the point's.
        error: the cause, in one line; empty where there is a point.
    """

    lsn: int = 0
    snapshot: str = ""
    system: str = ""
    timeline: int = 0
    database: str = ""
    error: str = ""

    def point(self) -> ConsistentPoint:
        """Returns the point; raises SourceError where there is none."""
        if self.error:
            raise SourceError(self.error)
        return ConsistentPoint(self.lsn, self.snapshot, SourceIdentity(self.system, self.timeline, self.database))


def keeper_process() -> OwnProcess:
    """Returns what starts keepers."""
    return OwnProcess("kainite.replicate.keeper")


def kept_snapshot(
    ends: ReplicaEnds,
    generation: int,
    oids: Sequence[int],
    lock_wait: float = LOCK_WAIT_S,
    keeper: OwnProcess | None = None,
) -> ConsistentPoint:
    """Starts a keeper; returns the point whose snapshot it keeps.

    Args:
        ends: source and target.
        generation: the load's generation, which has begun.
        oids: the tables of the source.
        lock_wait: seconds to wait for open transactions of the source.
        keeper: a process that was begun before, or is begun now.

    Raises:
        SourceError: there is no point: the source refused, or a transaction is in the way.
    """
    work = KeeperWork(ends.source.url, ends.target, ends.log_partition, generation, tuple(oids), lock_wait)
    line = (keeper or keeper_process()).first_line(msgspec.json.encode(work))
    if not line:
        raise SourceError("the process that keeps the source's snapshot ended before it had made one")
    return msgspec.json.decode(line, type=KeptSnapshot).point()


def keep(work: KeeperWork, answer: int) -> None:
    """Makes a point, writes the answer to a file descriptor, closes it, and holds the snapshot while it is needed."""
    held: list[pq.abc.PGconn] = []

    def tables(connection: pq.abc.PGconn) -> Sequence[int]:
        held.append(connection)
        return work.oids

    try:
        with consistent_snapshot(work.source, tables, work.lock_wait) as point:
            identity = point.source
            _answer(
                answer, KeptSnapshot(point.lsn, point.snapshot, identity.system, identity.timeline, identity.database)
            )
            _hold(work, point.snapshot, held[0])
    except KainiteError as error:
        _answer(answer, KeptSnapshot(error=str(error)))
    except psycopg.Error as error:
        _answer(answer, KeptSnapshot(error=redacted(" ".join(str(error).split()))))


def _hold(work: KeeperWork, snapshot: str, source: pq.abc.PGconn) -> None:
    """Returns when the snapshot is not needed any more, or is gone."""
    limit = time.monotonic() + LEFT_ALONE_S
    while time.monotonic() < limit:
        time.sleep(LOOK_S)
        try:
            execute(source, "SELECT 1")
        except SourceError:
            return
        needed = _needed(work, snapshot)
        if needed is False:
            return
        if needed:
            limit = time.monotonic() + LEFT_ALONE_S


def _needed(work: KeeperWork, snapshot: str) -> bool | None:
    """Asks the ledger whether the snapshot is needed; None where the target does not answer."""
    values = {"log": work.log_partition, "generation": work.generation, "snapshot": snapshot}
    try:
        if is_mariadb(work.target):
            from kainite.replicate.mariadb_load_ledger import mariadb_snapshot_needed

            return mariadb_snapshot_needed(work.target, work.log_partition, work.generation, snapshot, LEFT_ALONE_S)
        with target_session(work.target, "kainite keeper") as connection:
            row: Any = connection.execute(_NEEDED, values).fetchone()
    except KainiteError:
        return None
    return row is not None and bool(row[0])


def _answer(descriptor: int, answer: KeptSnapshot) -> None:
    """Writes the answer, if nobody has had one before."""
    try:
        write_whole(descriptor, msgspec.json.encode(answer) + b"\n")
        os.close(descriptor)
    except OSError:
        return


def main() -> None:
    """Keeps the snapshot that standard input describes; in a child process, so that the driver has none to wait for.

    Nothing on standard input: the driver has ended, or needs no keeper.
    """
    told = sys.stdin.buffer.read()
    if told and os.fork() == 0:
        keep(msgspec.json.decode(told, type=KeeperWork), sys.stdout.fileno())


if __name__ == "__main__":
    main()
