"""The cut-over: from a replica that follows its source to a database that others write.

::

    source closed ─► foreign keys ─► watch from point P ─► marker M behind P ─► M applied, nothing left ─► sequences
                                                                                        ─► last transaction

A driver of a single table that was killed may have left foreign keys off. They are made first, since from *cut over* on
no load makes them; those that the target refuses are told. The last transaction refuses where one is off again.

In the last transaction of the target the apply job is shut out, the source is looked at once more, the triggers that
Kainite has switched off are switched on, and the state becomes *cut over*; all or nothing. In MariaDB no trigger is
switched off, so none is switched on, and counters are set by DDL, which commits by itself, before that transaction.

Where units of another log are applied in the same database, only the triggers of this replica's tables are switched on:
the other apply job relies on the rest, and would refuse to go on.

Invariants:

1. The state is *cut over* only if all that committed in published tables of the source, up to a look in that
   transaction, is in the target. Up to P: since M is, and units come in the order of commits. Behind P: there was
   nothing, as the watch has seen.
2. No unit is applied in *cut over*: the fence is closed in the transaction that sets it, and no apply job gets another
   one before a person takes the cut-over back.

=====================================  =================================================================================
killed                                 then
=====================================  =================================================================================
before the sequences                   foreign keys are made that were off; nothing else has changed: a marker is a unit
                                       without changes, the watch ends with it
between sequences and the last         sequences and counters of the target are ahead, which does no harm: they are set
transaction                            again
in the last transaction                it is rolled back, or it has committed and the target is cut over
=====================================  =================================================================================

Each start does all of it again, with a new point. One cut-over at a time, and none beside a load: both hold the load's
ledger.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import psycopg

from kainite.base.errors import TargetError
from kainite.base.words import are, counted
from kainite.replicate.applied_point import LogStanding
from kainite.replicate.findings import some_names
from kainite.replicate.ledger import LoadState
from kainite.replicate.load_target import driven_ledger, foreign_keys_made, load_session
from kainite_spark.load.cutover_source import CutOverSource, SourceWatch
from kainite_spark.targets.hooks import Hook
from kainite_spark.targets.postgresql.hook_switch import switch_on, switched_off
from kainite_spark.targets.postgresql.loaded_tables import loaded_relations, others_apply

if TYPE_CHECKING:
    from kainite.replicate.load_target import LoadSession

LOOK_S: Final = 0.5
"""Seconds between two looks at the log."""

MARK_AGAIN_S: Final = 30.0
"""Seconds after which another marker follows: the log may have left the last one behind before it was looked at."""


class WaitingEvent(Protocol):
    """Something that is set to end a wait: ``threading.Event``."""

    def wait(self, timeout: float) -> bool:
        """Waits until it is set, or for so many seconds; tells whether it is."""


@dataclass(frozen=True, slots=True)
class CutOverDone:
    """A cut-over.

    Attributes:
        position: the source's place up to which everything is in the target.
        sequences: the target's sequences that were set.
        triggers: the triggers and rules that were switched on.
        still_off: those that stay switched off for the apply job of another log.
        foreign_keys: foreign keys of the target that it refuses, each with the cause.
    """

    position: str
    sequences: tuple[str, ...]
    triggers: tuple[str, ...]
    still_off: tuple[str, ...] = ()
    foreign_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CutOver:
    """Cuts a live target over.

    Attributes:
        source: the source.
        log: reads how far the log is with a place of the source.
        stop: set to give up; the target is live then.
        tell: called with the place that is waited for, and how far the log is.
        wait: seconds to wait until everything is applied.
    """

    source: CutOverSource
    log: Callable[[int], LogStanding]
    stop: WaitingEvent
    tell: Callable[[str, LogStanding], None]
    wait: float

    def run(self) -> CutOverDone | None:
        """Cuts over; returns None where it was stopped.

        Raises:
            SourceError: somebody writes in the source, a transaction is open for too long, or the source has ended.
            TargetError: the target is not live, not all units are applied in time, some are failed, or a load runs.
        """
        log_partition = self.source.ends.log_partition
        with load_session(self.source.ends.target, "kainite cutover") as connection:
            ledger = driven_ledger(connection, log_partition)
            load = ledger.found()
            if load is None or load.state is not LoadState.LIVE:
                raise TargetError("the target is not live, so it cannot be cut over: kainite replicate status")
            refused = foreign_keys_made(connection, log_partition)
            with self.source.watching() as watch:
                position = self._applied(watch)
                if position is None:
                    return None
                sequences = self.source.sequences.set_forward()
                triggers = ledger.cut_over(partial(_last, watch, log_partition))
            still_off = () if not isinstance(connection, psycopg.Connection) else switched_off(connection)
        shown = self.source.shown(position)
        return CutOverDone(
            shown, tuple(sequences), tuple(map(str, triggers)), tuple(map(str, still_off)), tuple(refused)
        )

    def _applied(self, watch: SourceWatch) -> int | None:
        """Waits until all that has committed is applied; returns the place up to which it is, None where stopped."""
        marker, marked = watch.mark(), time.monotonic()
        limit = marked + self.wait
        while not (found := self.log(marker)).is_done:
            if found.stuck:
                raise TargetError(_stuck(found))
            self.tell(self.source.shown(marker), found)
            if time.monotonic() > limit:
                raise TargetError(
                    f"after {self.wait:.0f} s not everything up to {self.source.shown(marker)} is applied: {found}."
                    " kainite status tells why; start the cut-over again when that is mended"
                )
            if self.stop.wait(LOOK_S):
                return None
            watch.look()
            if time.monotonic() > marked + MARK_AGAIN_S:
                marker, marked = watch.mark(), time.monotonic()
        return marker


def _last(watch: SourceWatch, log_partition: str, target: LoadSession) -> list[Hook]:
    """Looks at the source for the last time, then switches the target's triggers on; returns them."""
    watch.look()
    if not isinstance(target, psycopg.Connection):
        return []
    own = loaded_relations(target, log_partition) if others_apply(target, log_partition) else None
    return switch_on(target, own)


def _stuck(found: LogStanding) -> str:
    units = f"{counted(len(found.stuck))} {are(len(found.stuck))}"
    return (
        f"{units} not applied before a person decides: {some_names(found.stuck)}. kainite uow show"
        " tells more; kainite uow retry or discard them, then start the cut-over again"
    )
