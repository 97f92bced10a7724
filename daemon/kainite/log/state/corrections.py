"""Decides which failed units a correction replaces, and which of them may be replaced already. Pure.

A correction or reversal (``kind`` of a unit's end) *replaces* each failed unit before it of which it certainly writes a
row: both have the signature of one row (:data:`kainite.uow.touched.key.ROW`), and were signed by the same rules
(:mod:`kainite.uow.scheme`). It passes these units, and its commit discards them, with any ``onUowFailure``. Any other
conflict says only that the two *may* touch a row: a token that stands for several rows (a cascade, a unique value, a
key that is not exact), a table with a row that is not known, signatures by different rules. Such a failed unit is left
as it is:

======================  =========================================  ================================================
a failed unit before    with ``block`` and ``stop`` the            with ``skip`` the correction
the correction          correction
======================  =========================================  ================================================
that it replaces        passes it; its commit discards the unit    the same
that it may touch       waits for it, as any unit that conflicts;  goes on, as any unit does; the failed unit stays
                        its cause names the failed unit            failed, and the correction's cause names it
none of these           goes on                                    goes on
======================  =========================================  ================================================

Two different rows have one signature of 63 bits by chance: with n rows of failed units and m of corrections, the chance
is n·m / 2⁶³, a ten-millionth for a million rows of each. Then a correction of the one row discards the failed unit of
the other one, and the log shows that (``overtaken by``).

The apply job may die between a correction's commit and the outcome. If the failed unit were put in progress then, by a
person or by a change of the catalogue, the next apply job would apply it first, since it comes first in the log, over
what the correction wrote, and find the correction applied. So a failed unit stays failed while a correction that
replaces it is under way:

=====================================  ==============================================================================
the correction                         a retry of the unit that it replaces
=====================================  ==============================================================================
in progress, blocked or discarding,    refused: the correction may be applied, now or since its last outcome
in any of its targets
failed, in each target that has not    carried out: a failure is told when no task of it can commit any more
resolved it
committed                              the unit is discarded with it
discarded                              carried out
not in the log yet                     carried out; the correction waits for the unit, as any unit that conflicts does
=====================================  ==============================================================================

A unit that a correction only may touch can be retried at any time: with ``block`` the correction has not passed it.

A person may discard the failed unit instead, at any time. What it held back goes on then, in the log's order:

=====================================  ==============================================================================
the correction, when the discard       what the failed unit held back, and the correction
is read
=====================================  ==============================================================================
is not in the log yet, waits, is       in the log's order: the correction replaces nothing, and waits for each unit
blocked or delayed                     before it that it conflicts with
is in a task                           is finished first: a discard is read between micro-batches
may be applied: its task was lost      the correction first, if the target has it, else in the log's order. The fence
                                       of the next micro-batch parts the two cases: no task of an older one commits
=====================================  ==============================================================================

Invariants:

* a correction passes a unit only if it replaces it, and is in no micro-batch before it was looked at again when the
  units that it replaces have changed;
* the log's owner and the apply job decide by this module alone, on units and schemes that both have from the log. So
  the owner refuses a retry wherever the apply job may have passed the unit;
* a unit is discarded by a correction only with or after the correction's own acknowledgement in the target.

=====================================  ==============================================================================
crash                                  leaves
=====================================  ==============================================================================
before the correction commits          the failed unit as it was, and a correction in progress
after it, before the outcomes          the same in the log: the next apply job passes the unit again, finds the
                                       correction applied, and discards the unit
after the outcomes                     both outcomes: they are in one entry
=====================================  ==============================================================================
"""

from __future__ import annotations

from kainite.log.format.entry import UnitStatus
from kainite.log.state.folded import FoldedLog
from kainite.log.state.unit_state import UnitState
from kainite.uow.conflicts import share_a_row
from kainite.uow.delta import UnitKind
from kainite.uow.scheme import Comparisons


def replaces(correction: UnitState, unit: UnitState, schemes: Comparisons) -> bool:
    """Returns whether a unit is a correction that certainly writes a row of an earlier one.

    Args:
        correction: a unit of any kind.
        unit: a unit that has failed, before or behind the other one.
        schemes: has the schemes of both.
    """
    if correction.kind is UnitKind.NORMAL or unit.tid >= correction.tid or None in (unit.scheme, correction.scheme):
        return False
    parted = schemes.parted(unit.scheme, unit.tables, correction.scheme, correction.tables)
    return not parted and share_a_row(unit, correction)


def correction_of(state: FoldedLog, unit: UnitState) -> UnitState | None:
    """Returns a correction behind a failed unit that may have taken its place; None without one."""
    schemes = Comparisons()
    for name, scheme in state.schemes.items():
        schemes.add(name, scheme)
    failed, has_only_failed = UnitStatus.FAILED, state.targets.has_only_failed
    under_way = (one for one in state.units.values() if one.status is not failed or not has_only_failed(one.tid))
    return next((one for one in under_way if replaces(one, unit, schemes)), None)
