"""Takes snapshots of a source and of its target at one point, while both live and the apply job goes on.

::

    ask the apply job ─► it attends ─► source's snapshot, which gives the point ─► tell the point, heartbeat
      ─► the apply job stands at the point ─► target's snapshot ─► the apply job goes on ─► compare

The source is a :class:`~kainite.replicate.point_source.PointSource`. The heartbeat is a transaction behind the point:
its unit is what the apply job stops in front of where nobody else writes. :mod:`~kainite.replicate.stop_ledger` says
why the snapshots are the same state, and what a crash at each arrow leaves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import errors, sql

from kainite.base.errors import TargetError, TargetUnavailableError
from kainite.replicate import ledger, stop_ledger
from kainite.replicate.ends import target_session
from kainite.replicate.point_source import PointSource
from kainite.replicate.stop_ledger import StopState, UnresolvedUnit
from kainite.replicate.table_ledger import OwnLoadState
from kainite.replicate.tables import TableName
from kainite.replicate.verify_ledger import VerifyLedger

ANSWER_S: Final = 60.0
"""Seconds for which any apply job is waited for at most: between two micro-batches it answers."""

TRIES: Final = 5
"""Requests that one comparison makes, where apply jobs change or were faster than the point."""

_TARGET_LOCK_S: Final = 2

_TARGET_LIMITS: Final = f"""
    SELECT set_config('lock_timeout', '{_TARGET_LOCK_S}s', false),
           set_config('idle_in_transaction_session_timeout', '0', false), set_config('statement_timeout', '0', false)"""

_LOAD: Final = "SELECT state FROM kainite_load WHERE log_partition = %s AND state <> 'live'"


@dataclass(frozen=True, slots=True)
class SamePoint:
    """Both snapshots.

    Attributes:
        place: the point (:mod:`kainite.capture.places`): both have what committed in the source before it.
        source, target: the names by which other sessions import them; the source's may have none.
        units: the units from before the point that are not in the target.
        unready: the target's tables that are not as of the point, with the reason.
    """

    place: int
    source: str
    target: str
    units: tuple[UnresolvedUnit, ...]
    unready: dict[TableName, str]


@dataclass(frozen=True, slots=True)
class PointRequest:
    """What a point is made for.

    Attributes:
        source: the source.
        tables: the tables of the target, as SQL, which are locked against being written anew.
        wait: seconds for which the apply job is waited for.
        look: called while it is waited, with what is waited for.
        stop: set to give up.
    """

    source: PointSource
    tables: Sequence[str]
    wait: float
    stop: threading.Event
    look: Callable[[str], None] = lambda _: None


@contextmanager
def same_point(request: PointRequest, ledger_of: VerifyLedger) -> Iterator[SamePoint]:
    """Gives the snapshots; other sessions may import them inside the ``with``.

    Args:
        request: what is wanted.
        ledger_of: the ledger, which has begun.

    Raises:
        SourceError: the source refused, or a transaction is in the way of the point.
        TargetError: no apply job came to the point in time, or the target is being loaded.
        TargetUnavailableError: the target does not answer.
    """
    until = time.monotonic() + request.wait
    with ExitStack() as opened:
        for number in range(TRIES):
            # The first try holds up no unit while the source's snapshot is made; it may be too late for a fast job.
            floor = None if number == 0 else request.source.floor()
            with ExitStack() as tried:
                found = _tried(request, ledger_of, floor, until, tried)
                if found is not None:
                    opened.enter_context(tried.pop_all())
                    break
        else:
            raise TargetError(
                f"the apply job came to the point in none of {TRIES} tries: apply jobs follow each other, or the target"
                " is too busy for the handshake; try again"
            )
        yield found


def _tried(
    request: PointRequest, ledger_of: VerifyLedger, floor: int | None, until: float, opened: ExitStack
) -> SamePoint | None:
    """Makes one request; returns the snapshots, which last as long as ``opened``, or None if it came to nothing."""
    ends = request.source.ends
    ledger_of.ask(floor)
    with ExitStack() as asking:
        asking.enter_context(ledger_of.beating(ends.target))
        asking.callback(ledger_of.end)
        soon = min(until, time.monotonic() + ANSWER_S)
        if not ledger_of.awaits(StopState.ATTENDED, soon, lambda: request.look("waiting for the apply job's answer")):
            return None
        point = opened.enter_context(request.source.snapshot())
        if not ledger_of.set_position(point.place):
            return None
        # Made before the apply job stands still, which then waits for less.
        target = opened.enter_context(target_session(ends.target, "kainite verify snapshot"))
        target.execute(_TARGET_LIMITS)
        request.source.beat()
        told = f"waiting for the apply job to come to {request.source.shown(point.place)}"
        if not ledger_of.awaits(StopState.STOPPED, until, lambda: request.look(told)):
            return None
        seen = _seen(target, request, ledger_of)
        if seen is None:
            return None
        return SamePoint(
            point.place, point.snapshot, seen[0], seen[1], _unready(target, ends.log_partition, point.place)
        )


def _seen(
    target: psycopg.Connection, request: PointRequest, ledger_of: VerifyLedger
) -> tuple[str, tuple[UnresolvedUnit, ...]] | None:
    """Begins the transaction whose snapshot is the target's; None where the apply job does not stand any more."""
    target.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        # Before the snapshot, which so has the tables as they are locked.
        if request.tables:
            names = sql.SQL(", ").join(sql.SQL(name) for name in request.tables)
            target.execute(sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(names))
    except errors.LockNotAvailable:
        raise TargetUnavailableError("the target's tables are locked by another session (ALTER TABLE, say)") from None
    row = target.execute(stop_ledger.SEE, (request.source.ends.log_partition, ledger_of.request)).fetchone()
    return None if row is None else (row[1], stop_ledger.decoded(row[0]))


def _unready(target: psycopg.Connection, log_partition: str, place: int) -> dict[TableName, str]:
    """Returns which tables, in the snapshot, are not as of the point; raises TargetError while all are being loaded."""
    found = target.execute(ledger.IS_THERE).fetchone()
    if found is None or not found[0]:
        return {}
    state = target.execute(_LOAD, (log_partition,)).fetchone()
    if state is not None:
        raise TargetError(f"the target is {state[0]}, and not live: kainite replicate status tells more")
    unready = {}
    for schema, name, position, state in target.execute(ledger.POSITIONS, (log_partition,)).fetchall():
        if state == OwnLoadState.GIVEN_UP:
            unready[schema, name] = "it was given up: kainite replicate reload"
        elif state != OwnLoadState.LIVE:
            unready[schema, name] = "it is being loaded by itself, and not live"
        elif position is not None and position > place:
            unready[schema, name] = "it was loaded after the point"
    return unready
