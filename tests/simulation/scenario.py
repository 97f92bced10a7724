"""The meaning of a seed: the history, the settings of all parts, and the faults with their times. Pure.

Each seed leaves whole kinds of faults out and takes others often (swarm testing): a run in which everything happens
at once rarely gets far enough to go wrong in an interesting way.

An *aim* (:data:`AIMS`) turns any seed towards one rare course of events, such as a task that stands still while its
retry commits. Mutations name the aim by which they are found.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from random import Random
from typing import Any, Final

from simulation import odd
from simulation.extras import Extra
from simulation.faults import KINDS
from simulation.odd import Odd, OddUnits
from simulation.schema import Change
from simulation.source import Style

OWNER: Final = -1
"""In the place of a part's number: the process that owns the log then."""

LINK_KINDS: Final = ("link_slow", "link_cut", "link_answer", "connect_lost")
"""Faults of links between processes: :mod:`simulation.network`."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that happens to a part at a moment: ``what`` is kill, freeze, stop, skew, split, merge."""

    at: float
    what: str
    whom: int
    amount: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything that a seed decides, but for the fate of single effects.

    Attributes:
        until: faults end after so many seconds.
        transactions: of the source's history.
        style: how the source tells of them.
        spread: records go to any shard (``uowOrder = dense``); otherwise all have one partition key.
        shards, daemons, drivers: how many at the start.
        hosts: over how many hosts daemons and drivers are spread.
        one_worker: both daemons have one worker id.
        rates: of the faults at effects.
        outages: begin, end and service.
        incidents: what befalls parts.
        uow_timeout: seconds.
        refused: transactions that the target refuses at first, by number.
        healed: seconds after which it takes them, and an operator asks for another try.
        snapshot_entries, max_units, group_units, instances: settings.
        more: what came later; see :class:`More`.
    """

    seed: int
    until: float
    transactions: int
    style: Style
    spread: bool
    shards: int
    daemons: int
    drivers: int
    hosts: int
    one_worker: bool
    rates: dict[str, float]
    outages: tuple[tuple[float, float, str], ...]
    incidents: tuple[Incident, ...]
    uow_timeout: float
    refused: tuple[int, ...]
    healed: float
    snapshot_entries: int
    max_units: int
    group_units: int
    instances: int
    more: More = field(default_factory=lambda: More())

    @property
    def may_fail(self) -> bool:
        """Returns whether units may fail at times, though nothing is wrong with Kainite.

        A source that does not tell all that it changes is a reason, too: what comes too early is refused.
        """
        more = self.more
        told = self.style.befores and self.style.deletes_told and self.style.cascades_told
        disturbed = bool(self.rates or self.outages)
        changes = any(change.what == "key" or change.at > 0.0 or disturbed for change in more.changes)
        hopeless = more.poison or OddUnits(more.odd).hopeless()
        return bool(self.refused or hopeless or more.pauses or more.trims) or changes or not told


@dataclass(frozen=True, slots=True)
class More:
    """Settings and events that seeds have beside the first ones.

    Attributes:
        prefix: ``targetConsistency = prefix``.
        fold: ``applyFold``.
        stop: ``onUowFailure = stop``.
        locks: begin, end and number of a transaction of which somebody has locked a row.
        most_units: the target's limit of units in one transaction; 0 for none.
        changes: of the tables.
        poison: transactions that the target refuses for good, with the number of the correction, or None.
        pauses: of the source in the middle of its history: after which part of it, and seconds.
        far_copies: how often, in a batch of messages, the source begins from the very beginning again.
        part_bytes: size of a snapshot's parts.
        backlog_units: the bound of the backlog; 0 for the default.
        tidy_every: micro-batches after which the apply job trims.
        pids: how many process ids a host has before it gives one again.
        grace: ``uowGraceMillis``, seconds, with ``uowEnd = watermark`` and ``uowOrder = time``; 0 for markers.
        start: where the shards are read from at first: LATEST, or AT_TIMESTAMP; empty for TRIM_HORIZON.
        loopback: daemons listen on their own host's loopback interface, and are not reached from other hosts.
        feed_credit: bytes that the log's owner may send ahead of the apply job; 0: the job follows no feed.
        feed_bytes: ``feed_bytes`` of the apply job's settings.
        feed_queue: bytes that wait for a follower at most.
        emit_bytes: most bytes that children may have emitted in calls.
        window: so many names of dispatched units are remembered.
        extras: what a source without ends says late.
        odd: what is no unit of work, or contradicts others.
        aggregated: the share of records that the source puts as KPL aggregates.
        iterator_life: seconds for which a shard iterator may be used.
        arrival_skew: how far the clocks of shards may be apart, seconds.
        entry_cost: processor time to fold an entry of the log, and to judge a line that a child emits, seconds.
        trims: when what records vanish from the stream that nobody may have read: time, and their age, seconds.
        chunk_bytes: the log's store is that of DynamoDB, with items of so many bytes; 0: a store in memory.
        stripes: over how many keys the log is spread by daemons that start after ``striped_from`` seconds.
        programs: programs on the log, in place of all else; None for daemons and apply jobs.
    """

    prefix: bool = False
    fold: bool = True
    stop: bool = False
    locks: tuple[tuple[float, float, int], ...] = ()
    most_units: int = 0
    changes: tuple[Change, ...] = ()
    poison: tuple[tuple[int, int | None], ...] = ()
    pauses: tuple[tuple[float, float], ...] = ()
    far_copies: float = 0.0
    part_bytes: int = 1 << 20
    backlog_units: int = 0
    tidy_every: int = 50
    pids: int = 1_000_000
    start: str = ""
    loopback: bool = False
    feed_credit: int = 0
    feed_bytes: int = 0
    feed_queue: int = 1 << 22
    grace: float = 0.0
    emit_bytes: int = 256 * 2**20
    window: int = 64
    extras: tuple[Extra, ...] = ()
    odd: tuple[Odd, ...] = ()
    aggregated: float = 0.0
    iterator_life: float = 300.0
    arrival_skew: float = 0.0
    trims: tuple[tuple[float, float], ...] = ()
    entry_cost: float = 0.0
    chunk_bytes: int = 0
    stripes: int = 1
    striped_from: float = 0.0
    programs: Programs | None = None


@dataclass(frozen=True, slots=True)
class Programs:
    """Programs that append transactions to an applications' partition.

    Attributes:
        count: of the programs.
        intents: transactions that each means to append.
        workers: how many it submits at a time.
        validate: all transactions take one lock; otherwise each takes some of ``locks``.
        loose: share of the transactions without any lock.
        shared: all programs have one state.
        batch_bytes: most bytes of a batch.
    """

    count: int
    intents: int
    workers: int
    validate: bool
    locks: int
    loose: float
    shared: bool
    batch_bytes: int


def scenario(seed: int, aim: str = "") -> Scenario:
    """Returns what the seed means; with an aim, in that variant."""
    rng = Random(f"more {seed}")
    plan = _first(seed)
    style = replace(
        plan.style,
        rich=rng.random() < 0.5,
        spelled=rng.random() < 0.3,
        deletes_told=not plan.style.ordinals or rng.random() < 0.8,
    )
    outages = plan.outages
    if rng.random() < 0.15:
        begin = rng.uniform(0.0, plan.until)
        outages = (*outages, (begin, begin + rng.choice((8.0, 30.0)), f"shard {rng.randrange(plan.shards)}"))
    rates = dict(plan.rates)
    if rates and rng.random() < 0.2:
        rates["child_slow"] = 0.03
    more = _more(rng, plan)
    more = replace(more, stop=more.stop and not more.poison)  # nobody would apply what corrects a unit
    more = _with_feed(Random(f"feed {seed}"), more)
    more = replace(more, chunk_bytes=Random(f"items {seed}").choice((0, 0, 0, 100, 500, 380_000)))
    more = _with_stream(Random(f"stream {seed}"), more)
    # A generator of its own, so that all else is as it was before there was folding.
    more = replace(more, fold=Random(f"fold {seed}").random() < 0.7)
    if not aim:
        more = replace(more, start=Random(f"start {seed}").choice(("", "", "LATEST", "AT_TIMESTAMP")))
    if not (more.poison or more.stop) and style.ends:
        more = replace(more, odd=_odd(Random(f"odd {seed}"), plan, 0.15))
    if more.poison or OddUnits(more.odd).hopeless():
        # What is discarded may lack to a key that comes later, and the oracle knows no such conflict.
        more = replace(more, changes=tuple(change for change in more.changes if change.what != "key"))
    plan = replace(plan, style=style, rates=rates, outages=outages, more=more)
    if any(correction is not None for _, correction in more.poison):
        plan = _with_one_failure(plan)
    if aim:
        aimed: Scenario = AIMS[aim](_calm(plan), Random(f"aim {seed}"))
        return aimed
    links = Random(f"links {seed}")
    return _shared(plan, links) if links.random() < 0.5 else plan


def _with_feed(rng: Random, more: More) -> More:
    """Has the apply job follow a feed, in three of four seeds."""
    return replace(
        more,
        feed_credit=rng.choice((0, 1, 600, 1 << 22)),
        feed_bytes=rng.choice((0, 1_000, 1 << 19)),
        feed_queue=rng.choice((800, 4_000, 1 << 22)),
    )


def _odd(rng: Random, plan: Scenario, share: float) -> tuple[Odd, ...]:
    """Returns odd units behind some transactions, or in their place."""
    if rng.random() >= share:
        return ()
    kinds = odd.KINDS if plan.style.numbers else [kind for kind in odd.KINDS if kind != odd.DOUBLED]
    numbers = rng.sample(range(1, plan.transactions + 1), rng.choice((1, 2, 4)))
    return tuple(Odd(number, rng.choice(kinds)) for number in numbers)


def _with_stream(rng: Random, more: More) -> More:
    """Has the source aggregate its records, and iterators expire, in some seeds."""
    return replace(
        more,
        aggregated=rng.choice((0.0, 0.0, 0.5, 1.0)),
        iterator_life=rng.choice((300.0, 300.0, 300.0, 20.0, 1.5)),
        arrival_skew=rng.choice((0.0, 0.0, 0.4)),
        entry_cost=rng.choice((0.0, 0.0, 0.001, 0.03)),
    )


def _with_one_failure(plan: Scenario) -> Scenario:
    """Returns the scenario without other failures, of units that the correction may replace, than the corrected one's.

    A correction discards each failed unit of which it writes a row, and another one would be lost. What the target
    refuses at first may fail, if the correction writes no row of it. With a full backlog the correction would not be
    read.
    """
    style = replace(plan.style, befores=True, deletes_told=True, cascades_told=True)
    return replace(plan, style=style, more=replace(plan.more, changes=(), pauses=(), backlog_units=0))


def _shared(plan: Scenario, rng: Random) -> Scenario:
    """Returns the scenario with several daemons that share the shards, whose owner changes and whose links fail."""
    daemons = rng.choice((2, 2, 3, 4))
    hosts = rng.choice((2, daemons, daemons))
    scale = rng.choice((0.0, 0.002, 0.01, 0.03))
    rates = plan.rates | {kind: scale for kind in LINK_KINDS if scale and rng.random() < 0.6}
    outages = (*plan.outages, *_cut_off(rng, plan.until, hosts), *_without_database(rng, plan.until, hosts))
    incidents = sorted((*plan.incidents, *_to_owners(rng, plan.until)), key=lambda incident: incident.at)
    return replace(
        plan, daemons=daemons, hosts=hosts, shards=max(plan.shards, rng.choice((2, 3, 4))), rates=rates,
        outages=outages, incidents=tuple(incidents), more=replace(plan.more, loopback=rng.random() < 0.1),
    )  # fmt: skip


def _cut_off(rng: Random, until: float, hosts: int) -> list[tuple[float, float, str]]:
    """Returns outages between a host and all others: nothing passes, or nothing in one direction, or all is refused."""
    if rng.random() < 0.5:
        return []
    begin, how, host = rng.uniform(0.0, until), rng.choice((">", "<", "<>", "|")), rng.randrange(hosts)
    end = min(begin + rng.choice((2.0, 8.0, 20.0)), until)
    return [(begin, end, name) for other in range(hosts) if other != host for name in links(host, other, how)]


def links(one: int, other: int, how: str) -> list[str]:
    """Returns the outages between two hosts: see :mod:`simulation.network`."""
    here, there = f"host{one}", f"host{other}"
    if how == "|":
        return ["|".join(sorted((here, there)))]
    return [f"{here}>{there}"] * (">" in how) + [f"{there}>{here}"] * ("<" in how)


def _without_database(rng: Random, until: float, hosts: int) -> list[tuple[float, float, str]]:
    if rng.random() < 0.7:
        return []
    begin, host = rng.uniform(0.0, until), rng.randrange(hosts)
    end = min(begin + rng.choice((8.0, 20.0)), until)
    return [(begin, end, f"{service}@host{host}") for service in ("log", "leases")]


def _to_owners(rng: Random, until: float) -> list[Incident]:
    chosen = [what for what in ("kill", "freeze", "stop") if rng.random() < 0.3]
    return [Incident(rng.uniform(1.0, until), what, OWNER, rng.choice((3.0, 8.0, 40.0))) for what in chosen]


def _more(rng: Random, plan: Scenario) -> More:
    number = plan.transactions
    return More(
        prefix=rng.random() < 0.4,
        stop=rng.random() < 0.1,
        locks=tuple(_locks(rng, plan)) if rng.random() < 0.25 else (),
        most_units=rng.choice((1, 2, 3)) if rng.random() < 0.1 else 0,
        changes=tuple(_changes(rng, plan)) if rng.random() < 0.25 else (),
        poison=tuple(_poison(rng, number)) if rng.random() < 0.15 else (),
        pauses=((rng.random(), rng.choice((30.0, 60.0))),) if rng.random() < 0.1 and plan.uow_timeout < 60.0 else (),
        far_copies=0.02 if rng.random() < 0.15 else 0.0,
        part_bytes=rng.choice((1 << 20, 1_500, 400)),
        backlog_units=rng.choice((0, 0, 0, 3, 8)),
        tidy_every=rng.choice((1, 3, 50)),
        pids=rng.choice((1_000_000, 4)),
        stripes=rng.choice((1, 1, 2, 3)),
        striped_from=rng.choice((0.0, 10.0)),
    )


def _locks(rng: Random, plan: Scenario) -> list[tuple[float, float, int]]:
    begins = [rng.uniform(0.0, plan.until) for _ in range(rng.choice((1, 2)))]
    return [(begin, begin + rng.choice((3.0, 15.0, 40.0)), rng.randrange(1, plan.transactions + 1)) for begin in begins]


def _changes(rng: Random, plan: Scenario) -> list[Change]:
    found = []
    for what in rng.sample(("column", "table", "key"), rng.choice((1, 1, 2))):
        number = rng.randrange(2, plan.transactions + 1)
        found.append(Change(what, number, 0.0 if rng.random() < 0.5 else rng.uniform(0.0, plan.until)))
    return found


def _poison(rng: Random, transactions: int) -> list[tuple[int, int | None]]:
    one = rng.randrange(1, transactions)
    corrected = rng.random() < 0.6
    return [(one, rng.randrange(one + 1, transactions + 1) if corrected else None)]


def _first(seed: int) -> Scenario:
    rng = Random(f"scenario {seed}")
    until = rng.choice((15.0, 25.0, 25.0, 40.0))
    spread = rng.random() < 0.5
    daemons = rng.choice((1, 1, 2))
    transactions = rng.choice((6, 12, 12, 20, 30))
    refused = rng.choice((0, 0, 0, 1, 2))
    return Scenario(
        seed=seed,
        until=until,
        transactions=transactions,
        refused=tuple(rng.randrange(1, transactions + 1) for _ in range(refused)),
        healed=rng.uniform(0.5, 1.2) * until,
        style=Style(
            ordinals=spread or rng.random() < 0.5,
            numbers=spread,
            befores=rng.random() < 0.7,
            cascades_told=rng.random() < 0.6,
        ),
        spread=spread,
        shards=rng.choice((1, 2, 3)),
        daemons=daemons,
        drivers=rng.choice((1, 1, 2)),
        hosts=rng.choice((1, 2, 5)),
        one_worker=daemons > 1 and rng.random() < 0.2,
        rates=_rates(rng),
        outages=tuple(_outages(rng, until)),
        incidents=tuple(_incidents(rng, until)),
        uow_timeout=rng.choice((20.0, 60.0, 600.0)),
        snapshot_entries=rng.choice((8, 20, 60, 20_000)),
        max_units=rng.choice((2, 5, 2_000)),
        group_units=rng.choice((1, 2, 4, 500)),
        instances=rng.choice((1, 2, 3, 6)),
    )


def _rates(rng: Random) -> dict[str, float]:
    if rng.random() < 0.05:
        return {}
    scale = rng.choice((0.003, 0.01, 0.03))
    chosen = [kind for kind in KINDS if rng.random() < 0.5]
    rates = {kind: scale * (0.3 if kind.startswith(("kill", "freeze")) else 1.0) for kind in chosen}
    more = {"child_dies": 0.15, "job_lost": 0.1}
    return rates | {kind: rate for kind, rate in more.items() if rng.random() < 0.4}


def _outages(rng: Random, until: float) -> list[tuple[float, float, str]]:
    found = []
    for service in ("log", "target", "kinesis", "leases"):
        if rng.random() < 0.15:
            begin = rng.uniform(0.0, until)
            found.append((begin, min(begin + rng.choice((2.0, 8.0, 20.0)), until), service))
    return found


def _incidents(rng: Random, until: float) -> list[Incident]:
    kinds = [what for what in ("kill", "freeze", "stop", "skew", "split", "merge") if rng.random() < 0.4]
    found = []
    for what in kinds:
        for _ in range(rng.choice((1, 1, 2, 3))):
            amount = (
                rng.choice((1.0, 6.0, 15.0, 40.0)) if what == "freeze" else rng.choice((-900.0, -20.0, 20.0, 900.0))
            )
            found.append(Incident(rng.uniform(0.5, until), what, rng.randrange(8), amount))
    return sorted(found, key=lambda incident: incident.at)


# Rare courses of events.


def _frozen_task(plan: Scenario, rng: Random) -> Scenario:
    """Lets tasks stand still in the middle of a transaction until long after their retry, and kills apply jobs."""
    kills = [Incident(rng.uniform(2.0, plan.until), "kill", plan.daemons + rng.randrange(2), 0.0) for _ in range(3)]
    rates = {"task_freezes": 0.4, "unanswered": 0.01}
    return replace(
        plan, rates=rates, until=60.0, drivers=1, transactions=12, incidents=tuple(kills), instances=2,
        more=replace(plan.more, tidy_every=rng.choice((1, 3, 50)), prefix=False, stop=False),
    )  # fmt: skip


def _lapse(plan: Scenario, rng: Random) -> Scenario:
    """Lets a shard's lease lapse while an append hangs, and come back to the same daemon, which is killed."""
    outages, incidents = [], []
    begin = rng.uniform(2.0, 8.0)
    for _ in range(3):
        outages += [(begin, begin + 16.0, "log put_batch"), (begin + rng.uniform(0.0, 1.0), begin + 6.0, "leases")]
        incidents.append(Incident(begin + rng.uniform(9.0, 15.9), "kill", 0, 0.0))
        begin += rng.uniform(20.0, 26.0)
    rates = {"kill_after": 0.001}
    return replace(
        plan, rates=rates, outages=tuple(outages), incidents=tuple(incidents), until=80.0, daemons=1,
        transactions=30, spread=plan.spread,
    )  # fmt: skip


