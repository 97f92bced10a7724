"""The meaning of a seed: the history, the settings of all parts, and the faults with their times. Pure.

Each seed leaves whole kinds of faults out and takes others often (swarm testing): a run in which everything happens
at once rarely gets far enough to go wrong in an interesting way.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from simulation.faults import KINDS
from simulation.source import Style


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
        snapshot_entries, max_units, group_units, instances, dedup_window: settings.
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


def scenario(seed: int) -> Scenario:
    """Returns what the seed means."""
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
