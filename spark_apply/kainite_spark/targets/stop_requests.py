"""The contract between the apply job and a target in which a comparison may ask it to stop at a point.

:mod:`kainite.replicate.stop_ledger` has the states, the invariants, and what a crash leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kainite.replicate.stop_ledger import StopState, UnresolvedUnit


@dataclass(frozen=True, slots=True)
class StopRequest:
    """A request as the target has it.

    Attributes:
        number: its number.
        state: its state.
        floor: an LSN of the source before the point, from which on no unit is begun until the point is known; or None.
        position: the point, an LSN of the source; None before it is known.
        generation: the apply job that attends; None for none.
        beat: a counter that moves while the comparison lives.
    """

    number: int
    state: StopState
    floor: int | None
    position: int | None
    generation: int | None
    beat: int


class StopRequests(Protocol):
    """The requests of one log in one target; each call may raise TargetError or TargetUnavailableError."""

    def look(self) -> StopRequest | None:
        """Returns the request that is asked, attended or stopped; None where there is none."""

    def attend(self, number: int, generation: int) -> bool:
        """Attends a request; returns whether it was still asked."""

    def passed(self, number: int, generation: int) -> None:
        """Tells that a unit behind the point was begun already."""

    def stopped(self, number: int, generation: int, micro_batch: int, units: tuple[UnresolvedUnit, ...]) -> bool:
        """Tells that the apply job stands at the point; returns whether the comparison still waits for it.

        Args:
            number: the request's number.
            generation: the apply job's generation.
            micro_batch: the number with which the fence is closed.
            units: the units in front of the point that are not in the target.
        """

    def go_on(self, number: int, generation: int, held_ms: int) -> None:
        """Tells that the apply job goes on, and how many milliseconds it was held."""

    def close(self) -> None:
        """Closes the connection. May be called again."""