def _late_put(plan: Scenario, rng: Random) -> Scenario:
    """Lets an owner stand still before its put, until another one has mounted, appended and truncated."""
    return replace(
        plan, rates={"put_freezes": 0.05}, until=60.0, daemons=2, hosts=5, one_worker=False, transactions=30,
        snapshot_entries=8,
    )  # fmt: skip


def _held_put(plan: Scenario, rng: Random) -> Scenario:
    """Holds an owner's put on its way until others have mounted, appended and truncated; it keeps its shards."""
    outages: list[tuple[float, float, str]] = []
    for host, begin in enumerate((rng.uniform(3.0, 8.0), rng.uniform(35.0, 40.0))):
        end = begin + 24.0
        outages += [(begin, end, f"held log put_batch@host{host}"), (begin, end - 0.5, f"log@host{host}")]
    return replace(
        _apart(plan, rng, 2), until=70.0, transactions=45, outages=tuple(outages), snapshot_entries=3, max_units=2_000,
    )  # fmt: skip


def _bursts(plan: Scenario, rng: Random) -> Scenario:
    """Makes many copies of parts of units: replies of PutRecords get lost."""
    return replace(plan, rates={"unanswered": 0.15, "resent": 0.1, "late": 0.1, "again": 0.1})


def _slow_source(plan: Scenario, rng: Random) -> Scenario:
    """Stops the source in the middle of transactions for longer than a unit's time."""
    pauses = tuple((rng.random(), 70.0) for _ in range(3))
    plan = replace(plan, uow_timeout=20.0, more=replace(plan.more, pauses=pauses, prefix=False, stop=False))
    if rng.random() < 0.5:
        return plan
    # What comes late is in order, and whoever retries units comes last: until then what is behind it has to wait.
    style = replace(plan.style, numbers=False)
    return replace(plan, spread=False, transactions=30, style=style, healed=plan.until + 250.0)


