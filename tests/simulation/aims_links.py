"""Rare courses of events on the links between daemons, and between them and their database."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import inf
from random import Random

from simulation.aims_stream import unread
from simulation.disturbances import apart, links
from simulation.plan import LINK_KINDS, OWNER, Incident, Scenario


def bad_links(plan: Scenario, rng: Random) -> Scenario:
    """Lets several daemons share the shards over bad links, and ends owners again and again."""
    ends = [Incident(rng.uniform(2.0, 40.0), rng.choice(("kill", "freeze")), OWNER, 12.0) for _ in range(4)]
    return replace(
        apart(plan, rng, 3), until=40.0, rates=dict.fromkeys(LINK_KINDS, 0.02) | {"unanswered": 0.01},
        incidents=tuple(sorted(ends, key=lambda incident: incident.at)),
    )  # fmt: skip


def cut_off_for_good(plan: Scenario, rng: Random) -> Scenario:
    """Cuts a host off from all others for good; its database is there."""
    plan = apart(plan, rng, rng.choice((2, 3)))
    host, begin, how = rng.randrange(plan.daemons), rng.uniform(0.0, 12.0), rng.choice((">", "<", "<>"))
    cut = [(begin, inf, name) for other in range(plan.hosts) if other != host for name in links(host, other, how)]
    return replace(plan, until=25.0, outages=tuple(cut))


def refused_for_good(plan: Scenario, rng: Random) -> Scenario:
    """Lets hosts refuse each other's connections for good, although all of them live."""
    plan = apart(plan, rng, rng.choice((2, 3)))
    begin = rng.uniform(0.0, 12.0)
    pairs = itertools.combinations(range(plan.daemons), 2)
    refused = [(begin, inf, name) for one, other in pairs for name in links(one, other, "|")]
    return replace(plan, until=25.0, outages=tuple(refused))


def no_database(plan: Scenario, rng: Random) -> Scenario:
    """Takes the database away from one host for good; the others reach both."""
    plan = apart(plan, rng, 3)
    host, begin = rng.randrange(plan.daemons), rng.uniform(1.0, 12.0)
    away = [(begin, inf, f"{service}@host{host}") for service in ("log", "leases")]
    return replace(plan, until=25.0, outages=tuple(away))


def slow_reports(plan: Scenario, rng: Random) -> Scenario:
    """Does as :func:`unread`, with daemons that tell the owner over slow links how far they have read."""
    plan = unread(plan, rng)
    return replace(
        apart(plan, rng, 3), rates={"child_slow": 0.05, "link_slow": 0.15}, outages=plan.outages,
    )  # fmt: skip


def small_budget(plan: Scenario, rng: Random) -> Scenario:
    """Gives the children of many shards little room for what they emit."""
    more = replace(plan.more, emit_bytes=rng.choice((1, 300, 1_000)))
    return replace(
        apart(plan, rng, 1), shards=4, until=20.0, rates={"child_dies": 0.1, "child_slow": 0.03}, more=more,
    )  # fmt: skip
