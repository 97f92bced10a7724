"""Disturbances that both seeds and aims put into a plan: of hosts, links, and what a child emits; and none at all."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from simulation import odd
from simulation.odd import Odd
from simulation.plan import LINK_KINDS, OWNER, Incident, Scenario

LONGEST_WAIT_S: Final = 100.0
"""The longest ``uowTimeoutMillis`` after which a run can wait for a unit to fail, seconds."""


def some_odd(rng: Random, plan: Scenario, share: float) -> tuple[Odd, ...]:
    """Returns odd units behind some transactions, or in their place."""
    if rng.random() >= share:
        return ()
    kinds = [kind for kind in odd.KINDS if plan.style.numbers or kind not in odd.IN_ORDER_ALONE]
    if plan.uow_timeout > LONGEST_WAIT_S:
        kinds = [kind for kind in kinds if kind not in odd.AFTER_A_WAIT]
    numbers = rng.sample(range(1, plan.transactions + 1), rng.choice((1, 2, 4)))
    return tuple(Odd(number, rng.choice(kinds)) for number in numbers)


def shared(plan: Scenario, rng: Random) -> Scenario:
    """Returns the scenario with several daemons that share the shards, whose owner changes and whose links fail."""
    daemons = rng.choice((2, 2, 3, 4))
    hosts = rng.choice((2, daemons, daemons))
    scale = rng.choice((0.0, 0.002, 0.01, 0.03))
    rates = plan.rates | {kind: scale for kind in LINK_KINDS if scale and rng.random() < 0.6}
    outages = (*plan.outages, *cut_off(rng, plan.until, hosts), *_without_database(rng, plan.until, hosts))
    incidents = sorted((*plan.incidents, *to_owners(rng, plan.until)), key=lambda incident: incident.at)
    return replace(
        plan, daemons=daemons, hosts=hosts, shards=max(plan.shards, rng.choice((2, 3, 4))), rates=rates,
        outages=outages, incidents=tuple(incidents), more=replace(plan.more, loopback=rng.random() < 0.1),
    )  # fmt: skip


def cut_off(rng: Random, until: float, hosts: int) -> list[tuple[float, float, str]]:
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


def to_owners(rng: Random, until: float) -> list[Incident]:
    chosen = [what for what in ("kill", "freeze", "stop") if rng.random() < 0.3]
    return [Incident(rng.uniform(1.0, until), what, OWNER, rng.choice((3.0, 8.0, 40.0))) for what in chosen]


def some_incidents(rng: Random, until: float) -> list[Incident]:
    kinds = [what for what in ("kill", "freeze", "stop", "skew", "split", "merge") if rng.random() < 0.4]
    found = []
    for what in kinds:
        for _ in range(rng.choice((1, 1, 2, 3))):
            amount = (
                rng.choice((1.0, 6.0, 15.0, 40.0)) if what == "freeze" else rng.choice((-900.0, -20.0, 20.0, 900.0))
            )
            found.append(Incident(rng.uniform(0.5, until), what, rng.randrange(8), amount))
    return sorted(found, key=lambda incident: incident.at)


def calm(plan: Scenario) -> Scenario:
    """Returns the scenario without what its seed lets go wrong."""
    more = replace(plan.more, locks=(), most_units=0, changes=(), poison=(), pauses=(), stop=False, odd=())
    return replace(plan, rates={}, outages=(), incidents=(), refused=(), uow_timeout=600.0, more=more)


def apart(plan: Scenario, rng: Random, daemons: int) -> Scenario:
    """Returns the scenario with daemons on hosts of their own, and with as many shards, all of which have records."""
    return replace(
        plan, daemons=daemons, hosts=daemons + plan.drivers, shards=daemons, one_worker=False, spread=True,
        transactions=30, style=replace(plan.style, ordinals=True, numbers=True),
    )  # fmt: skip