def _unread(plan: Scenario, rng: Random) -> Scenario:
    """Lets nobody read a shard, or a child keep its batch, for longer than a unit's time; or the stream is away."""
    begin, timeout = rng.uniform(1.0, 10.0), 20.0
    away: tuple[tuple[float, float, str], ...] = ((begin, begin + 40.0, f"shard {rng.randrange(3)}"),)
    if rng.random() < 0.5:
        # The source can put again before the shards are read, or its own pauses count as a unit's waiting.
        away = ((begin, begin + 40.0, "kinesis"), (begin, begin + 30.0, "put"))
        if rng.random() < 0.5:
            # It stops before that, in the middle of a transaction whose begin is read, and goes on afterwards.
            away, timeout = ((begin + 2.0, begin + 42.0, "kinesis"), (begin, begin + 47.0, "put")), 30.0
    return replace(
        plan, uow_timeout=timeout, spread=True, shards=3, until=60.0,
        # Of a source that tells all, no unit may fail.
        style=replace(
            plan.style, ordinals=True, numbers=True, befores=True, deletes_told=True, cascades_told=True
        ),
        outages=away, rates={"child_slow": 0.05},
    )  # fmt: skip


def _locked(plan: Scenario, rng: Random) -> Scenario:
    """Locks rows for long, also those of units that wait for other locks."""
    locks = tuple(
        (begin := rng.uniform(0.0, 20.0), begin + rng.choice((10.0, 40.0)), rng.randrange(1, 13)) for _ in range(4)
    )
    return replace(
        plan, until=40.0, transactions=12, max_units=rng.choice((2, 5, 2_000)), instances=2,
        more=replace(plan.more, locks=locks, most_units=rng.choice((0, 1, 2)), prefix=False, stop=False),
    )  # fmt: skip


