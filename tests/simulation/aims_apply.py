"""Rare courses of events at the apply job and the target."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from simulation.disturbances import calm, some_incidents
from simulation.plan import Incident, Scenario, SetBack
from simulation.schema import Change


def frozen_task(plan: Scenario, rng: Random) -> Scenario:
    """Lets tasks stand still in the middle of a transaction until long after their retry, and kills apply jobs."""
    kills = [Incident(rng.uniform(2.0, plan.until), "kill", plan.daemons + rng.randrange(2), 0.0) for _ in range(3)]
    rates = {"task_freezes": 0.4, "unanswered": 0.01}
    return replace(
        plan, rates=rates, until=60.0, drivers=1, transactions=12, incidents=tuple(kills), instances=2,
        more=replace(plan.more, tidy_every=rng.choice((1, 3, 50)), prefix=False, stop=False),
    )  # fmt: skip


def locked(plan: Scenario, rng: Random) -> Scenario:
    """Locks rows for long, also those of units that wait for other locks."""
    locks = tuple(
        (begin := rng.uniform(0.0, 20.0), begin + rng.choice((10.0, 40.0)), rng.randrange(1, 13)) for _ in range(4)
    )
    return replace(
        plan, until=40.0, transactions=12, max_units=rng.choice((2, 5, 2_000)), instances=2,
        more=replace(plan.more, locks=locks, most_units=rng.choice((0, 1, 2)), prefix=False, stop=False),
    )  # fmt: skip


def locked_prefix(plan: Scenario, rng: Random) -> Scenario:
    """Does as :func:`locked`, with ``targetConsistency = prefix``."""
    plan = locked(plan, rng)
    return replace(plan, more=replace(plan.more, prefix=True))


def new_key(plan: Scenario, rng: Random) -> Scenario:
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


def new_table(plan: Scenario, rng: Random) -> Scenario:
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


def one_batch(plan: Scenario, rng: Random) -> Scenario:
    """Lets all units come before the first micro-batch, on several job instances; cascades are not told."""
    style = replace(plan.style, rich=True, cascades_told=False, befores=rng.random() < 0.5)
    return replace(
        calm(plan), until=30.0, transactions=30, outages=((0.0, 29.0, "target begin_micro_batch"),), style=style,
        instances=3, max_units=2_000, group_units=rng.choice((1, 3, 500)), more=replace(plan.more, prefix=False),
    )  # fmt: skip


def child_leaves(plan: Scenario, rng: Random) -> Scenario:
    """Lets a child leave its parent just before the parent goes, and not tell which: first units of a micro-batch."""
    plan = one_batch(plan, rng)
    leaves = rng.randrange(4, plan.transactions)
    style = replace(plan.style, befores=False, leaves=leaves)
    return replace(plan, style=style, max_units=leaves - 2, group_units=rng.choice((1, 3)))


def target_set_back(plan: Scenario, rng: Random) -> Scenario:
    """Sets the target back in the middle of the run; a person takes it as it is in the end, or does not."""
    at = rng.uniform(5.0, 35.0)
    more = replace(
        plan.more, set_back=SetBack(at, min(at, rng.choice((0.02, 0.3, 3.0, 15.0, 60.0))), rng.random() < 0.6),
        tidy_every=rng.choice((1, 3, 50)), backlog_units=0,  # a full backlog would stop the collecting
    )  # fmt: skip
    rates = {"unanswered": 0.01, "slow": 0.02, "job_lost": 0.05, "kill_after": 0.003} if rng.random() < 0.6 else {}
    kills = tuple(Incident(rng.uniform(2.0, 38.0), "kill", rng.randrange(3), 0.0) for _ in range(rng.choice((0, 1, 3))))
    return replace(
        plan, until=40.0, transactions=30, rates=rates, drivers=rng.choice((1, 2)), more=more,
        incidents=tuple(sorted(kills, key=lambda incident: incident.at)),
        style=replace(plan.style, befores=True, deletes_told=True, cascades_told=True),
    )  # fmt: skip


def target_away(plan: Scenario, rng: Random) -> Scenario:
    """Lets the target not answer for long."""
    return replace(
        calm(plan), spread=False, until=40.0, transactions=30, outages=((0.5, 38.0, "target"),),
        style=replace(plan.style, numbers=False), more=replace(plan.more, backlog_units=3),
    )  # fmt: skip


def two_targets(plan: Scenario, rng: Random) -> Scenario:
    """Lets most transactions write to a second target; one target is away, or refuses some, and jobs die."""
    until = 30.0
    kinds = ("kill", "kill", "freeze", "stop")
    incidents = tuple(
        Incident(at, rng.choice(kinds), rng.randrange(8), rng.choice((3.0, 15.0)))
        for at in sorted(rng.uniform(1.0, until) for _ in range(rng.choice((0, 2, 5))))
    )
    begin = rng.uniform(0.0, until)
    outages = ((begin, begin + rng.choice((5.0, 25.0)), rng.choice(("target", "second"))),) * (rng.random() < 0.6)
    rates = {"unanswered": 0.01, "slow": 0.02, "job_lost": 0.03, "task_freezes": 0.05, "kill_after": 0.002}
    refused = tuple(rng.sample(range(1, 21), 3)) if rng.random() < 0.4 else ()
    return replace(
        plan, until=until, transactions=20, incidents=incidents, outages=outages, refused=refused, healed=until,
        rates=rates if rng.random() < 0.6 else {}, drivers=rng.choice((1, 2)),
        snapshot_entries=rng.choice((5, 20, 200)),
        more=replace(plan.more, two_targets=True, backlog_units=0, prefix=rng.random() < 0.6,
                     tidy_every=rng.choice((1, 3, 50))),
    )  # fmt: skip


def atomic_commit(plan: Scenario, rng: Random) -> Scenario:
    """Lets two targets commit together; tasks stand still between the steps, and jobs die while they resolve."""
    plan = two_targets(plan, rng)
    rates = {
        "unanswered": 0.02, "slow": 0.02, "job_lost": 0.03, "kill_after": 0.006, "kill_before": 0.006,
        "prepare_freezes": 0.1, "decide_freezes": 0.15, "finish_freezes": 0.15, "resolve_kills": 0.15,
    }  # fmt: skip
    return replace(
        plan, rates=rates if rng.random() < 0.85 else {}, max_units=rng.choice((2, 5, 2_000)),
        more=replace(plan.more, atomic=True, prefix=rng.random() < 0.4, tidy_every=rng.choice((1, 3, 50))),
    )  # fmt: skip


def two_logs(plan: Scenario, rng: Random) -> Scenario:
    """Lets two logs write into one target; parts of either die, and a settings file names the other one's tables."""
    until = 30.0
    rates = {
        "unanswered": 0.01, "late": 0.005, "slow": 0.02, "job_lost": 0.03, "task_freezes": 0.05, "kill_after": 0.002,
        "kill_before": 0.002,
    }  # fmt: skip
    begin = rng.uniform(0.0, until)
    outages = ((begin, begin + rng.choice((5.0, 15.0)), rng.choice(("target", "log"))),) * (rng.random() < 0.3)
    return replace(
        plan, until=until, transactions=12, incidents=tuple(some_incidents(rng, until)), outages=outages,
        refused=tuple(rng.sample(range(1, 13), 2)) if rng.random() < 0.3 else (), healed=until,
        rates=rates if rng.random() < 0.7 else {}, snapshot_entries=rng.choice((8, 20, 200)),
        more=replace(plan.more, two_logs=rng.choice((0.0, 0.0, 4.0, 15.0)), backlog_units=0,
                     tidy_every=rng.choice((1, 3, 50))),
    )  # fmt: skip
