"""Rare courses of events at the log's owner and its store."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from kainite.owner.expiry import EXPIRES_S
from simulation.disturbances import apart, cut_off, some_incidents, to_owners
from simulation.faults import KINDS
from simulation.plan import LINK_KINDS, OWNER, Incident, Programs, Scenario

SKEWS_S: Final = 3_000.0
"""More than hosts' clocks differ, seconds: a request is too old by each of them."""


def lapse(plan: Scenario, rng: Random) -> Scenario:
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


def late_put(plan: Scenario, rng: Random) -> Scenario:
    """Lets an owner stand still before its put, until another one has mounted, appended and truncated."""
    return replace(
        plan, rates={"put_freezes": 0.05}, until=60.0, daemons=2, hosts=5, one_worker=False, transactions=30,
        snapshot_entries=8,
    )  # fmt: skip


def held_put(plan: Scenario, rng: Random) -> Scenario:
    """Holds an owner's put on its way until others have mounted, appended and truncated; it keeps its shards."""
    outages: list[tuple[float, float, str]] = []
    for host, begin in enumerate((rng.uniform(3.0, 8.0), rng.uniform(35.0, 40.0))):
        end = begin + 24.0
        outages += [(begin, end, f"held log put_batch@host{host}"), (begin, end - 0.5, f"log@host{host}")]
    return replace(
        apart(plan, rng, 2), until=70.0, transactions=45, outages=tuple(outages), snapshot_entries=3, max_units=2_000,
    )  # fmt: skip


def snapshots(plan: Scenario, rng: Random) -> Scenario:
    """Makes snapshots of many parts, and kills daemons."""
    kills = tuple(Incident(rng.uniform(2.0, 40.0), "kill", 0, 0.0) for _ in range(4))
    return replace(
        plan, until=40.0, daemons=1, transactions=30, snapshot_entries=8, incidents=kills, spread=True, shards=3,
        style=replace(plan.style, ordinals=True, numbers=True), more=replace(plan.more, part_bytes=100),
    )  # fmt: skip


def rivals(plan: Scenario, rng: Random) -> Scenario:
    """Starts two daemons under one worker id."""
    return replace(plan, daemons=2, hosts=rng.choice((1, 5)), one_worker=True, more=replace(plan.more, pids=4))


def striped(plan: Scenario, rng: Random) -> Scenario:
    """Spreads the log over several keys, and changes its owner again and again."""
    kills = [Incident(rng.uniform(2.0, plan.until), "kill", rng.randrange(2), 0.0) for _ in range(4)]
    more = replace(plan.more, stripes=3, striped_from=rng.choice((0.0, 10.0)))
    return replace(plan, incidents=tuple(kills), daemons=2, snapshot_entries=8, more=more)


def in_items(plan: Scenario, rng: Random) -> Scenario:
    """Does as :func:`striped`, with the store of DynamoDB; owners stand still before their puts, or are kept off."""
    plan = replace(striped(plan, rng), until=60.0, hosts=5, one_worker=False, transactions=30)
    rates = {"put_freezes": 0.05, "unanswered": 0.02, "late": 0.02, "resent": 0.02} if rng.random() < 0.6 else {}
    more = replace(
        plan.more, chunk_bytes=rng.choice((60, 100, 300)), stripes=rng.choice((1, 2, 3)), feed_credit=rng.choice((0, 1))
    )
    held = held_put(plan, rng) if not rates else plan
    return replace(held, rates=rates, more=more)


def repaired(plan: Scenario, rng: Random) -> Scenario:
    """Repairs rows while units go on, and kills and freezes owners of the log."""
    until = rng.choice((30.0, 50.0))
    incidents = tuple(Incident(rng.uniform(3.0, until), rng.choice(("kill", "kill", "freeze")), OWNER,
                               rng.choice((6.0, 15.0))) for _ in range(rng.choice((1, 2, 4))))  # fmt: skip
    kinds = ("unsent", "unanswered", "late", "resent", "kill_before", "kill_after")
    rates = {kind: 0.003 for kind in kinds if rng.random() < 0.4}
    style = replace(plan.style, ordinals=True, numbers=True, befores=True, cascades_told=True, deletes_told=True,
                    ends=True)  # fmt: skip
    repairs = tuple(sorted(rng.uniform(3.0, until) for _ in range(12)))
    return replace(plan, until=until, transactions=40, daemons=2, hosts=5, spread=True, one_worker=False, style=style,
                   rates=rates, incidents=incidents, more=replace(plan.more, repairs=repairs, grace=0.0))  # fmt: skip


