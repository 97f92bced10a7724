"""Splits a unit's deltas into steps; deltas of one step may share set-based statements. Pure.

Set-based statements change the order of a unit's deltas: each step runs its inserts and upserts, then its updates,
then its deletes (the three *phases*), parents first, for deletes children first. The result is that of the source's
order as long as two deltas that depend on each other keep their order. They depend on each other by the same tokens
as units of work do (:mod:`kainite.uow.touched.deltas`), so that ``5`` and ``"5"``, or two spellings of a key that
ignores case, are one row here too. Of two such deltas the later one

* comes in a later phase of the same step, or in a later step, if both touch one row or one unique value. Two inserts
  may share a statement, as may two deletes: if they meet in one row after all, the target refuses them in any order;
* comes in a later phase or a later step, too, if one deletes or changes a parent and the other touches a child, with
  these exceptions, which the order of phases and of tables serves: a child may be written in the phase in which its
  parent is inserted, and before that by the source's order; two deletes come in any order, but a child's not in an
  earlier step than the parent's if the source deletes the child first.

* comes in a later step, too, if it takes a unique value in a table in which an earlier delete does not tell which
  values it gives up.

Where the source does not number its deltas, their order is derived first
(:mod:`~kainite_spark.targets.statements.derived_order`).

A delete goes to the unit's last step if nothing that depends on it comes later, so that children whose parent is not
known are gone before their parent.

A unique value or a parent that no delta tells (no ``before``) has no token, unless the target would change rows by
itself (an action of a foreign key). Then a wrong order is refused by the target, and the caller falls back to the
source's order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kainite.base.errors import DeltaError, TargetRejectedError
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import DELETE, INSERT, UPDATE, UPSERT, Delta, Operation
from kainite.uow.touched.deltas import TouchedKeys
from kainite.uow.touched.key import PLAIN
from kainite.uow.touched.plan import TablePlan
from kainite_spark.targets.statements.derived_order import PlannedDelta, derived_order

PHASES = {INSERT: 0, UPSERT: 0, UPDATE: 1, DELETE: 2}

_ALIKE = (INSERT, DELETE)
_Place: TypeAlias = int
"""Three times the step's number, plus the phase."""


