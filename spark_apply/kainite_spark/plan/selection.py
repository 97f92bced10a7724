"""The units of a micro-batch, as the backlog has selected them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from kainite.log.state.unit_state import UnitState


@dataclass(frozen=True, slots=True)
class Selection:
    """The units of the next micro-batch, in log order.

    Attributes:
        units: the units.
        serial: whether one job instance applies all units.
        alone: whether each unit gets a target transaction of its own.
        in_order: whether one job instance applies all units, and tries none behind a busy or refused unit.
        chosen_at: the time at which the units were chosen, in seconds by the clock of
            :meth:`~kainite_spark.plan.backlog.Backlog.take`.
    """

    units: tuple[UnitState, ...] = ()
    serial: bool = False
    alone: bool = False
    in_order: bool = False
    chosen_at: float = 0.0