def _locked_prefix(plan: Scenario, rng: Random) -> Scenario:
    """Does as :func:`_locked`, with ``targetConsistency = prefix``."""
    plan = _locked(plan, rng)
    return replace(plan, more=replace(plan.more, prefix=True))


def _new_key(plan: Scenario, rng: Random) -> Scenario:
    """Adds a foreign key that cascades while units are delayed."""
    number = rng.randrange(5, 12)
    locks = ((0.0, 45.0, number - 1),) if rng.random() < 0.5 else ()
    changes = (Change("key", number, rng.uniform(5.0, 15.0)),)
    return replace(
        plan, until=30.0, transactions=20,
        outages=() if locks else ((0.0, 40.0, "target begin_micro_batch"),),
        instances=3, max_units=2_000 if locks else number - 2,
        style=replace(plan.style, befores=True, cascades_told=False),
        more=replace(plan.more, changes=changes, locks=locks, prefix=False, stop=False),
    )  # fmt: skip


def _new_table(plan: Scenario, rng: Random) -> Scenario:
    """Adds a column and a table to the source first, or to the target first."""
    number = rng.randrange(2, 8)
    late = rng.random() < 0.7
    changes = tuple(Change(what, number, rng.uniform(3.0, 20.0) * late) for what in ("table", "column"))
    begin = rng.uniform(2.0, 12.0)
    outages = ((begin, begin + 8.0, "log put_batch"),) if late and rng.random() < 0.5 else ()
    return replace(
        plan, until=30.0, transactions=20, outages=outages,
        more=replace(plan.more, changes=changes, prefix=False, stop=False),
    )  # fmt: skip


