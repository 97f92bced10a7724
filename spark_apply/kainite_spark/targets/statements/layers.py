"""Topological layers of units: units may share set-based statements when no two of them conflict. Pure.

A unit's layer is one more than the highest layer of the earlier units that it conflicts with
(:mod:`kainite.uow.conflicts`), so applying layer after layer leaves every conflicting pair in log order.
"""

from __future__ import annotations

from collections.abc import Sequence

from kainite.uow.conflicts import LatestConflicts
from kainite_spark.targets.contract import Unit


def conflict_layers(units: Sequence[Unit], most: int | None = None) -> list[list[Unit]]:
    """Returns the layers of units, in time linear in the number of signatures.

    Args:
        units: in log order, which every layer retains.
        most: the number of layers at which to end, whatever units are left; None: no number.

    Returns:
        The layers, to be applied one after the other.
    """
    layers: list[list[Unit]] = []
    conflicts = LatestConflicts()
    for unit in units:
        latest = conflicts.find(unit.written, unit.read)
        layer = 0 if latest is None else latest + 1
        if layer == len(layers):
            layers.append([])
            if len(layers) == most:
                break
        layers[layer].append(unit)
        conflicts.add(layer, unit.written, unit.read)
    return layers
