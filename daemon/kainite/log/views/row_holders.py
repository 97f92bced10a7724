"""The unresolved units that touch one row of the target: the unit that holds it, and the units that wait behind.

Answers from the folded log by signatures (:mod:`kainite.uow.signature`), so no deltas are read. Two rows with equal
signatures, one pair in 2⁶⁴, would be taken for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kainite.base.errors import DeltaError, LogRequestError
from kainite.log.state.chains import named
from kainite.log.state.folded import FoldedLog
from kainite.log.state.unit_state import UnitState
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import Delta, Json, Operation
from kainite.uow.exact_json import loads
from kainite.uow.signature import Signatures
from kainite.uow.touched.deltas import TouchedKeys
from kainite.uow.touched.key import HASHED


@dataclass(frozen=True, slots=True)
class Toucher:
    """A unit that touches the row.

    Attributes:
        id: the unit's transaction id.
        uow: the unit's name.
        status: the unit's status in the log.
        instance: the job instance that tried it last; None before that.
        waits_for: the unit that holds the row; None for that unit itself.
        cause: why it failed, or what it waits for.
    """

    id: int
    uow: str
    status: str
    instance: int | None
    waits_for: int | None
    cause: str | None


def touchers(state: FoldedLog, catalogue: Catalogue | None, table: str, key: Mapping[str, str]) -> list[Toucher]:
    """Returns the unresolved units that write a row, in log order: the first one holds the row.

    Args:
        state: the folded log.
        catalogue: the target's tables; None where none is set.
        table: the row's table.
        key: the row's primary key, with values as text.

    Raises:
        LogRequestError: the catalogue has no such table, or the table has another primary key.
    """
    row = _row_signatures(catalogue, table, key)
    units = [unit for unit in state.units.values() if not row.isdisjoint(unit.written) or table in unit.unsigned]
    units.sort(key=lambda unit: unit.tid)
    return [_toucher(unit, units[0] if index else None, state) for index, unit in enumerate(units)]


def _toucher(unit: UnitState, holder: UnitState | None, state: FoldedLog) -> Toucher:
    waits_for = holder.tid if holder else None
    cause = named(unit.cause, state.units)
    return Toucher(unit.tid, unit.uow, unit.status.value, unit.instance, waits_for, cause)


def _row_signatures(catalogue: Catalogue | None, table: str, key: Mapping[str, str]) -> set[int]:
    """Returns the signatures that every delta of the row writes.

    A value is read as JSON (a number, true), or as text if the JSON value does not fit its column.
    """
    problem = f"the key is not that of {table}"
    for values in (_as_json(key), {**key}):
        try:
            if found := _signed(catalogue, Delta(table, Operation.UPDATE, values, {}, {})):
                return found
        except DeltaError as error:
            problem = str(error)
    raise LogRequestError(f"{problem}: name the table as the catalogue does, and each column of its primary key")


def _signed(catalogue: Catalogue | None, delta: Delta) -> set[int]:
    written: set[int] = set()
    if catalogue is None:
        Signatures(None).add(delta, written, set())
    else:
        TouchedKeys(catalogue, HASHED).plan(delta.table).add(delta, written, set(), set(), set())
    return written


def _as_json(key: Mapping[str, str]) -> dict[str, Json]:
    return {name: _scalar(text) for name, text in key.items()}


def _scalar(text: str) -> Json:
    try:
        value = loads(text.encode("utf-8", "replace"))
    except ValueError:
        return text
    return text if isinstance(value, dict | list) else value