def _snapshots(plan: Scenario, rng: Random) -> Scenario:
    """Makes snapshots of many parts, and kills daemons."""
    kills = tuple(Incident(rng.uniform(2.0, 40.0), "kill", 0, 0.0) for _ in range(4))
    return replace(
        plan, until=40.0, daemons=1, transactions=30, snapshot_entries=8, incidents=kills, spread=True, shards=3,
        style=replace(plan.style, ordinals=True, numbers=True), more=replace(plan.more, part_bytes=100),
    )  # fmt: skip


def _rivals(plan: Scenario, rng: Random) -> Scenario:
    """Starts two daemons under one worker id."""
    return replace(plan, daemons=2, hosts=rng.choice((1, 5)), one_worker=True, more=replace(plan.more, pids=4))


def _watermark(plan: Scenario, rng: Random) -> Scenario:
    """Ends units by watermark: records on any shard; shards are read at different paces, split, merge, or by nobody."""
    scale = rng.choice((0.0, 0.002, 0.01, 0.03))
    rates = {kind: scale for kind in KINDS if scale and rng.random() < 0.4}
    begin = rng.uniform(0.0, 20.0)
    outages = ((begin, begin + rng.choice((8.0, 60.0)), f"shard {rng.randrange(3)}"),) if rng.random() < 0.5 else ()
    chosen = [what for what in ("split", "split", "merge", "kill", "freeze", "skew") if rng.random() < 0.4]
    incidents = tuple(
        Incident(at, what, rng.randrange(9), rng.choice((3.0, 8.0, 40.0)))
        for at, what in sorted((rng.uniform(1.0, 25.0), what) for what in chosen)
    )
    style = replace(
        plan.style, ordinals=True, numbers=False, ends=False, befores=True, deletes_told=True, cascades_told=True
    )
    plan = replace(
        plan, spread=True, shards=3, until=30.0, transactions=20, style=style, rates=rates, outages=outages,
        incidents=incidents, more=replace(plan.more, grace=40.0),
    )  # fmt: skip
    return _shared(plan, rng) if rng.random() < 0.5 else plan


