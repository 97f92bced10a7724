"""Rare courses of events on the leases: what people ask of their holders."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from simulation.disturbances import apart, some_incidents
from simulation.faults import KINDS
from simulation.plan import Incident, Scenario

ASKED = ("move lease", "move lease", "restart child")


def lease_requests(plan: Scenario, rng: Random) -> Scenario:
    """Moves leases and restarts children again and again, while daemons die or stand still, and answers get lost."""
    until, scale = 50.0, rng.choice((0.0, 0.005, 0.02))
    asked = [Incident(rng.uniform(3.0, until), rng.choice(ASKED), rng.randrange(99), 0.0) for _ in range(10)]
    others = some_incidents(rng, until) if rng.random() < 0.7 else []
    plan = apart(plan, rng, rng.choice((2, 3)))
    return replace(
        plan, shards=4, until=until, rates={kind: scale for kind in KINDS if scale and rng.random() < 0.5},
        incidents=tuple(sorted((*asked, *others), key=lambda incident: incident.at)),
    )  # fmt: skip
