"""Waves: units that may share set-based statements, because no two of them conflict.

Two units conflict when one writes what the other writes or reads (DESIGN, *Conflicts*). A unit's
wave is one more than the highest wave of the earlier units that it conflicts with, so applying
wave after wave keeps every conflicting pair in log order.
"""

from __future__ import annotations

from collections.abc import Sequence

from kainite_spark.targets.contract import Unit


def waves(units: Sequence[Unit]) -> list[list[Unit]]:
    """Layer units by their conflicts, in time linear in the number of signatures.

    Args:
        units: in log order.

    Returns:
        The waves, to be applied one after the other; inside a wave the log order is kept.
    """
    layers: list[list[Unit]] = []
    after_write: dict[int, int] = {}
    after_read: dict[int, int] = {}
    for unit in units:
        wave = _first_free(unit, after_write, after_read)
        if wave == len(layers):
            layers.append([])
        layers[wave].append(unit)
        for signature in unit.written:
            after_write[signature] = wave + 1
        for signature in unit.read:
            after_read[signature] = max(after_read.get(signature, 0), wave + 1)
    return layers


def _first_free(unit: Unit, after_write: dict[int, int], after_read: dict[int, int]) -> int:
    """The first wave after everything that ``unit`` conflicts with."""
    wave = 0
    for signature in unit.written:
        wave = max(wave, after_write.get(signature, 0), after_read.get(signature, 0))
    for signature in unit.read:
        wave = max(wave, after_write.get(signature, 0))
    return wave
