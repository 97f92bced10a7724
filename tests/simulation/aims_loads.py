"""The aim of loads: a target that is loaded, and tables of it again, while units are applied and processes die."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from simulation.plan import Incident, Scenario

LATE_TABLE: Final = "journal"
"""The table of which a copy is late; it has no key, so a row that comes twice is there twice."""

_KINDS = ("slow", "unsent", "unanswered", "kill_before", "kill_after", "freeze_before", "freeze_after")
_COMMANDS = (
    ("load", "reload account"),
    ("load", "reload entry", "reload journal"),
    ("load", "anew"),
    ("load", "add journal"),
    ("load", "reload account", "anew"),
    ("load",),
)


def loads(plan: Scenario, rng: Random) -> Scenario:
    """Loads a target, and single tables of it, with an apply job beside; sessions, drivers, keepers and tasks fail."""
    until = rng.choice((20.0, 30.0))
    scale = rng.choice((0.0, 0.002, 0.005, 0.01))
    rates = {kind: scale * (0.5 if kind.startswith(("kill", "freeze")) else 1.0)
             for kind in _KINDS if scale and rng.random() < 0.6}  # fmt: skip
    kinds = [rng.choice(("kill", "freeze", "keeper", "keeper")) for _ in range(rng.choice((0, 1, 3)))]
    incidents = tuple(Incident(rng.uniform(0.0, until), kind, rng.choice((0, 1)), rng.uniform(1.0, 30.0))
                      for kind in kinds)  # fmt: skip
    if rng.random() < 0.25:
        rates["copy_freezes"] = 0.3
    more = replace(plan.more, prefix=True, stop=False, loads=rng.choice(_COMMANDS), feed_credit=0, poison=(), locks=(),
                   most_units=0, chunk_bytes=0, entry_cost=0.0, changes=(), tidy_every=rng.choice((1, 50)))  # fmt: skip
    return replace(plan, until=until, transactions=rng.choice((10, 20, 40)), rates=rates, outages=(), hosts=2,
                   refused=(), incidents=incidents, max_units=rng.choice((1, 5, 100)),
                   group_units=rng.choice((1, 4, 100)), instances=rng.choice((1, 2)), more=more)  # fmt: skip


def left(plan: Scenario, rng: Random) -> Scenario:
    """Loads as :func:`loads`, with one load that is left in the middle, and begun anew while its tasks still live."""
    plan = loads(plan, rng)
    return replace(plan, transactions=40, incidents=(*plan.incidents, Incident(0.0, "leave load", 1, 0.0)))


def late_copy(plan: Scenario, rng: Random) -> Scenario:
    """Loads as :func:`loads`; a copy of a table that is loaded again goes on when another task has done its step."""
    plan = loads(plan, rng)
    more = replace(plan.more, loads=("load", f"reload {LATE_TABLE}"))
    return replace(plan, transactions=40, incidents=(*plan.incidents, Incident(0.0, "late copy", 1, 0.0)), more=more)


def given_up(plan: Scenario, rng: Random) -> Scenario:
    """Loads as :func:`loads`; the first driver of which changes are held is killed, and its table given up at once."""
    plan = loads(plan, rng)
    return replace(plan, incidents=(*plan.incidents, Incident(0.0, "give up", 1, 0.0)))
