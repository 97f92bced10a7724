"""Rare courses of events at the source, the stream and the child."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from simulation.disturbances import apart, shared, some_odd
from simulation.extras import Extra
from simulation.faults import KINDS
from simulation.plan import OWNER, Incident, Scenario


def bursts(plan: Scenario, rng: Random) -> Scenario:
    """Makes many copies of parts of units: replies of PutRecords get lost."""
    return replace(plan, rates={"unanswered": 0.15, "resent": 0.1, "late": 0.1, "again": 0.1})


def slow_source(plan: Scenario, rng: Random) -> Scenario:
    """Stops the source in the middle of transactions for longer than a unit's time."""
    pauses = tuple((rng.random(), 70.0) for _ in range(3))
    plan = replace(plan, uow_timeout=20.0, more=replace(plan.more, pauses=pauses, prefix=False, stop=False))
    if rng.random() < 0.5:
        return plan
    # What comes late is in order, and whoever retries units comes last: until then what is behind it has to wait.
    style = replace(plan.style, numbers=False)
    return replace(plan, spread=False, transactions=30, style=style, healed=plan.until + 250.0)


def unread(plan: Scenario, rng: Random) -> Scenario:
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


def watermark(plan: Scenario, rng: Random) -> Scenario:
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
    return shared(plan, rng) if rng.random() < 0.5 else plan


def late_records(plan: Scenario, rng: Random) -> Scenario:
    """Lets records of units that the watermark ends come within the grace, after it, and again."""
    plan = watermark(plan, rng)
    gaps = (rng.uniform(1.0, 38.0), rng.uniform(45.0, 150.0))
    extras = tuple(
        Extra(number, rng.random() < 0.3, rng.choice(gaps), rng.choice((0.0, 5.0, 90.0)))
        for number in rng.sample(range(1, plan.transactions + 1), 6)
    )
    return replace(plan, more=replace(plan.more, extras=extras, prefix=True))


def aggregates(plan: Scenario, rng: Random) -> Scenario:
    """Puts aggregates; children ask for checkpoints in the middle of them, and die; iterators expire, shards part."""
    chosen = [what for what in ("kill", "kill", "split", "merge", "freeze") if rng.random() < 0.6]
    incidents = sorted((Incident(rng.uniform(1.0, 25.0), what, rng.randrange(4), 8.0) for what in chosen),
                       key=lambda incident: incident.at)  # fmt: skip
    more = replace(plan.more, aggregated=1.0, iterator_life=rng.choice((1.5, 20.0)), arrival_skew=0.4)
    rates = {"child_dies": 0.4, "child_asks": 0.5, "unanswered": 0.01, "slow": 0.02}
    return replace(plan, until=30.0, transactions=30, rates=rates, incidents=tuple(incidents), more=more)


def retention(plan: Scenario, rng: Random) -> Scenario:
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


def odd_units(plan: Scenario, rng: Random) -> Scenario:
    """Lets children emit what is no unit of work; the source tells all else, and repeats much of it."""
    style = replace(plan.style, befores=True, deletes_told=True, cascades_told=True)
    kills = tuple(Incident(rng.uniform(2.0, 20.0), "kill", rng.randrange(2), 0.0) for _ in range(rng.choice((0, 2))))
    plan = replace(plan, uow_timeout=60.0)
    more = replace(plan.more, odd=some_odd(rng, plan, 1.0))
    rates = {"unanswered": 0.02, "child_dies": 0.05}
    return replace(plan, style=style, until=25.0, incidents=kills, rates=rates, more=more)


def short_memory(plan: Scenario, rng: Random) -> Scenario:
    """Lets a source repeat all its history; names are remembered for a short time, numbers for ever."""
    kills = tuple(Incident(rng.uniform(5.0, 40.0), "kill", 0, 0.0) for _ in range(3))
    more = replace(plan.more, far_copies=0.1, window=rng.choice((1, 4, 8)))
    return replace(
        apart(plan, rng, 1), until=40.0, snapshot_entries=8, incidents=kills, more=more,
    )  # fmt: skip


