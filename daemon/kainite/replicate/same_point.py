"""Takes snapshots of a source and of its target at one point, while both live and the apply job goes on.

::

    ask the apply job ─► it attends ─► source's snapshot, which gives the point ─► tell the point, heartbeat
      ─► the apply job stands at the point ─► target's snapshot ─► the apply job goes on ─► compare

The source is a :class:`~kainite.replicate.point_source.PointSource`, the target a
:class:`~kainite.replicate.point_target.PointTarget`. The heartbeat is a transaction behind the point:
its unit is what the apply job stops in front of where nobody else writes. :mod:`~kainite.replicate.stop_ledger` says
why the snapshots are the same state, and what a crash at each arrow leaves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from kainite.base.errors import TargetError
from kainite.replicate.point_source import PointSource
from kainite.replicate.point_target import PointTarget
from kainite.replicate.stop_ledger import StopState, UnresolvedUnit
from kainite.replicate.tables import TableName
from kainite.replicate.verify_ledger import VerifyLedger

ANSWER_S: Final = 60.0
"""Seconds for which any apply job is waited for at most: between two micro-batches it answers."""

TRIES: Final = 5
"""Requests that one comparison makes, where apply jobs change or were faster than the point."""


@dataclass(frozen=True, slots=True)
class SamePoint:
    """Both snapshots.

    Attributes:
        place: the point (:mod:`kainite.capture.places`): both have what committed in the source before it.
        source, target: the names by which other sessions import them; empty where no other session can.
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
        target: the target.
        wait: seconds for which the apply job is waited for.
        look: called while it is waited, with what is waited for.
        stop: set to give up.
    """

    source: PointSource
    target: PointTarget
    wait: float
    stop: threading.Event
    look: Callable[[str], None] = lambda _: None


@contextmanager
def same_point(request: PointRequest, ledger_of: VerifyLedger) -> Iterator[SamePoint]:
    """Gives the snapshots, which last inside the ``with``.

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
    ledger_of.ask(floor)
    with ExitStack() as asking:
        asking.enter_context(ledger_of.beating(request.target.session))
        asking.callback(ledger_of.end)
        soon = min(until, time.monotonic() + ANSWER_S)
        if not ledger_of.awaits(StopState.ATTENDED, soon, lambda: request.look("waiting for the apply job's answer")):
            return None
        point = opened.enter_context(request.source.snapshot())
        if not ledger_of.set_position(point.place):
            return None
        # Made before the apply job stands still, which then waits for less.
        target = opened.enter_context(request.target.connect())
        request.source.beat()
        told = f"waiting for the apply job to come to {request.source.shown(point.place)}"
        if not ledger_of.awaits(StopState.STOPPED, until, lambda: request.look(told)):
            return None
        seen = target.see(ledger_of.request)
    if seen is None:
        return None
    target.hold()
    return SamePoint(point.place, point.snapshot, *seen, target.unready(point.place))
