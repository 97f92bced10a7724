"""The rows that the target has now, beside the deltas of a unit, for ``kainite uow show --target``."""

from __future__ import annotations

from typing import Final

import orjson

from kainite.targets.present_row import PresentRow

MOST_LOOKED_FOR: Final = 100
"""How many deltas of a unit are looked up."""


def shown(row: PresentRow | None) -> str:
    """Returns a row of the target as a line below its delta."""
    return f"    in the target: {'no such row' if row is None else orjson.dumps(dict(row)).decode()}"