def _late_records(plan: Scenario, rng: Random) -> Scenario:
    """Lets records of units that the watermark ends come within the grace, after it, and again."""
    plan = _watermark(plan, rng)
    gaps = (rng.uniform(1.0, 38.0), rng.uniform(45.0, 150.0))
    extras = tuple(
        Extra(number, rng.random() < 0.3, rng.choice(gaps), rng.choice((0.0, 5.0, 90.0)))
        for number in rng.sample(range(1, plan.transactions + 1), 6)
    )
    return replace(plan, more=replace(plan.more, extras=extras, prefix=True))


def _striped(plan: Scenario, rng: Random) -> Scenario:
    """Spreads the log over several keys, and changes its owner again and again."""
    kills = [Incident(rng.uniform(2.0, plan.until), "kill", rng.randrange(2), 0.0) for _ in range(4)]
    more = replace(plan.more, stripes=3, striped_from=rng.choice((0.0, 10.0)))
    return replace(plan, incidents=tuple(kills), daemons=2, snapshot_entries=8, more=more)


def _in_items(plan: Scenario, rng: Random) -> Scenario:
    """Does as :func:`_striped`, with the store of DynamoDB; owners stand still before their puts, or are kept off."""
    plan = replace(_striped(plan, rng), until=60.0, hosts=5, one_worker=False, transactions=30)
    rates = {"put_freezes": 0.05, "unanswered": 0.02, "late": 0.02, "resent": 0.02} if rng.random() < 0.6 else {}
    more = replace(
        plan.more, chunk_bytes=rng.choice((60, 100, 300)), stripes=rng.choice((1, 2, 3)), feed_credit=rng.choice((0, 1))
    )
    held = _held_put(plan, rng) if not rates else plan
    return replace(held, rates=rates, more=more)


def _aggregates(plan: Scenario, rng: Random) -> Scenario:
    """Puts aggregates; children ask for checkpoints in the middle of them, and die; iterators expire, shards part."""
    chosen = [what for what in ("kill", "kill", "split", "merge", "freeze") if rng.random() < 0.6]
    incidents = sorted((Incident(rng.uniform(1.0, 25.0), what, rng.randrange(4), 8.0) for what in chosen),
                       key=lambda incident: incident.at)  # fmt: skip
    more = replace(plan.more, aggregated=1.0, iterator_life=rng.choice((1.5, 20.0)), arrival_skew=0.4)
    rates = {"child_dies": 0.4, "child_asks": 0.5, "unanswered": 0.01, "slow": 0.02}
    return replace(plan, until=30.0, transactions=30, rates=rates, incidents=tuple(incidents), more=more)


def _retention(plan: Scenario, rng: Random) -> Scenario:
    """Lets records vanish from the stream while nobody reads it; daemons are killed, or their iterators expire."""
    begin = rng.uniform(3.0, 12.0)
    kills = (Incident(begin + rng.uniform(0.0, 20.0), "kill", 0, 0.0),) if rng.random() < 0.6 else ()
    outages = ((begin, begin + 25.0, rng.choice(("kinesis", "shard 0", "log put_batch"))),)
    # No record vanishes for which an iterator stands that may still be used: Kinesis' last minutes.
    more = replace(plan.more, trims=((begin + 22.0, 5.0),), iterator_life=rng.choice((1.5, 5.0)), prefix=False)
    return replace(
        plan, until=40.0, transactions=30, outages=outages, incidents=kills, rates={"child_slow": 0.02}, more=more,
        uow_timeout=60.0,
    )  # fmt: skip


