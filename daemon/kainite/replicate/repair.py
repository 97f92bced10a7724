"""Repairs rows of a replica that differ: writes them as the source has them, as one unit of the log.

::

    rows that differ ─► the log's end ─► source's snapshot, which gives the point ─► the rows' deltas, heartbeat
      ─► the first unit behind the point is in the log ─► ask the log's owner ─► the unit is applied
                ▲                                              │ a later unit has touched a row
                └──────────────────────────────────────────────┘ again, at a new point

**Why the order is right.** Let L be the point, a place of the source (:mod:`kainite.capture.places`): an LSN of
PostgreSQL, the number of a transaction of MariaDB. Let *since* be the first unit of the log whose transaction committed
at L or later. (1) The snapshot has exactly the transactions that committed before L
(:mod:`kainite.replicate.repair_source`). (2) The log has units in the order of commits, so the units
below *since* are those transactions: each of them, since a unit behind them is there, and no other. The log's end is
noted before the point is made, so that *since* is looked for among all units that can be it. (3) The owner appends
the repair only if no unit from *since* on touches one of its rows, in one step with the decision
(:mod:`kainite.owner.repairing`). So the rows have at the log's end the values that they had at L. (4) From there on the
repair is a unit like any other: what touches its rows and comes later waits for it, and it waits for what came earlier.
A repair that comes late, because its request has lain in the inbox or was sent twice, meets the same condition over a
longer part of the log, and is refused where it does not hold. It has no number, so the numbers stay dense.

**Loads of its tables.** The unit's name ends with L, and :func:`~kainite.capture.places.commit_place_of` reads it like
a transaction's. So a table that was copied at a later point leaves the repair out, as it leaves out each
transaction from before that point, and one that is being loaded holds it. A comparison at a later point waits for it.

=====================================  =================================================================================
killed                                 leaves
=====================================  =================================================================================
before the request                     nothing
with the request in the inbox          the owner decides it when it comes to it, on the log as it is then
behind the decision                    the unit in the log, which is applied without anybody's help; its record says who
                                       asked, and why
and started again, or started twice    one at a time (:meth:`kainite.replicate.verify_ledger.VerifyLedger.begin`); the
                                       new one compares first, and finds what is still different. A unit of the first
                                       one that is not applied yet explains its rows as those of any unit
=====================================  =================================================================================

A row that is always being changed would never be repaired. Rows that other units have touched in :data:`OFTEN` tries
are left out of the next one, with those that depend on them, and are named: what changes them sets them to what the
source has, or fails and is known.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import orjson

from kainite.base.errors import LogRequestError, LogUnavailableError, StoppedError
from kainite.base.words import counted
from kainite.capture.places import commit_place_of
from kainite.log.contract import LogStore
from kainite.log.format.entry import OperationResult, UnitMeta, UnitStatus
from kainite.log.state.outcomes import outcomes_of, stored_batches
from kainite.log.state.units import UnitFold
from kainite.operations.operation import OperationOutcome, RepairRows
from kainite.owner.repairing import packed
from kainite.replicate.repair_source import RepairSource
from kainite.replicate.repaired_rows import without
from kainite.replicate.verify_report import RowReport
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import Delta
from kainite.uow.signature import Signatures

TRIES: Final = 6

OFTEN: Final = 2
"""Tries in which other units have touched a row before it is left out."""

LOOK_S: Final = 0.1
"""Seconds between two looks at the log."""


@dataclass(frozen=True, slots=True)
class RepairOutcome:
    """What has become of a repair.

    Attributes:
        unit: the name of the repair's unit; empty where no row was left to be repaired.
        rows: how many rows it sets.
        left_out: the table and the key of rows that were left out, since other units touch them.
        status: the unit's status: committed, or why it is not (yet).
    """

    unit: str
    rows: int
    left_out: tuple[tuple[str, Mapping[str, object]], ...] = ()
    status: str = ""

    @property
    def applied(self) -> bool:
        """Tells whether the repair is in the target."""
        return not self.unit or self.status == UnitStatus.COMMITTED.value

    @property
    def sentence(self) -> str:
        """Returns what has become of it, in a sentence."""
        if not self.unit:
            return "nothing was repaired: other units change the rows all the time"
        return f"unit {self.unit} of the log sets {counted(self.rows, 'row')} to what the source has: {self.status}"


@dataclass(slots=True)
class Repair:
    """Repairs rows.

    Attributes:
        source: reads the rows.
        store, partition: the log.
        catalogue: the target's tables.
        ask: asks the log's owner.
        wait: seconds for which the log and the apply job are waited for, each.
        stop: set to end the waiting.
        look: called meanwhile with what is waited for.
        before_asking: called in each try when the deltas are read, before the owner is asked.
    """

    source: RepairSource
    store: LogStore
    partition: str
    catalogue: Catalogue
    ask: Callable[[RepairRows], OperationOutcome]
    wait: float
    stop: threading.Event = field(default_factory=threading.Event)
    look: Callable[[str], None] = lambda _: None
    before_asking: Callable[[], None] = lambda: None

    def run(self, rows: Sequence[RowReport]) -> RepairOutcome:
        """Repairs rows; returns what has become of it.

        Raises:
            SourceError: the source refused, does not answer, or a transaction is in the way of the point.
            DeltaError: a row does not fit the target's catalogue.
            LogRequestError: the log's owner has refused the repair, or other units were in the way in each try.
            LogUnavailableError: the log, or its owner, did not answer, or the point did not come into the log.
            StoppedError: ``stop`` was set.
        """
        run = f"repair-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
        left_out: tuple[Delta, ...] = ()
        met: Counter[int] = Counter()
        refused = ""
        for _ in range(TRIES):
            after = self._log_end()
            self.look("reading the rows at a later point of the source")
            place, deltas = self.source.read(rows)
            name = self.source.unit(run, place)
            often = {token for token, times in met.items() if times >= OFTEN}
            deltas, left_out = without(deltas, Signatures(self.catalogue), often)
            if not deltas:
                return RepairOutcome("", 0, _named(left_out))
            self.before_asking()
            since = self._since(after, place)
            data = packed(orjson.dumps([delta.to_json() for delta in deltas]))
            outcome = self.ask(RepairRows(name, since, len(deltas), data))
            if outcome.result is OperationResult.DONE:
                return RepairOutcome(name, len(deltas), _named(left_out), self._awaited(name, since))
            if outcome.met is None:
                raise LogRequestError(f"the repair was refused: {outcome.sentence}")
            met.update(outcome.met)
            refused = outcome.sentence
        raise LogRequestError(f"no repair after {TRIES} tries: {refused}")

    def _log_end(self) -> int:
        tail = self.store.read_tail(self.partition)
        return 0 if tail is None else tail.next_id

    def _since(self, after: int, place: int) -> int:
        """Waits until a unit from the point on is in the log; returns the first one's transaction id."""
        until = time.monotonic() + self.wait
        while True:
            for batch in self.store.read_batches(self.partition, after, data=False, strong=True):
                for tid, entry in batch.entries_from(after):
                    if isinstance(entry.meta, UnitMeta) and (commit_place_of(entry.meta.uow) or 0) >= place:
                        return tid
                after = batch.last_id + 1
            told = f"waiting for {self.source.shown(place)} to come into the log"
            self._pause(until, told, "the point has not come into the log: kainite extract and run must be at work")

    def _awaited(self, name: str, since: int) -> str:
        """Waits until the repair is applied; returns its status, with its cause, where it is not."""
        until, fold = time.monotonic() + self.wait, UnitFold(keep_resolved=True)
        while True:
            # Before the log, so that none is missed that the owner copies meanwhile.
            outcomes = outcomes_of(stored_batches(self.store, self.partition), 0)
            for batch in self.store.read_batches(self.partition, since, data=False, strong=True):
                for tid, entry in batch.entries_from(since):
                    fold.apply(tid, entry, batch.time_ms)
                since = batch.last_id + 1
            unit = next(one for one in fold.units.values() if one.uow == name)
            for outcome in (one for one in outcomes if one.tid == unit.tid and not unit.resolved):
                unit = unit.settled(outcome)
            if unit.resolved or unit.status in (UnitStatus.FAILED, UnitStatus.BLOCKED):
                return unit.status.value if unit.cause is None or unit.resolved else f"{unit.status}: {unit.cause}"
            if time.monotonic() >= until:
                return f"{unit.status}: kainite apply has not applied it yet"
            self._pause(until, f"waiting until unit {name} is applied", "")

    def _pause(self, until: float, told: str, given_up: str) -> None:
        if self.stop.is_set():
            raise StoppedError("the repair was stopped; what is in the log is applied")
        if time.monotonic() >= until:
            raise LogUnavailableError(given_up)
        self.look(told)
        self.stop.wait(LOOK_S)


def _named(deltas: Sequence[Delta]) -> tuple[tuple[str, Mapping[str, object]], ...]:
    return tuple((delta.table, delta.key) for delta in deltas)
