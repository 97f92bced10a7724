"""The aims of an extraction: ``kainite extract`` and its program read a source, while everything around them fails."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from simulation.plan import Extraction, Incident, Scenario

_KINDS: Final = ("slow", "unsent", "unanswered", "late", "resent", "again", "kill_before", "kill_after",
                 "freeze_before", "freeze_after")  # fmt: skip
_BEFALLS: Final = ("kill", "freeze", "stop", "kill program", "freeze program", "source restarts", "source cuts",
                   "promoted", "split", "merge")  # fmt: skip
REFUSED: Final = ("promoted behind", "another server", "slot lost", "slot dropped", "slot made anew", "older offset")
"""What befalls a source, or its offset, that nobody may go on with."""


def extractor(plan: Scenario, rng: Random) -> Scenario:
    """Extracts a source; processes, connections, the source and the stream fail, and all must arrive."""
    until = rng.choice((20.0, 30.0))
    scale = rng.choice((0.0, 0.01, 0.03, 0.08))
    rates = {kind: scale * (0.3 if kind.startswith(("kill", "freeze")) else 1.0)
             for kind in _KINDS if scale and rng.random() < 0.5}  # fmt: skip
    if rng.random() < 0.5:
        rates["put_partial"] = rng.choice((0.1, 0.5))
    shards = rng.choice((1, 2, 3))
    incidents = [Incident(rng.uniform(1.0, until), rng.choice(_BEFALLS), rng.choice((0, 1)), rng.uniform(0.5, 30.0))
                 for _ in range(rng.choice((0, 1, 3, 6)))]  # fmt: skip
    throttled = rng.uniform(0.0, until)
    outages = ((throttled, min(throttled + rng.choice((3.0, 15.0)), until), f"shard {rng.randrange(shards)}"),)
    extraction = Extraction(
        most_rows=rng.choice((5, 40, 300, 700)),
        heartbeat=rng.choice((None, 3.0)),
        sender_timeout=rng.choice((15.0, 60.0)),
        pipe_bytes=rng.choice((2_000, 65_536, 1 << 20)),
        hold_bytes=rng.choice((3_000, 1 << 26)),
        ahead_bytes=rng.choice((0, 10_000, 1 << 23)),
        tries=rng.choice((3, 10)),
        by_record=rng.random() < 0.3,
        aggregate=rng.choice((0, 0, 25 * 1024)),
        rival=rng.choice(("", "", "", "the same", "a copy")),
    )
    more = replace(plan.more, chunk_bytes=0, entry_cost=0.0, feed_credit=0, extraction=extraction)
    return replace(plan, until=until, transactions=rng.choice((10, 30, 80)), rates=rates, shards=shards, hosts=2,
                   outages=outages if rng.random() < 0.4 else (), incidents=tuple(incidents), more=more)  # fmt: skip


def refused_source(plan: Scenario, rng: Random) -> Scenario:
    """Extracts as :func:`extractor`; then the source, its slot or the offset is one that must be refused."""
    plan = extractor(plan, rng)
    end = Incident(rng.uniform(0.3, 1.0) * plan.until, rng.choice(REFUSED), 0, 0.0)
    incidents = [one for one in plan.incidents if one.at < end.at or not one.what.startswith(("source", "promoted"))]
    assert plan.more.extraction is not None
    extraction = plan.more.extraction
    if extraction.rival == "a copy":  # one that has stored nothing says no source, and may begin at any
        extraction = replace(extraction, rival="the same")
    return replace(plan, incidents=(*incidents, end), more=replace(plan.more, extraction=extraction))
