"""The source's side, which puts the history on the stream, and the operator's, who resolves what has failed.

The producer puts messages in the source's order, in batches; a batch whose reply is lost is put again. It changes the
target's tables where the source's change, if that is to come first; for a new key it waits until the daemons have been
told. The operator makes the target take what it has refused, and retries failed units; what can never be applied, and
has no correction, the operator discards, and with it what the target refuses because of that.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

from kainite.log.format.entry import MISSING, UnitStatus
from kainite.log.state.loading import low_water_mark
from kainite.log.views.unit_times import load_units
from kainite.owner.pausing import PAUSE
from kainite_spark.plan.passing import MAY_TOUCH
from simulation.extras import MARGIN_S, Extra, Extras
from simulation.faults import Effects
from simulation.loop import EPOCH
from simulation.odd import NUMBERED
from simulation.oracle import Allowed
from simulation.plan import Scenario
from simulation.schema import Change, SourceTable, Tables, ddl, rebuilding
from simulation.source import Source, commit_time
from simulation.stream import TOP

if TYPE_CHECKING:
    from simulation.world import World

GATHERED_S = 5.0
"""How long the source waits before a key comes, so that units before it are signed without it, seconds."""

READER_LOOK_S = 0.05
"""Seconds between two looks whether the stream is read."""

TABLE_LOOK_S = 1.0
"""Seconds between two looks whether the tables are there that a change of the tables comes after."""

GIVE_UP_LOOK_S = 1.5
"""Seconds between two looks for units that are in progress."""

LOOK_S = 3.0
"""Seconds between two looks for units that have failed; more of them where a history has many units."""

GIVES_UP = 0.03
"""How likely a unit that is in progress, or blocked, is discarded at a look."""

LONG_LOCK_S = 35.0
"""A lock that may last longer than all units wait for one with ``targetConsistency = prefix``, with other faults."""


def allowed(plan: Scenario, source: Source, interrupted: set[int]) -> Allowed:
    """Returns what the oracle overlooks."""
    more = plan.more
    prefix = more.prefix and not any(change.what == "key" for change in more.changes)
    excused = {*plan.refused, *(one for one, _ in more.poison), *interrupted}
    excused |= {number for begin, end, number in more.locks if end - begin > LONG_LOCK_S or plan.outages}
    if more.changes:
        excused |= {one.number for one in source.history if any(_is_new(source, write) for write in one.writes)}
    later = range(1, plan.transactions + 1)
    extras = Extras(more.extras, more.grace)
    late = {(one, other) for one in interrupted for other in later if other > one} if plan.spread else ()
    excused |= source.odd.hopeless()
    return Allowed(prefix=prefix, excused=excused, late=late, extras=extras, odd=source.odd)


def plan_of(plan: Scenario, number: int) -> list[Extra]:
    """Returns the extras of a transaction."""
    return [extra for extra in plan.more.extras if extra.number == number]


def _is_new(source: Source, write: Any) -> bool:
    return bool(source.tables[write.table].since) or "w" in write.new or "w" in write.old


class Producer:
    """Puts the history on the stream.

    Attributes:
        interrupted: the numbers of the transactions in the middle of which the source pauses.
        longest: seconds until the last message is put, at most, without faults.
        done: whether all messages are put.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._plan = plan = world.plan
        self._rng = rng = Random(f"producer {plan.seed}")
        self._process = world.hosts.process("source")
        self._home = rng.randrange(TOP)
        history = world.source.history
        self._messages = [
            (one.number, text) for one in history for text in (*world.source.messages(one, rng), *self._odd(one.number))
        ]
        last = len(self._messages) - 1
        self._pauses = {1 + int(part * last): seconds for part, seconds in plan.more.pauses if last > 0}
        self.interrupted = {
            self._messages[at][0] for at in self._pauses if self._messages[at][0] == self._messages[at - 1][0]
        }
        self.longest = plan.until * (1 + bool(plan.more.start)) + plan.more.grace + sum(self._pauses.values())
        self.done = False
        self._committed: dict[int, int] = {}
        self._unsaid = Counter(number for number, _ in self._messages)  # records that have not come yet
        self._said: set[bytes] = set()
        self._changes = sorted(plan.more.changes, key=lambda change: change.number)
        self._made: set[Change] = set()

    def _odd(self, number: int) -> list[bytes]:
        """Returns what the source says behind a transaction and is no unit of work."""
        found = [odd for odd in self._plan.more.odd if odd.after == number]
        said = self._world.source.number_of(number) if self._plan.style.numbers else None
        own = (None if said is None else said + (odd.kind in NUMBERED) for odd in found)
        return [text for odd, its in zip(found, own, strict=True) for text in odd.messages(its)]

    def start(self) -> None:
        hub = self._world.hub
        hub.spawn(self._process, self._produce)
        for change in self._plan.more.changes:
            if change.at > 0.0 and change.what != "key":
                hub.after(change.at, lambda change=change: self._change(change))  # type: ignore[misc]

    def _produce(self) -> None:
        plan, faults, hub, rng = self._plan, self._world.faults, self._world.hub, self._rng
        kinds = {"unsent", "unanswered", "late", "resent", "again"}
        effects = Effects(faults, self._process, "put", TimeoutError, kinds)
        self._wait_for_readers()
        place = 0
        while place < len(self._messages):
            self._prepare(self._messages[place][0])
            batch = self._messages[place : self._end(place, rng.choice((1, 2, 5, 20)))]
            try:
                effects.call("put_records", lambda batch=batch: self._put(batch))  # type: ignore[misc]
            except TimeoutError:
                continue
            place += len(batch)
            if pause := self._pauses.pop(place, 0.0):
                hub.pause(pause)
            elif hub.now < plan.until:
                place = self._again(place)
            pause = plan.until * rng.random() * 2 * len(batch) / len(self._messages)
            # A transaction's records come within the grace after each other.
            hub.pause(min(pause, plan.uow_timeout / 2, plan.more.grace / 2 or pause))
        self.done = True

    def _wait_for_readers(self) -> None:
        """Waits until the log's beginning is durable: what comes from then on may not be lost, read or not yet.

        Earlier units may be torn. Where nothing is noted, reading itself is the beginning.
        """
        more, world = self._plan.more, self._world
        if more.start or more.changed:
            while not (len(world.hosts.tenures.begun) >= more.streams or world.stream.is_read):
                world.hub.pause(READER_LOOK_S)
            world.hub.pause(more.grace if more.start else 0.0)

    def _end(self, place: int, size: int) -> int:
        """Returns where a batch ends: before a pause, and before a change of the tables."""
        stops = [at for at in self._pauses if at > place]
        if self._changes:
            first = self._changes[0].number
            stops += [at for at, (number, _) in enumerate(self._messages) if at > place and number >= first][:1]
        return min([place + size, *stops])

    def _again(self, place: int) -> int:
        """Returns the place from which the source goes on: now and then an earlier one."""
        if self._rng.random() < 0.05 and self._world.faults.happens(f"source begins again at {place}"):
            return max(0, place - self._rng.randrange(20))
        far = self._rng.random() < self._plan.more.far_copies
        return 0 if far and self._world.faults.happens(f"source begins anew at {place}") else place

    def _put(self, batch: list[tuple[int, bytes]]) -> None:
        faults, stream = self._world.faults, self._world.stream
        keyed: list[tuple[int, bytes]] = []
        for number, message in batch:
            key = int(TOP * faults.chance(faults.named("hash key"))) if self._plan.spread else self._home
            keyed.append((key, self._timed(number, message)))
            if message not in self._said:
                self._said.add(message)
                self._unsaid[number] -= 1
                for extra in plan_of(self._plan, number) if not self._unsaid[number] else ():
                    self._world.hub.after(extra.gap, lambda extra=extra: self._put_extra(extra))  # type: ignore[misc]
        if self._plan.more.aggregated and faults.chance(faults.named("aggregate")) < self._plan.more.aggregated:
            stream.put_together(keyed)
        else:
            for key, message in keyed:
                stream.put(key, message)

    def _put_extra(self, extra: Extra, *, again: bool = False) -> None:
        """Puts one more row of a transaction, and perhaps again later; no fault delays it."""
        committed, now = self._committed[extra.number], self._world.hub.now
        key = int(TOP * self._world.faults.chance("hash key", extra.what, again))
        self._world.stream.put(key, extra.message(str(committed)))
        if extra.own and not again and EPOCH + now - committed / 1e9 <= self._plan.more.grace - MARGIN_S:
            self._world.oracle.allowed.extras.on_time.add(extra.uow)
        if extra.again and not again:
            self._world.hub.after(extra.again, lambda: self._put_extra(extra, again=True))

    def _timed(self, number: int, message: bytes) -> bytes:
        """Returns a message with the commit time of its transaction: the time at which its first message was put."""
        latest = max(self._committed.values(), default=0)
        time = self._committed.setdefault(number, max(latest + 1, int((EPOCH + self._world.hub.now) * 1e9)))
        return message.replace(commit_time(f"T-{number}").encode(), str(time).encode())

    def _prepare(self, number: int) -> None:
        """Makes the changes of the tables that must be there before transaction ``number``."""
        while self._changes and self._changes[0].number <= number:
            change = self._changes.pop(0)
            if change.what == "key":
                # A foreign key is in the target before the first transaction that it may act on: the oracle's tables
                # have it from there on. So the source waits, also for a table that the target gets before it.
                self._world.hub.pause(GATHERED_S)
                while not self._tables_of(change) <= self._made:
                    self._world.hub.pause(TABLE_LOOK_S)
                self._change(change)
                self._world.restart_daemons()
            elif change.at == 0.0:
                self._change(change)

    def _change(self, change: Change) -> None:
        """Makes a change; one of a table that is not there yet when the table is."""
        if self._tables_of(change) <= self._made:
            self._world.make_change(change_script(self._world.source.tables, change))
            self._made.add(change)
        else:
            self._world.hub.after(TABLE_LOOK_S, lambda: self._change(change))

    def _tables_of(self, change: Change) -> set[Change]:
        """Returns the changes that make the tables which a change comes after."""
        return {other for other in self._plan.more.changes if other.what == "table" and other.number < change.number}