class Stepper:
    """Splits units into steps; caches for each table how its keys are read.

    Attributes:
        keys: the tokens of the catalogue's tables.
        acts: whether some foreign key makes the target change rows by itself.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self.keys = TouchedKeys(catalogue, PLAIN)
        self._catalogue = catalogue
        self._overlaps = self.keys.overlaps()
        self._plans: dict[str, TablePlan[str]] = {}
        self.acts = any(key.acts for table in catalogue.tables.values() for key in table.foreign_keys)

    def steps(self, deltas: Sequence[Delta]) -> list[list[Delta]]:
        """Splits a unit's deltas, which are in the source's order, into steps.

        Raises:
            TargetRejectedError: a delta's table is unknown, or a key value does not fit its column.
        """
        if len(deltas) < 2:
            return [list(deltas)]
        try:
            deltas = self.in_order(deltas)
            plans = self._plans_of(deltas)
            if _independent(deltas, plans):
                return [list(deltas)]
            touched = [_Touched.of(delta, plan) for delta, plan in zip(deltas, plans, strict=True)]
        except DeltaError as error:
            raise TargetRejectedError(str(error)) from error
        order = _Order(self._overlaps)
        numbers = [order.step(each) for each in touched]
        unknown = [_parent_unknown(delta, plan) for delta, plan in zip(deltas, plans, strict=True)]
        _postpone_deletes(touched, numbers, self._overlaps, unknown)
        steps: list[list[Delta]] = [[] for _ in range(max(numbers) + 1)]
        for delta, number in zip(deltas, numbers, strict=True):
            steps[number].append(delta)
        return [step for step in steps if step]

    def in_order(self, deltas: Sequence[Delta], *, again: bool = False) -> Sequence[Delta]:
        """Returns the deltas in the source's order, as far as it is known.

        Args:
            deltas: a unit's, as they came.
            again: the target has refused the other order of a unit in which foreign keys act. Such a unit is tried in
                its order of arrival first: a row that is made before an action and one that is made behind it differ,
                and no key tells which of them it was.
        """
        if None not in [delta.ordinal for delta in deltas] or all(d.op is INSERT for d in deltas):
            return deltas
        if any(self._plan(delta.table).acts(delta) for delta in deltas) is not again:
            return deltas
        return derived_order([self._planned(delta) for delta in deltas])

    def commute(self, op: Operation, deltas: Sequence[Delta]) -> bool:
        """Returns whether deltas that all are ``op`` may be executed in any order: inserts, or deletes.

        Not those that write an overlap: the target's actions may change one row by two foreign keys.

        Raises:
            TargetRejectedError: as :meth:`steps`.
        """
        if op not in _ALIKE:
            return False
        try:
            touched = (_Touched.of(delta, self._plan(delta.table)) for delta in deltas)
            return all(each.rows.isdisjoint(self._overlaps) for each in touched)
        except DeltaError as error:
            raise TargetRejectedError(str(error)) from error

    def _planned(self, delta: Delta) -> PlannedDelta:
        plan = self._plan(delta.table)
        table = self._catalogue.find(delta.table)
        assert table is not None, "a table with a plan is in the catalogue"
        return PlannedDelta(delta, table.name, plan, frozenset(key.parent for key in table.foreign_keys))

    def cascaded(self, deltas: Sequence[Delta]) -> list[Delta]:
        """Returns the deltas that the target may have made by itself when it is their turn.

        They delete a row that another delete of the unit may take along (ON DELETE CASCADE), or change a key
        that another change of the unit may change. A source lists both. Where parents and children cannot be told
        apart (a table that references itself, tables that do in a cycle), or the parent must come first (a key that
        moves with its parent's), the action is before the delta.

        Raises:
            TargetRejectedError: as :meth:`steps`.
        """
        if len(deltas) < 2 or not self.acts:
            return []
        try:
            plans = self._plans_of(deltas)
            if not any(plan.acts(delta) for delta, plan in zip(deltas, plans, strict=True)):
                return []
            touched = [_Touched.of(delta, plan) for delta, plan in zip(deltas, plans, strict=True)]
        except DeltaError as error:
            raise TargetRejectedError(str(error)) from error
        written = Counter((each.op is DELETE, token) for each in touched for token in each.cascades)
        return [
            delta
            for delta, each, plan in zip(deltas, touched, plans, strict=True)
            if _gives_up_its_key(delta) and _written_by_another(each, _may_act_on(delta, each, plan), written)
        ]

    def _plans_of(self, deltas: Iterable[Delta]) -> list[TablePlan[str]]:
        plans = self._plans
        return [plans.get(delta.table) or self._plan(delta.table) for delta in deltas]

    def _plan(self, name: str) -> TablePlan[str]:
        try:
            plan = self._plans[name] = self.keys.plan(name)
        except DeltaError as error:
            raise TargetRejectedError(f"the target has no table {name}") from error
        return plan


@dataclass(frozen=True, slots=True)
class _Touched:
    """A delta's tokens; see :meth:`TablePlan.add`."""

    op: Operation
    rows: set[str] = field(default_factory=set)
    existence: set[str] = field(default_factory=set)
    cascades: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    gives_up: set[str] = field(default_factory=set)
    takes: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, delta: Delta, plan: TablePlan[str]) -> _Touched:
        touched = cls(delta.op)
        plan.add(delta, touched.rows, touched.existence, touched.cascades, touched.read)
        if plan.unique:
            (touched.gives_up if delta.op is DELETE else touched.takes).update(_unknown_values(delta, plan))
        return touched


