"""Safeguards against what children emit and no unit of work may be made of, and how soon the schedules notice."""

from __future__ import annotations

from typing import Any

from simulation.mutation import Mutation, answering, value

ODD = "odd units"


def _skipped(original: Any) -> Any:
    """Drops a delta that is none, and goes on."""

    def add(self: Any, reject: Any) -> None:
        return None

    return add


def _fitting(original: Any) -> Any:
    """Leaves out deltas that do not fit the catalogue, and says nothing."""
    from dataclasses import replace

    return lambda self, name, signing, piece, arrived: replace(
        original(self, name, signing, piece, arrived), misfits=(), rejects=()
    )


def _ends_agree(original: Any) -> Any:
    from dataclasses import replace

    def stand(unit: Any, news: Any) -> Any:
        return original(unit, replace(news, fragment=replace(news.fragment, ends=news.fragment.ends[:1])))

    return stand


AGAINST_ODD_UNITS: tuple[Mutation, ...] = (
    Mutation("a delta that is none fails its unit", "kainite.uow.admission:_Rejects.add", _skipped, 40, aim=ODD),
    Mutation("a unit that fits in part fails", "kainite.uow.admission:_Unit.fragment", _fitting, 40, aim=ODD),
    Mutation("a line of no unit is listed", "kainite.uow.unprocessed:Unprocessed.fragments", answering([]), 60,
             aim=ODD),
    Mutation("ends that disagree", "kainite.log.collecting.standing:stand", _ends_agree, 60, aim=ODD),
    Mutation("a number has a bound", "kainite.uow.delta:MAX_NATURAL", value(10**40), 60, aim=ODD),
    Mutation("the order follows no far number", "kainite.log.collecting.overdue:SKIPPED_FOR_ONE", value(10**20), 60,
             aim=ODD),
    Mutation("one number for one unit", "kainite.log.collecting.standing:wrong_number", answering(None), 60, aim=ODD),
)  # fmt: skip
