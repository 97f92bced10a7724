"""Waves: units that may share set-based statements, because no two of them conflict.

Two units conflict when one writes what the other writes or reads (DESIGN, *Conflicts*). A unit's
wave is one more than the highest wave of the earlier units that it conflicts with, so applying
wave after wave keeps every conflicting pair in log order.
"""

from __future__ import annotations

from collections.abc import Sequence

from kainite.uow.conflicts import LatestConflicts
from kainite_spark.targets.contract import Unit


def waves(units: Sequence[Unit]) -> list[list[Unit]]:
    """Layer units by their conflicts, in time linear in the number of signatures.

    Args:
        units: in log order.

    Returns:
        The waves, to be applied one after the other; inside a wave the log order is kept.
    """
    layers: list[list[Unit]] = []
    conflicts = LatestConflicts()
    for unit in units:
        latest = conflicts.find(unit.written, unit.read)
        wave = 0 if latest is None else latest + 1
        if wave == len(layers):
            layers.append([])
        layers[wave].append(unit)
        conflicts.add(wave, unit.written, unit.read)
    return layers
