"""Fits a unit's deltas to a target that carries out the actions of foreign keys by itself. Pure.

A source lists the effects of its own actions behind the delete, or the change, that made it act. In the source's order
the target has carried out all of them by then, at once, while the source lists them one foreign key after the other:

* a row whose foreign keys both name the deleted parent, with SET NULL, is listed twice. The first image still has
  the other foreign key's old value. That names no parent any more, so the target would refuse it. Such a column is
  left out where a later update of the row writes it;
* a row that one foreign key sets to NULL, and another one takes along (CASCADE), is listed as updated, then as deleted.
  The target has deleted it already. A row that the unit deletes in the end may be missing before, where an action of
  the unit reaches it, or where its delete does not tell which parents it had.

Nothing else is changed: the row's last delta in the unit still says what is left of the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec.structs import replace

from kainite.uow.delta import Delta, Operation
from kainite.uow.touched.plan import TablePlan
from kainite_spark.targets.statements.self_reference import KeyValue, key_value

PlanOf: TypeAlias = Callable[[str], TablePlan[str]]
_IN_PLACE = (Operation.UPDATE, Operation.DELETE)


@dataclass(frozen=True, slots=True)
class FittedDelta:
    """A delta to execute; ``may_miss`` says that its row need not be there any more."""

    delta: Delta
    may_miss: bool = False


def fitted(deltas: Sequence[Delta], plan_of: PlanOf, reached: Sequence[Delta]) -> Iterator[FittedDelta]:
    """Yields the deltas of a unit, in the source's order, as the target takes them.

    Args:
        deltas: the unit's.
        plan_of: returns the keys of a table.
        reached: those of ``deltas`` that an action of the unit may have carried out by then.

    Raises:
        DeltaError: a table is unknown, or a key value does not fit its column.
    """
    later, gone, acted = _Later.of(deltas, plan_of, reached), _Gone(), False
    for place, delta in enumerate(deltas):
        plan = plan_of(delta.table)
        if acted and delta.op in _IN_PLACE:
            row = {name: value for name, value in delta.row.items() if name not in later.left_out(place, gone)}
            if row or not delta.row:
                yield FittedDelta(replace(delta, row=row), may_miss=later.deleted(place))
        else:
            yield FittedDelta(delta)
        acted = acted or plan.acts(delta)
        _note(delta, plan, gone)


@dataclass(slots=True)
class _Gone:
    """The values that foreign keys name and that no row has any more, by their tokens.

    Opaque values have one token, and are told apart by how they are spelled. Two that are spelled differently may be
    equal: one that a row gets may be any of those that are gone.
    """

    values: dict[str, set[KeyValue]] = field(default_factory=dict)

    def take(self, value: KeyValue) -> None:
        self.values.setdefault(value[0], set()).add(value)

    def give(self, value: KeyValue) -> None:
        self.values.pop(value[0], None)

    def has(self, value: KeyValue | None) -> bool:
        return value is not None and value in self.values.get(value[0], ())


@dataclass(slots=True)
class _Later:
    """What comes behind each delta of a unit for the same row.

    Attributes:
        deltas: of the unit.
        plans: of their tables.
        following: by a delta's place, the place of the row's next delta; None for the last one.
        reached: by identity, those that an action may have carried out.
    """

    deltas: Sequence[Delta]
    plans: list[TablePlan[str]] = field(default_factory=list)
    following: list[int | None] = field(default_factory=list)
    reached: frozenset[int] = frozenset()

    @classmethod
    def of(cls, deltas: Sequence[Delta], plan_of: PlanOf, reached: Sequence[Delta]) -> _Later:
        plans = [plan_of(delta.table) for delta in deltas]
        found = cls(deltas, plans, [None] * len(deltas), frozenset(map(id, reached)))
        last: dict[str, int] = {}
        for place in reversed(range(len(deltas))):
            token = _row(deltas[place], found.plans[place])
            if token is not None:
                found.following[place] = last.get(token)
                last[token] = place
        return found

    def deleted(self, place: int) -> bool:
        """Returns whether this delta, or a later one behind updates alone, deletes a row that may be gone by then."""
        return any(self.deltas[at].op is Operation.DELETE and self._may_be_gone(at) for at in self._in_place(place))

    def _may_be_gone(self, place: int) -> bool:
        delta = self.deltas[place]
        image = {**delta.before, **delta.key}
        taking = (parent.key for parent in self.plans[place].parents if parent.takes_along)
        return id(delta) in self.reached or any(key.token(image) is None and key.unknown(image) for key in taking)

    def left_out(self, place: int, gone: _Gone) -> frozenset[str]:
        """Returns the columns of the delta that name a parent which is gone, and that a later update writes."""
        delta = self.deltas[place]
        if delta.op is not Operation.UPDATE:
            return frozenset()
        image = {**delta.before, **delta.key, **delta.row}
        found = set[str]()
        for parent in self.plans[place].parents:
            columns = parent.key.columns & delta.row.keys()
            if parent.cascade is not None and columns and gone.has(key_value(parent.key, image)):
                behind = (self.deltas[at].row.keys() for at in self._in_place(place) if at != place)
                found |= columns if any(columns <= written for written in behind) else set()
        return frozenset(found)

    def _in_place(self, place: int) -> Iterator[int]:
        """Yields the places of the row's deltas from this one on, up to its delete or to one that makes a row."""
        at: int | None = place
        while at is not None and self.deltas[at].op in _IN_PLACE:
            yield at
            at = None if self.deltas[at].op is Operation.DELETE else self.following[at]


def _row(delta: Delta, plan: TablePlan[str]) -> str | None:
    """Returns the token of the row that a delta changes or makes; None where a table has no key."""
    return plan.rows[0].token({**delta.row, **delta.key}) if plan.rows else None


def _note(delta: Delta, plan: TablePlan[str], gone: _Gone) -> None:
    """Notes which values that foreign keys name a delta takes away, and which ones it gives."""
    old = {**delta.before, **delta.key}
    new = {**old, **delta.row}
    for named in plan.named:
        taken = key_value(named.key, old) if delta.op in _IN_PLACE else None
        given = key_value(named.key, new) if delta.op is not Operation.DELETE else None
        if taken == given:
            continue
        if taken is not None:
            gone.take(taken)
        if given is not None:
            gone.give(given)
