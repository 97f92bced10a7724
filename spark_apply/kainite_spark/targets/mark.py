"""The mark: how far a target must be at least, by what the log has as committed; and the error of one that went back.

A target that is restored from a backup, or replaced by a standby that lacked the last commits, is at an earlier state
of its own: what it committed after that is gone, all of it, and nothing before. The log has those units as committed,
and nobody applies them again. So whoever is about to advance the target's fence compares first, in the same
transaction:

=========================================  ===========================================================================
the fence in the target is                 then
=========================================  ===========================================================================
of an earlier micro-batch than the mark,   the target has gone back
or missing
the mark's                                 the units that were committed under it must be acknowledged: they are not
                                           trimmed, since trimming advances the fence; else the target has gone back
later                                      nothing is missing: the fence advanced after all of the mark's commits
=========================================  ===========================================================================

The mark of a running apply job is its latest fence that the target has confirmed. The mark over restarts is in the
outcomes partition, with each entry that says units are committed; the latest such entry is never truncated. A crash
between the target's commit and this entry leaves an older mark, and the units unresolved in the log: they are tried
again and found acknowledged, or, if the target went back meanwhile, applied again.

A comparison that refuses changes nothing in the target, so the next one refuses too. ``kainite apply --adopt-target``
advances the fence without a comparison; from then on the new generation is the mark. ``kainite replicate load --anew``
copies everything again, and closes the fence under a generation above the mark's (:mod:`kainite_spark.load.takeover`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kainite.base.errors import TargetWentBackError


@dataclass(frozen=True, slots=True)
class TargetMark:
    """How far the target has come.

    Attributes:
        generation, micro_batch: the fence under which units were committed.
        tids: the units of which the log says that they were committed under this fence.
    """

    generation: int
    micro_batch: int
    tids: tuple[int, ...] = ()


def check_mark(log_partition: str, mark: TargetMark, found: Sequence[int] | None, acknowledged: int) -> None:
    """Checks that the target is not behind the mark.

    Args:
        log_partition: the log's name in the target.
        mark: how far the target must be.
        found: generation and micro-batch of the target's fence; None where it has none of this log.
        acknowledged: how many of the mark's units the target has acknowledged.

    Raises:
        TargetWentBackError: it is behind.
    """
    expected = (mark.generation, mark.micro_batch)
    there = None if found is None else (found[0], found[1])
    if there is not None and (there > expected or (there == expected and acknowledged == len(mark.tids))):
        return
    if there is None:
        state = "it has no mark of this log"
    elif there < expected:
        state = f"its mark is generation {there[0]}, micro-batch {there[1]}"
    else:
        state = f"its mark is the same, and it lacks {len(mark.tids) - acknowledged} of that micro-batch's units"
    latest = f", with unit {max(mark.tids)} as the last one" if mark.tids else ""
    raise TargetWentBackError(
        f"the target has gone back, or is another one: log partition {log_partition!r} has units as committed up to "
        f"generation {mark.generation}, micro-batch {mark.micro_batch}{latest}; of the target, {state}. Nothing was "
        "applied. Give Kainite the target that has these units (the former server, or a later restore with Kainite's "
        "two tables); or copy all tables of a replica again, by kainite replicate load --anew; or put its rows right "
        "and start kainite apply --adopt-target once: it takes the target as it is, and never applies what is missing "
        "(docs/operations.md, A target that went back)"
    )