def _long(plan: Scenario, rng: Random) -> Scenario:
    """Makes a history of many hundreds of units, longer to read back than a lease runs; owners are killed."""
    kills = tuple(Incident(rng.uniform(10.0, 60.0), "kill", OWNER, 0.0) for _ in range(rng.choice((1, 2, 3))))
    more = replace(plan.more, entry_cost=rng.choice((0.002, 0.01)), feed_credit=1 << 22, aggregated=1.0)
    return replace(
        plan, until=60.0, transactions=rng.choice((500, 800, 1_200)), incidents=kills, rates={"unanswered": 0.002},
        snapshot_entries=rng.choice((200, 20_000)), max_units=2_000, group_units=500, more=more, daemons=2, hosts=5,
        one_worker=False,
        style=replace(plan.style, rich=False, befores=True, deletes_told=True, cascades_told=True),
    )  # fmt: skip


def _odd_units(plan: Scenario, rng: Random) -> Scenario:
    """Lets children emit what is no unit of work; the source tells all else, and repeats much of it."""
    style = replace(plan.style, befores=True, deletes_told=True, cascades_told=True)
    kills = tuple(Incident(rng.uniform(2.0, 20.0), "kill", rng.randrange(2), 0.0) for _ in range(rng.choice((0, 2))))
    more = replace(plan.more, odd=_odd(rng, plan, 1.0))
    rates = {"unanswered": 0.02, "child_dies": 0.05}
    return replace(plan, style=style, until=25.0, incidents=kills, rates=rates, more=more)


def _calm(plan: Scenario) -> Scenario:
    """Returns the scenario without what its seed lets go wrong."""
    more = replace(plan.more, locks=(), most_units=0, changes=(), poison=(), pauses=(), stop=False, odd=())
    return replace(plan, rates={}, outages=(), incidents=(), refused=(), uow_timeout=600.0, more=more)


def _one_batch(plan: Scenario, rng: Random) -> Scenario:
    """Lets all units come before the first micro-batch, on several job instances; cascades are not told."""
    style = replace(plan.style, rich=True, cascades_told=False, befores=rng.random() < 0.5)
    return replace(
        _calm(plan), until=30.0, transactions=30, outages=((0.0, 29.0, "target begin_micro_batch"),), style=style,
        instances=3, max_units=2_000, group_units=rng.choice((1, 3, 500)), more=replace(plan.more, prefix=False),
    )  # fmt: skip


def _child_leaves(plan: Scenario, rng: Random) -> Scenario:
    """Lets a child leave its parent just before the parent goes, and not tell which: first units of a micro-batch."""
    plan = _one_batch(plan, rng)
    leaves = rng.randrange(4, plan.transactions)
    style = replace(plan.style, befores=False, leaves=leaves)
    return replace(plan, style=style, max_units=leaves - 2, group_units=rng.choice((1, 3)))


def _target_away(plan: Scenario, rng: Random) -> Scenario:
    """Lets the target not answer for long."""
    return replace(
        _calm(plan), spread=False, until=40.0, transactions=30, outages=((0.5, 38.0, "target"),),
        style=replace(plan.style, numbers=False), more=replace(plan.more, backlog_units=3),
    )  # fmt: skip


def _links(plan: Scenario, rng: Random) -> Scenario:
    """Lets several daemons share the shards over bad links, and ends owners again and again."""
    ends = [Incident(rng.uniform(2.0, 40.0), rng.choice(("kill", "freeze")), OWNER, 12.0) for _ in range(4)]
    return replace(
        _apart(plan, rng, 3), until=40.0, rates=dict.fromkeys(LINK_KINDS, 0.02) | {"unanswered": 0.01},
        incidents=tuple(sorted(ends, key=lambda incident: incident.at)),
    )  # fmt: skip


def _apart(plan: Scenario, rng: Random, daemons: int) -> Scenario:
    """Returns the scenario with daemons on hosts of their own, and with as many shards, all of which have records."""
    return replace(
        plan, daemons=daemons, hosts=daemons + plan.drivers, shards=daemons, one_worker=False, spread=True,
        transactions=30, style=replace(plan.style, ordinals=True, numbers=True),
    )  # fmt: skip


def _cut_off_for_good(plan: Scenario, rng: Random) -> Scenario:
    """Cuts a host off from all others for good; its database is there."""
    plan = _apart(plan, rng, rng.choice((2, 3)))
    host, begin, how = rng.randrange(plan.daemons), rng.uniform(0.0, 12.0), rng.choice((">", "<", "<>"))
    cut = [(begin, inf, name) for other in range(plan.hosts) if other != host for name in links(host, other, how)]
    return replace(plan, until=25.0, outages=tuple(cut))


def _refused_for_good(plan: Scenario, rng: Random) -> Scenario:
    """Lets hosts refuse each other's connections for good, although all of them live."""
    plan = _apart(plan, rng, rng.choice((2, 3)))
    begin = rng.uniform(0.0, 12.0)
    pairs = itertools.combinations(range(plan.daemons), 2)
    refused = [(begin, inf, name) for one, other in pairs for name in links(one, other, "|")]
    return replace(plan, until=25.0, outages=tuple(refused))


def _no_database(plan: Scenario, rng: Random) -> Scenario:
    """Takes the database away from one host for good; the others reach both."""
    plan = _apart(plan, rng, 3)
    host, begin = rng.randrange(plan.daemons), rng.uniform(1.0, 12.0)
    away = [(begin, inf, f"{service}@host{host}") for service in ("log", "leases")]
    return replace(plan, until=25.0, outages=tuple(away))


