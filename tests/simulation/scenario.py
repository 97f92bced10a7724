"""The meaning of a seed: the plan of its run (:mod:`simulation.plan`). Pure.

Each seed leaves whole kinds of faults out and takes others often (swarm testing): a run in which everything happens
at once rarely gets far enough to go wrong in an interesting way.

An *aim* (:mod:`simulation.aims`) turns any seed towards one rare course of events, such as a task that stands still
while its retry commits. Mutations name the aim by which they are found.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from simulation.aims import AIMS
from simulation.disturbances import calm, shared, some_incidents, some_odd
from simulation.faults import KINDS
from simulation.odd import OddUnits
from simulation.plan import More, Scenario
from simulation.schema import Change
from simulation.source import Style


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
        more = replace(more, odd=some_odd(Random(f"odd {seed}"), plan, 0.15))
    if more.poison or OddUnits(more.odd).hopeless():
        # What is discarded may lack to a key that comes later, and the oracle knows no such conflict.
        more = replace(more, changes=tuple(change for change in more.changes if change.what != "key"))
    plan = replace(plan, style=style, rates=rates, outages=outages, more=more)
    if any(correction is not None for _, correction in more.poison):
        plan = _with_one_failure(plan)
    if aim:
        aimed: Scenario = AIMS[aim](calm(plan), Random(f"aim {seed}"))
        return aimed
    links = Random(f"links {seed}")
    return shared(plan, links) if links.random() < 0.5 else plan


def _with_feed(rng: Random, more: More) -> More:
    """Has the apply job follow a feed, in three of four seeds."""
    return replace(
        more,
        feed_credit=rng.choice((0, 1, 600, 1 << 22)),
        feed_bytes=rng.choice((0, 1_000, 1 << 19)),
        feed_queue=rng.choice((800, 4_000, 1 << 22)),
    )


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
        incidents=tuple(some_incidents(rng, until)),
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