def change_script(tables: Tables, change: Change) -> str:
    """Returns what makes a change at the target."""
    return "".join(_script(tables, table, change) for table in tables.values())


def _script(tables: Tables, table: SourceTable, change: Change) -> str:
    number = change.number
    if change.what == "table":
        return ddl(tables, table, number) if table.since == number else ""
    if change.what == "key":
        new = any(r.since == number > table.since for r in table.references)
        return rebuilding(tables, table, number) if new else ""
    column = table.wide == number > table.since and not any(r.since == number for r in table.references)
    return f"ALTER TABLE {table.name} ADD COLUMN w bigint;" if column else ""


class Operator:
    """Resolves failed units, and discards a few in progress."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._corrected = {one for one, correction in world.plan.more.poison if correction is not None}
        self._poison = {one for one, _ in world.plan.more.poison} | world.source.odd.hopeless()
        self._tries: Counter[str] = Counter()
        self._discards: dict[str, int] = {}
        self._in_hand: set[int] = set()  # discarded in progress; the log does not say yet what became of them

    def begin(self) -> None:
        """Gives a unit up now and then, where units are discarded at all, and no correction is to come.

        What is behind a discarded unit may fail, and a correction discards each failed unit that it conflicts with.
        """
        for at, age in self._world.plan.more.stale:
            self._world.hub.after(at, lambda age=age: self._has_asked_for_a_pause(age))  # type: ignore[misc]
        if self._poison and not self._corrected:
            self._world.hub.after(GIVE_UP_LOOK_S, self._look_in_progress)

    def _has_asked_for_a_pause(self, age: float) -> None:
        """Leaves a request of long ago: nobody remembers it, so nobody resumes what it pauses."""
        asked_ms = int((EPOCH + self._world.hub.now - age) * 1000)
        self._world.store.put_request("0", {"action": PAUSE, "by": "an operator", "at": str(asked_ms)})

    def _look_in_progress(self) -> None:
        store = self._world.store
        for unit in load_units(store, "0", low_water_mark(store, "0")).units.values():
            if unit.resolved:
                self._heard_of(unit.uow, unit.status)
            elif unit.status in (UnitStatus.IN_PROGRESS, UnitStatus.BLOCKED):
                self._give_up(unit.uow)
        self._world.hub.after(GIVE_UP_LOOK_S, self._look_in_progress)

    def heal(self) -> None:
        """Lets the target take what it refused; from now on the operator looks at what has failed."""
        database = sqlite3.connect(self._world.path, isolation_level=None)
        for number in self._world.plan.refused:
            if number not in self._poison:
                database.execute(f"DELETE FROM {self._world.source.refusals} WHERE what = ?", (f"T-{number}",))
        database.close()
        if self._world.second is not None:
            self._world.second.heal()
        self._look()

    def _look(self) -> None:
        store = self._world.store
        self._hear()
        asked = {request.get("uow") for _, request in store.read_requests("0")}
        units = load_units(store, "0", low_water_mark(store, "0")).units.values()
        for unit in units:
            if unit.status is not UnitStatus.FAILED or unit.uow in asked:
                continue
            extras, odd = self._world.oracle.allowed.extras, self._world.oracle.allowed.odd
            odd.failed.add(unit.uow)
            if not unit.uow.startswith("T-") and odd.may_fail(unit.uow):
                self._ask("discard", unit.uow)
            elif extras.may_fail(unit.uow):
                extras.retried.add(unit.uow)
                self._ask("retry", unit.uow)
            elif self._world.plan.may_fail:
                self._resolve(unit.uow)
        self._world.hub.after(LOOK_S * (1 + self._world.plan.transactions // 500), self._look)

    def _resolve(self, uow: str) -> None:
        if uow.startswith(MISSING):
            self._ask("discard", uow)
            return
        number = int(uow.partition("-")[2])
        self._tries[uow] += 1
        tries = self._tries[uow]
        if number in self._corrected:
            if self._may_be_touched(uow) or (self._world.oracle.hopeless(number) and tries > 3):
                self._world.oracle.not_replaced(number)
                self._ask("discard", uow)
            elif self._world.faults.chance("retries in vain", uow, tries) < 0.1:
                self._ask("retry", uow)
        elif tries > 2 and (number in self._poison or (self._world.oracle.hopeless(number) and tries > 3)):
            self._world.oracle.allowed.discarded.add(self._world.source.history[number - 1].stands_for)
            self._discards[self._ask("discard", uow)] = self._world.source.history[number - 1].stands_for
        else:
            self._ask("retry", uow)

    def _may_be_touched(self, uow: str) -> bool:
        """Returns whether the log says that the unit's correction waits for it, and does not replace it."""
        store = self._world.store
        units = load_units(store, "0", low_water_mark(store, "0")).units.values()
        return any(MAY_TOUCH in (one.cause or "") and f"discard {uow}," in (one.cause or "") for one in units)

    def _give_up(self, uow: str) -> None:
        """Discards, now and then, a unit that the apply job may just be applying."""
        name, _, number = uow.partition("-")
        if name != "T" or not number.isdigit() or not self._poison or int(number) in self._in_hand:
            return
        tries = self._tries[f"{uow} in progress"] = self._tries[f"{uow} in progress"] + 1
        source = self._world.source.history[int(number) - 1]
        if self._corrected and self._world.oracle.holds_back(int(number)):
            return  # a correction would discard what fails for the lack of it
        chosen = self._world.faults.chance("gives up in progress", uow, tries) < GIVES_UP
        if chosen and source.stands_for == int(number) not in self._corrected:
            self._in_hand.add(int(number))
            self._world.oracle.allowed.discarded.add(int(number))
            self._ask("discard", uow)

    def _heard_of(self, uow: str, status: UnitStatus) -> None:
        """Takes up what the log says became of a unit that was discarded in progress."""
        name, _, number = uow.partition("-")
        if name == "T" and number.isdigit() and int(number) in self._in_hand:
            self._in_hand.remove(int(number))
            if status is UnitStatus.COMMITTED:
                self._world.oracle.allowed.discarded.remove(int(number))
            else:
                self._world.oracle.discarded(int(number))

    def _hear(self) -> None:
        for request, number in list(self._discards.items()):
            answer = self._world.store.take_answer("0", request)
            if answer is not None:
                del self._discards[request]
                if answer["result"] == "ok":
                    self._world.oracle.allowed.gone.add(number)

    def _ask(self, action: str, uow: str) -> str:
        return self._world.store.put_request("0", {"action": action, "uow": uow, "by": "an operator"})
