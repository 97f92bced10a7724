"""Safeguards of repairs, which write rows as of a point of the source while units go on."""

from __future__ import annotations

from typing import Any, Final

from simulation.mutation import Mutation, answering, value

REPAIRS: Final = "repairs"
_REPAIRING: Final = "kainite.owner.repairing"


def _unresolved_alone(journal: Any, _: Any) -> Any:
    """Looks at the units in the owner's memory alone."""
    return list(journal.state.units.values())


OF_REPAIRS: tuple[Mutation, ...] = (
    Mutation("a repair never puts an older value over a newer one", f"{_REPAIRING}:_met", answering(None), 5,
             aim=REPAIRS),
    Mutation("a repair meets units that are resolved too", f"{_REPAIRING}:_others", value(_unresolved_alone), 10,
             aim=REPAIRS),
)  # fmt: skip