def _unknown_values(delta: Delta, plan: TablePlan[str]) -> set[str]:
    """Returns the table if a delete gives up unique values there that it does not tell, or another delta takes some."""
    old = {**delta.before, **delta.key}
    if delta.op is DELETE:
        return {key.table for key in plan.unique if key.token(old) is None and key.unknown(old)}
    new = {**old, **delta.row}
    written = (key for key in plan.unique if not key.columns.isdisjoint(delta.row))
    return {key.table for key in written if key.token(new) is not None}


@dataclass(slots=True)
class _Order:
    """Gives each delta of a unit the first step that the deltas before it leave it.

    Attributes:
        overlaps: tokens that no two deltas may share.
        rows: by token, the last place and operation that touched a row or a unique value.
        born, changed, deleted: by token, the last place that wrote it of an insert or upsert that makes a parent,
            an update or upsert that changes one, a delete.
        given_up: by table, the last place of a delete that gives up unique values which it does not tell.
        read, left: by token, the last place that read it of a delta that is no delete, and of a delete.
    """

    overlaps: frozenset[str]
    rows: dict[str, tuple[_Place, Operation]] = field(default_factory=dict)
    born: dict[str, _Place] = field(default_factory=dict)
    changed: dict[str, _Place] = field(default_factory=dict)
    deleted: dict[str, _Place] = field(default_factory=dict)
    read: dict[str, _Place] = field(default_factory=dict)
    left: dict[str, _Place] = field(default_factory=dict)
    given_up: dict[str, _Place] = field(default_factory=dict)

    def step(self, delta: _Touched) -> int:
        """Returns the step of the next delta in the source's order."""
        step = max(self._by_rows(delta), self._by_parents(delta), self._by_children(delta))
        self._remember(delta, 3 * step + PHASES[delta.op])
        return step

    def _by_rows(self, delta: _Touched) -> int:
        step, op = 0, delta.op
        for token in delta.rows:
            if (last := self.rows.get(token)) is not None:
                place, before = last
                alike = op is before and op in _ALIKE and token not in self.overlaps
                step = max(step, place // 3 if alike else _after(place, op))
        for table in delta.takes:
            if (given := self.given_up.get(table)) is not None:
                step = max(step, _after(given, op))
        return step

    def _by_parents(self, delta: _Touched) -> int:
        """Returns the first step for what the delta reads."""
        step, op = 0, delta.op
        for token in delta.read:
            if (place := self.born.get(token)) is not None:
                step = max(step, place // 3)
            if (place := self.changed.get(token)) is not None:
                step = max(step, _after(place, op))
            if op is not DELETE and (place := self.deleted.get(token)) is not None:
                step = max(step, _after(place, op))
        return step

    def _by_children(self, delta: _Touched) -> int:
        """Returns the first step for what the delta writes as a parent."""
        step, op = 0, delta.op
        tokens = delta.cascades if PHASES[op] == 0 else delta.cascades | delta.existence
        for token in tokens:
            for last in (self.born, self.changed, self.read):
                if (place := last.get(token)) is not None:
                    step = max(step, _after(place, op))
            if (place := self.left.get(token)) is not None:
                step = max(step, place // 3 if op is DELETE else _after(place, op))
            if op is not DELETE and (place := self.deleted.get(token)) is not None:
                step = max(step, _after(place, op))
        return step

    def _remember(self, delta: _Touched, place: _Place) -> None:
        self.rows.update(dict.fromkeys(delta.rows, (place, delta.op)))
        _raise(self.given_up, delta.gives_up, place)
        phase = PHASES[delta.op]
        _raise(self.born if phase == 0 else self.changed if phase == 1 else self.deleted, delta.existence, place)
        _raise(self.deleted if phase == 2 else self.changed, delta.cascades, place)
        _raise(self.left if phase == 2 else self.read, delta.read, place)


def _gives_up_its_key(delta: Delta) -> bool:
    if delta.op is UPDATE:
        return not delta.key.keys().isdisjoint(delta.row)
    return delta.op is DELETE


def _may_act_on(delta: Delta, each: _Touched, plan: TablePlan[str]) -> set[str]:
    """Returns the tokens of the actions that may have made the delta before its turn.

    No other action than CASCADE deletes a row: a row that such an action passes by must be there.
    """
    return plan.takers(delta) if delta.op is DELETE else each.read


def _written_by_another(each: _Touched, tokens: set[str], written: Mapping[tuple[bool, str], int]) -> bool:
    """Returns whether another delta of the same kind, deletes or changes, writes a cascade among these tokens."""
    deletes = each.op is DELETE
    return any(written.get((deletes, token), 0) > (token in each.cascades) for token in tokens)


def _after(place: _Place, op: Operation) -> int:
    """Returns the first step in which ``op`` comes after ``place``."""
    return place // 3 + (PHASES[op] <= place % 3)


def _raise(last: dict[str, _Place], tokens: Iterable[str], place: _Place) -> None:
    for token in tokens:
        last[token] = max(place, last.get(token, 0))


def _independent(deltas: Sequence[Delta], plans: Sequence[TablePlan[str]]) -> bool:
    """Returns whether no two deltas share a row or a unique value, and no delta makes the target change other rows."""
    if len({plan.family for plan in plans}) == len(deltas):
        return not [delta for delta, plan in zip(deltas, plans, strict=True) if plan.acting and plan.acts(delta)]
    seen: set[str] = set()
    given_up: set[str] = set()
    for delta, plan in zip(deltas, plans, strict=True):
        if plan.acting and plan.acts(delta):
            return False
        if plan.unique:
            touched = _unknown_values(delta, plan)
            if delta.op is DELETE:
                given_up |= touched
            elif not given_up.isdisjoint(touched):
                return False
        if (token := plan.lone(delta)) is not None:
            if token in seen:
                return False
            seen.add(token)
            continue
        rows: set[str] = set()
        plan.exclusive(delta, rows)
        if not seen.isdisjoint(rows):
            return False
        seen |= rows
    return True


def _postpone_deletes(
    touched: Sequence[_Touched], numbers: list[int], overlaps: frozenset[str], unknown: Sequence[bool]
) -> None:
    """Moves deletes to the last step, as far as nothing that comes later depends on them.

    A delete that stays may be that of a parent; then deletes of children stay too, and those whose parents are
    ``unknown``.
    """
    free = _free(touched, overlaps)
    deletes = [index for index, delta in enumerate(touched) if delta.op is DELETE]
    staying = any(not free[index] for index in deletes)
    parents = {token for index in deletes for token in touched[index].existence | touched[index].cascades}
    final = max(numbers)
    for index in deletes:
        if free[index] and not (staying and (touched[index].read & parents or unknown[index])):
            numbers[index] = final


def _parent_unknown(delta: Delta, plan: TablePlan[str]) -> bool:
    old = {**delta.before, **delta.key}
    return any(parent.key.token(old) is None and parent.key.unknown(old) for parent in plan.parents)


def _free(touched: Sequence[_Touched], overlaps: frozenset[str]) -> list[bool]:
    """Returns for each delta whether it is a delete and no later delta but deletes depends on it."""
    free = [False] * len(touched)
    rows: set[str] = set()
    written: set[str] = set()
    read: set[str] = set()
    taken: set[str] = set()
    for index in range(len(touched) - 1, -1, -1):
        delta = touched[index]
        if delta.op is DELETE and delta.rows.isdisjoint(overlaps):
            free[index] = (
                rows.isdisjoint(delta.rows)
                and taken.isdisjoint(delta.gives_up)
                and written.isdisjoint(delta.read)
                and all(into.isdisjoint(own) for into in (read, written) for own in (delta.existence, delta.cascades))
            )
        else:
            rows |= delta.rows
            taken |= delta.takes
            written |= delta.existence
            written |= delta.cascades
            read |= delta.read
    return free