def two_streams(plan: Scenario, rng: Random) -> Scenario:
    """Puts units through two streams with equal shard ids: ended by watermark, or by marks; resharded, killed."""
    if rng.random() < 0.6:
        plan = watermark(plan, rng)
        return replace(plan, shards=2, more=replace(plan.more, streams=2))
    begin = rng.uniform(0.0, 15.0)
    outages = ((begin, begin + 20.0, f"shard 0 of stream {rng.randrange(1, 3)}"),)
    chosen = ("kill", "kill", "kill", "split", "merge", "freeze")
    incidents = tuple(
        Incident(at, rng.choice(chosen), rng.randrange(4), 8.0)
        for at in sorted(rng.uniform(1.0, 25.0) for _ in range(5))
    )
    style = replace(plan.style, ordinals=True, numbers=True, ends=True)  # any shard: nothing else orders a unit
    plan = replace(
        plan, spread=True, style=style, shards=rng.choice((1, 2)), until=30.0, transactions=20, outages=outages,
        incidents=incidents, rates={"unanswered": 0.01, "slow": 0.02, "late": 0.02}, more=replace(plan.more, streams=2),
    )  # fmt: skip
    return shared(plan, rng) if rng.random() < 0.5 else plan


def plain_stream(plan: Scenario, rng: Random) -> Scenario:
    """Ends units by watermark while children of a stream without units of work hang for good."""
    plan = watermark(plan, rng)
    return replace(plan, shards=rng.choice((1, 2)), more=replace(plan.more, plain=1))


def added_stream(plan: Scenario, rng: Random) -> Scenario:
    """Adds a stream while some files do not name it yet: its leases are not made for long, and daemons are killed."""
    plan = watermark(plan, rng)
    at, late = rng.uniform(4.0, 10.0), rng.uniform(60.0, 140.0)
    first = rng.randrange(2)
    changed = tuple(at if slot == first else late for slot in range(3))
    kills = tuple(
        Incident(time, "kill", rng.choice((OWNER, 0, 1, 2)), 3.0)
        for time in sorted(rng.uniform(at + 2.0, 30.0) for _ in range(3))
    )
    outages = ((at, rng.uniform(40.0, 120.0), "leases put"),)
    more = replace(plan.more, streams=2, changed=changed)
    plan = replace(plan, shards=rng.choice((1, 2)), daemons=3, outages=outages, incidents=kills, more=more)
    return _nobody_knows(plan, first) if rng.random() < 0.5 else plan


def _nobody_knows(plan: Scenario, first: int) -> Scenario:
    """Freezes the one daemon that knows an added stream, for longer than units wait; the log has other owners then."""
    begin, seconds = 45.0, 80.0
    changed = tuple(at if slot == first else begin + seconds for slot, at in enumerate(plan.more.changed))
    incidents = (Incident(begin, "freeze", first, seconds), Incident(begin + 20.0, "kill", OWNER, 0.0))
    return replace(
        plan, until=begin + seconds, incidents=(*plan.incidents, *incidents), more=replace(plan.more, changed=changed)
    )


def begins_at_latest(plan: Scenario, rng: Random) -> Scenario:
    """Kills daemons that have begun to read at LATEST, before each shard has had a record."""
    kills = tuple(
        Incident(at, "kill", rng.randrange(3), 3.0) for at in sorted(rng.uniform(2.0, 25.0) for _ in range(4))
    )
    style = replace(plan.style, ordinals=True, numbers=True, ends=True)
    plan = replace(plan, spread=True, shards=4, until=30.0, transactions=12, style=style, incidents=kills)
    plan = replace(plan, more=replace(plan.more, start="LATEST"))
    return shared(plan, rng) if rng.random() < 0.5 else plan


def first_leases(plan: Scenario, rng: Random) -> Scenario:
    """Kills daemons while they create the first leases; shards split and merge before the others are created."""
    begin = rng.uniform(0.2, 0.6)
    end = begin + rng.choice((6.0, 15.0))
    plan = begins_at_latest(plan, rng)
    kills = [Incident(begin + 0.02 * slot, "kill", slot, 1.0) for slot in range(plan.daemons)]
    parts = [
        Incident(rng.uniform(begin + 1.0, end), rng.choice(("split", "split", "merge")), rng.randrange(9), 0.0)
        for _ in range(3)
    ]
    incidents = sorted((*kills, *parts, *plan.incidents[:1]), key=lambda incident: incident.at)
    more = replace(plan.more, start=rng.choice(("LATEST", "LATEST", "AT_TIMESTAMP")))
    outages = (*plan.outages, (begin, end, "kinesis list_shards"))
    return replace(plan, incidents=tuple(incidents), outages=outages, more=more)