def stale_requests(plan: Scenario, rng: Random) -> Scenario:
    """Leaves requests while no owner is at work, which the next one meets too late; owners are killed over them."""
    times = sorted(rng.uniform(0.0, plan.until) for _ in range(rng.choice((1, 2, 3))))
    kills = [Incident(max(0.0, at + rng.choice((-0.1, rng.uniform(0.0, 3.0)))), "kill", OWNER, 0.0) for at in times]
    stale = tuple((at, EXPIRES_S + rng.uniform(SKEWS_S, 5 * SKEWS_S)) for at in times)
    incidents = sorted((*plan.incidents, *kills), key=lambda one: one.at)
    return replace(plan, incidents=tuple(incidents), more=replace(plan.more, stale=stale))


MANY_NAMES: Final = 10_000
"""More than a long history has: a part that comes late, without its end, must not begin a forgotten unit anew."""


def long_history(plan: Scenario, rng: Random) -> Scenario:
    """Makes a history of many hundreds of units, longer to read back than a lease runs; owners are killed."""
    kills = tuple(Incident(rng.uniform(10.0, 60.0), "kill", OWNER, 0.0) for _ in range(rng.choice((1, 2, 3))))
    more = replace(
        plan.more, entry_cost=rng.choice((0.002, 0.01)), feed_credit=1 << 22, aggregated=1.0, window=MANY_NAMES
    )
    return replace(
        plan, until=60.0, transactions=rng.choice((500, 800, 1_200)), incidents=kills, rates={"unanswered": 0.002},
        snapshot_entries=rng.choice((200, 20_000)), max_units=2_000, group_units=500, more=more, daemons=2, hosts=5,
        one_worker=False,
        style=replace(plan.style, rich=False, befores=True, deletes_told=True, cascades_told=True),
    )  # fmt: skip


def thousands(plan: Scenario, rng: Random) -> Scenario:
    """Makes a history of thousands of units, which costs little each; owners and apply jobs are killed."""
    kills = tuple(
        Incident(at, "kill", rng.choice((OWNER, 0, 1, 2)), 0.0)
        for at in sorted(rng.uniform(10.0, 60.0) for _ in range(rng.choice((0, 2, 4))))
    )
    more = replace(
        plan.more, feed_credit=rng.choice((0, 1 << 22)), aggregated=1.0, prefix=False, tidy_every=rng.choice((1, 50)),
        stripes=rng.choice((1, 3)), window=MANY_NAMES, entry_cost=0.0, chunk_bytes=rng.choice((0, 0, 380_000)),
    )  # fmt: skip
    return replace(
        plan, until=60.0, transactions=rng.choice((2_000, 2_000, 3_000, 5_000)), incidents=kills,
        rates=rng.choice(({}, {"unanswered": 0.002, "late": 0.001, "job_lost": 0.01})),
        snapshot_entries=rng.choice((500, 20_000)), max_units=rng.choice((200, 2_000)), group_units=500, more=more,
        daemons=2, hosts=5, one_worker=False,
        style=replace(plan.style, rich=False, befores=True, deletes_told=True, cascades_told=True),
    )  # fmt: skip


def programs(plan: Scenario, rng: Random) -> Scenario:
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
    incidents = [one for one in some_incidents(rng, until) if one.what not in ("split", "merge")]
    return replace(
        plan, until=until, daemons=rng.choice((1, 2, 2, 3)), drivers=programs.count, hosts=hosts, one_worker=False,
        rates=rates, outages=(*outages, *cut_off(rng, until, hosts)),
        incidents=tuple(sorted((*incidents, *to_owners(rng, until)), key=lambda one: one.at)),
        more=replace(plan.more, programs=programs),
    )  # fmt: skip