def _slow_reports(plan: Scenario, rng: Random) -> Scenario:
    """Does as :func:`_unread`, with daemons that tell the owner over slow links how far they have read."""
    plan = _unread(plan, rng)
    return replace(
        _apart(plan, rng, 3), rates={"child_slow": 0.05, "link_slow": 0.15}, outages=plan.outages,
    )  # fmt: skip


def _small_budget(plan: Scenario, rng: Random) -> Scenario:
    """Gives the children of many shards little room for what they emit."""
    more = replace(plan.more, emit_bytes=rng.choice((1, 300, 1_000)))
    return replace(
        _apart(plan, rng, 1), shards=4, until=20.0, rates={"child_dies": 0.1, "child_slow": 0.03}, more=more,
    )  # fmt: skip


def _short_memory(plan: Scenario, rng: Random) -> Scenario:
    """Lets a source repeat all its history; names are remembered for a short time, numbers for ever."""
    kills = tuple(Incident(rng.uniform(5.0, 40.0), "kill", 0, 0.0) for _ in range(3))
    more = replace(plan.more, far_copies=0.1, window=rng.choice((1, 4, 8)))
    return replace(
        _apart(plan, rng, 1), until=40.0, snapshot_entries=8, incidents=kills, more=more,
    )  # fmt: skip


def _programs(plan: Scenario, rng: Random) -> Scenario:
    """Runs owners of an applications' partition, and programs that append to it; links and hosts fail."""
    until = rng.choice((10.0, 20.0, 30.0))
    scale = rng.choice((0.0, 0.003, 0.01, 0.03))
    kinds = [kind for kind in (*KINDS, *LINK_KINDS) if scale and rng.random() < 0.5]
    rates = {kind: scale * (0.3 if kind.startswith(("kill", "freeze")) else 1.0) for kind in kinds}
    hosts = rng.choice((1, 2, 4))
    begins = [rng.uniform(0.0, until) for _ in range(rng.choice((0, 1, 2)))]
    outages = [(begin, begin + rng.choice((2.0, 8.0)), rng.choice(("log", "log put_batch"))) for begin in begins]
    programs = Programs(
        count=rng.choice((1, 2, 3)), intents=rng.choice((4, 8, 12)), workers=rng.choice((1, 2, 4)),
        validate=rng.random() < 0.3, locks=rng.choice((1, 2, 5)), loose=rng.choice((0.0, 0.3, 0.8)),
        shared=rng.random() < 0.3, batch_bytes=rng.choice((500, 1_000, 100_000)),
    )  # fmt: skip
    rates |= {"put_freezes": 0.05} if rng.random() < 0.2 else {}
    incidents = [one for one in _incidents(rng, until) if one.what not in ("split", "merge")]
    return replace(
        plan, until=until, daemons=rng.choice((1, 2, 2, 3)), drivers=programs.count, hosts=hosts, one_worker=False,
        rates=rates, outages=(*outages, *_cut_off(rng, until, hosts)),
        incidents=tuple(sorted((*incidents, *_to_owners(rng, until)), key=lambda one: one.at)),
        more=replace(plan.more, programs=programs),
    )  # fmt: skip


def _begins_at_latest(plan: Scenario, rng: Random) -> Scenario:
    """Kills daemons that have begun to read at LATEST, before each shard has had a record."""
    kills = tuple(
        Incident(at, "kill", rng.randrange(3), 3.0) for at in sorted(rng.uniform(2.0, 25.0) for _ in range(4))
    )
    style = replace(plan.style, ordinals=True, numbers=True, ends=True)
    plan = replace(plan, spread=True, shards=4, until=30.0, transactions=12, style=style, incidents=kills)
    plan = replace(plan, more=replace(plan.more, start="LATEST"))
    return _shared(plan, rng) if rng.random() < 0.5 else plan


AIMS: Final[Mapping[str, Callable[[Any, Random], Any]]] = {
    "frozen task": _frozen_task,
    "lease lapses during a put": _lapse,
    "owner frozen before a put": _late_put,
    "owner's put on its way": _held_put,
    "copies": _bursts,
    "source pauses": _slow_source,
    "shard unread": _unread,
    "locked rows": _locked,
    "locked rows, prefix": _locked_prefix,
    "new key": _new_key,
    "new table": _new_table,
    "snapshots in parts": _snapshots,
    "one worker id twice": _rivals,
    "watermark": _watermark,
    "child leaves its parent": _child_leaves,
    "late records": _late_records,
    "target away": _target_away,
    "one micro-batch": _one_batch,
    "bad links": _links,
    "cut off for good": _cut_off_for_good,
    "refused for good": _refused_for_good,
    "no database": _no_database,
    "slow reports": _slow_reports,
    "small budget": _small_budget,
    "short memory": _short_memory,
    "log in stripes": _striped,
    "log in items": _in_items,
    "aggregates": _aggregates,
    "retention": _retention,
    "long": _long,
    "odd units": _odd_units,
    "programs": _programs,
    "begins at latest": _begins_at_latest,
}
