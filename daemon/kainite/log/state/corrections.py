"""Tells whether a failed unit may have been replaced by its correction, although no outcome says so yet. Pure.

A correction or reversal (``kind`` of a unit's end) passes the failed units that it conflicts with, and is
applied in their place; its commit discards them. The apply job may die between the commit and the outcome. If the
failed unit were put in progress then, by a person or by a change of the catalogue, the next apply job would apply it
first, since it comes first in the log, over what the correction wrote, and find the correction applied. So a failed
unit stays failed while such a correction behind it is under way:

=====================================  ==============================================================================
the correction                         a retry of the unit that it corrects
=====================================  ==============================================================================
in progress or blocked                 refused: the correction may be applied, now or since its last outcome
failed                                 carried out: a failure is told when no task of it can commit any more
committed                              the unit is discarded with it
discarded                              carried out
not in the log yet                     carried out; the correction waits for the unit, as any unit that conflicts does
=====================================  ==============================================================================

A crash leaves nothing else: the next apply job tries the correction again, finds it applied, and discards the unit.
"""

from __future__ import annotations

from kainite.log.format.entry import UnitStatus
from kainite.log.state.folded import FoldedLog
from kainite.log.state.unit_state import UnitState
from kainite.uow.conflicts import conflict
from kainite.uow.delta import UnitKind


def correction_of(state: FoldedLog, unit: UnitState) -> UnitState | None:
    """Returns a correction behind a failed unit that may have taken its place; None without one."""
    later = (other for other in state.units.values() if other.tid > unit.tid and other.kind is not UnitKind.NORMAL)
    return next((one for one in later if one.status is not UnitStatus.FAILED and conflict(unit, one)), None)
