"""Folds the changes of one row that stand in one transaction into their net effect. Pure.

Nobody sees the inside of a target transaction, and deltas carry absolute values, so of several updates of a row the
last value of each column is all that is left. :class:`NetEffect` takes a row's insert, upsert or update (the *head*)
and the updates, and upserts of the same columns, that come behind it, and makes one change of them. The one change
stands where the head stood, in the head's unit. The units of the other changes keep their places in the log's order.

The target judges fewer changes than it would judge unfolded. Units that the target would refuse unfolded must not pass
when they are folded. So a later change is folded only if

* it is surely of the same row: table and key are spelled alike. Deltas whose keys may be equal (one token) and are not
  spelled alike end what can be folded, as a delete and a change of the key do;
* the target makes no other change in between that may touch the row: a delta that makes a foreign key act ends what
  can be folded in all tables, and so does one that may fire a trigger
  (:mod:`~kainite_spark.targets.statements.hooked_runs`);
* each value that is dropped would surely have been taken: it is the one that stays, or its column takes it by its type
  (:mod:`~kainite_spark.targets.statements.accepted_values`) and neither a key, a foreign key nor a CHECK names it;
* it brings no column that these name and that the head does not write, nor, behind an insert or upsert, one that must
  not be null: without it, the head might be refused;
* the table is one of which the catalogue tells all this, without expressions and partitions
  (:attr:`~kainite.uow.catalogue.tables.Table.judged`).

The row counts of the folded changes are not checked any more. Each of them is right whenever the head's is: the head
has met its row or made it, and everything that could have taken the row away in between ends the fold.

Nothing else is folded. An insert and a delete of its row stay two changes: the insert tells whether key and parents are
as the source had them. A delete and an insert stay two changes: columns that the insert leaves out get their defaults.
An update and a delete stay two changes, and cost no statements of a further layer.

A unit that has lost a change also loses what it wrote by that change, as far as nothing else in the unit writes it;
else all units on a hot row would still conflict (:meth:`_Signing.without`). The head writes the same as before: what is
folded into it changes no key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, TypeAlias

from kainite.base.errors import DeltaError, TargetRejectedError
from kainite.uow.catalogue.tables import Catalogue, Column, Table
from kainite.uow.delta import DELETE, INSERT, UPDATE, UPSERT, Delta, Json, Row
from kainite.uow.signature import Signatures
from kainite.uow.touched.deltas import TouchedKeys
from kainite.uow.touched.key import ColumnKey
from kainite.uow.touched.plan import TablePlan
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.statements.accepted_values import Accepts, accepting

_SCALARS: Final = frozenset({str, int, float, bool, type(None)})

_ROWS: Final = 8_192
"""Rows whose signatures are remembered; then all are forgotten."""


class NetEffect:
    """Folds groups of units.

    Args:
        catalogue: the target's tables.
        keys: their tokens.
        accepting: returns what tells whether a column surely takes a value.
    """

    def __init__(
        self, catalogue: Catalogue, keys: TouchedKeys[str], accepting: Callable[[Column], Accepts] = accepting
    ) -> None:
        self._accepting = accepting
        self._catalogue = catalogue
        self._keys = keys
        self._signing = _Signing(catalogue)
        self._rules: dict[str, _TableFolding] = {}
        self._wholes = frozenset(table.part_of for table in catalogue.tables.values())

    def of(self, units: Sequence[Unit]) -> list[Unit]:
        """Returns as many units, in the same order, that have the same effect in one transaction.

        Raises:
            TargetRejectedError: a delta's table is unknown, or a key value does not fit its column.
        """
        fold = _Fold(len(units))
        try:
            for place, unit in enumerate(units):
                for delta in unit.deltas:
                    fold.add(place, delta, self._rules.get(delta.table) or self._rules_of(delta.table))
            return [self._folded(fold, place, unit) for place, unit in enumerate(units)]
        except DeltaError as error:
            raise TargetRejectedError(str(error)) from error

    def _folded(self, fold: _Fold, place: int, unit: Unit) -> Unit:
        kept, lost = fold.kept[place], fold.lost[place]
        if not lost:
            return _with(unit, kept, unit.written, unit.read) if place in fold.heads else unit
        return _with(unit, kept, *self._signing.without(unit, kept, lost))

    def _rules_of(self, name: str) -> _TableFolding:
        table = self._catalogue.find(name)
        if table is None:
            raise TargetRejectedError(f"the target has no table {name}")
        rules = self._rules[name] = _TableFolding.of(
            table, self._keys.plan(name), self._accepting, whole=table.name in self._wholes
        )
        return rules


def _with(unit: Unit, deltas: Sequence[Delta], written: frozenset[int], read: frozenset[int]) -> Unit:
    return Unit(unit.tid, unit.uow, tuple(deltas), written, read, unit.size, unit.fault)


def why_not_folded(catalogue: Catalogue, keys: TouchedKeys[str], name: str) -> str | None:
    """Returns why changes of a table's rows are not folded; None if they are, where no trigger is in the way."""
    table = catalogue.tables[name]
    if _is_part(table, whole=any(one.part_of == name for one in catalogue.tables.values())):
        return "it has partitions or heirs, or is one"
    return _hindrance(table, keys.plan(name))


def _is_part(table: Table, *, whole: bool) -> bool:
    return whole or table.part_of is not None


def _hindrance(table: Table, plan: TablePlan[str]) -> str | None:
    if len(plan.rows) != 1:
        return "it has no primary key"
    if plan.unclear:
        return "a unique index is partial, or on an expression or a generated column"
    if table.judged is None:
        return "an index, a generated column, row security or a missing right may refuse one change and not the other"
    return None


LostDelta: TypeAlias = tuple[Delta, str | None]
"""A delta that is folded into another one, and its row's token if it touches the row alone."""


class _Signing:
    """Tells the signatures of units that have lost deltas.

    The signatures of a unit were made by the catalogue of the shard host, which may be another one than this one. A
    signature is removed only if it is certain that no delta that the unit has kept contributed it.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._signatures = Signatures(catalogue)
        self._name = cache(partial(_name_in, catalogue))
        self._rows: dict[str, frozenset[int]] = {}  # by a row's token, the signatures of what touches the row alone

    def without(
        self, unit: Unit, kept: Sequence[Delta], lost: Sequence[LostDelta]
    ) -> tuple[frozenset[int], frozenset[int]]:
        """Returns what the unit writes and reads by the deltas that it has kept.

        It is more where this catalogue cannot tell by which deltas the unit wrote or read something.

        What a delta that makes no foreign key act writes has its table's name in it. So no delta on another table
        writes it too. Where the unit has kept deltas on the table, this catalogue must give the unit all of its
        signatures, and no other ones, or they stay as they are.
        """
        lost_written, lost_read = self._of(lost)
        name = self._name
        tables = {name(delta.table) for delta, _ in lost}
        if tables.isdisjoint([name(delta.table) for delta in kept]):
            return unit.written - lost_written, unit.read
        written, read = self._signatures.of(kept)
        if (written | lost_written, read | lost_read) != (unit.written, unit.read):
            return unit.written, unit.read
        return written, read

    def _of(self, lost: Iterable[LostDelta]) -> tuple[set[int], set[int]]:
        """Returns the signatures of deltas. A row that is changed again and again is signed once."""
        written: set[int] = set()
        read: set[int] = set()
        for delta, row in lost:
            if row is None:
                self._signatures.add(delta, written, read)
            else:
                written |= self._rows.get(row) or self._of_row(row, delta)
        return written, read

    def _of_row(self, row: str, delta: Delta) -> frozenset[int]:
        if len(self._rows) >= _ROWS:
            self._rows.clear()
        found, _ = self._signatures.of((delta,))
        self._rows[row] = found
        return found


def _name_in(catalogue: Catalogue, name: str) -> str | None:
    """Returns the catalogue's name of a table that a delta calls ``name``."""
    table = catalogue.find(name)
    return None if table is None else table.name


@dataclass(frozen=True, slots=True)
class _FoldRules:
    """The rules by which changes of a table's rows are folded.

    Attributes:
        key: of a row.
        primary_key: its columns.
        guarded: columns that another key, a foreign key or a CHECK names.
        required: columns that must not be null.
        accepts: tells of a value whether the target surely takes it, by its column, which is not guarded.
    """

    key: ColumnKey[str]
    primary_key: tuple[str, ...]
    guarded: frozenset[str]
    required: frozenset[str]
    accepts: Mapping[str, Accepts]

    @classmethod
    def of(cls, table: Table, plan: TablePlan[str], accepting: Callable[[Column], Accepts]) -> _FoldRules | None:
        """Returns a table's rules; None where changes of its rows are not folded."""
        if table.judged is None or _hindrance(table, plan) is not None:
            return None
        referring = [each.key.columns for each in plan.named] + [each.key.columns for each in plan.parents]
        identities = [name for name, column in table.columns.items() if column.identity]
        keys = [key.columns for key in plan.unique] + [frozenset(key.columns) for key in table.foreign_keys]
        guarded = frozenset(table.judged).union(*referring, *keys, identities)
        return cls(
            key=plan.rows[0],
            primary_key=table.primary_key,
            guarded=guarded,
            required=frozenset(name for name, column in table.columns.items() if not column.nullable),
            accepts={name: accepting(column) for name, column in table.columns.items() if name not in guarded},
        )

    def joins(self, head: Delta, later: Delta) -> bool:
        """Returns whether ``later``, of which the row has the head's token, is folded into ``head``."""
        if later.op is UPSERT and (head.op is not UPSERT or head.row.keys() != later.row.keys()):
            return False
        if len(later.key) != len(self.primary_key):
            return False
        found, meant = _image(head), _image(later)
        for name in self.primary_key:
            if not _same(found[name], meant[name]):
                return False
        for name, value in later.row.items():
            if name not in self.key.columns and not self._droppable(head, name, value):
                return False
        return True

    def _droppable(self, head: Delta, name: str, value: Json) -> bool:
        """Returns whether the head may write ``value`` into the column, in place of what it writes there."""
        if name not in head.row:
            return name not in self.guarded and (head.op is UPDATE or name not in self.required)
        dropped = head.row[name]
        if _same(dropped, value):
            return True
        accept = self.accepts.get(name)
        return accept is not None and accept(dropped)


@dataclass(frozen=True, slots=True)
class _TableFolding:
    """The keys of a table, and the rules for changes of its rows.

    Attributes:
        plan: its keys.
        may_act: whether some change of its rows makes a foreign key act.
        fold: how changes of its rows are folded; None if they are not.
    """

    plan: TablePlan[str]
    may_act: bool
    fold: _FoldRules | None

    @classmethod
    def of(
        cls, table: Table, plan: TablePlan[str], accepting: Callable[[Column], Accepts], *, whole: bool
    ) -> _TableFolding:
        """Returns a table's rules.

        Args:
            table: the table.
            plan: its keys.
            accepting: returns what tells whether a column surely takes a value.
            whole: whether other tables are part of it, whose deltas may be on its rows.
        """
        return cls(plan, plan.acting, None if _is_part(table, whole=whole) else _FoldRules.of(table, plan, accepting))


@dataclass(slots=True)
class _Head:
    """The change of a row that later ones may join.

    Attributes:
        unit: the place of its unit in the group.
        place: its own place among the deltas that the unit keeps.
        merged: the columns that it writes once others were folded into it; None before.
    """

    unit: int
    place: int
    merged: dict[str, Json] | None = None


class _Fold:
    """Folds one group.

    Attributes:
        kept: by unit, the deltas that it has; those of heads are changed.
        lost: by unit, the deltas that are folded into others.
        heads: the units that have heads which others were folded into.
    """

    def __init__(self, units: int) -> None:
        self.kept: list[list[Delta]] = [[] for _ in range(units)]
        self.lost: list[list[LostDelta]] = [[] for _ in range(units)]
        self.heads: set[int] = set()
        self._open: dict[str, _Head] = {}  # by a row's token

    def add(self, unit: int, delta: Delta, rules: _TableFolding) -> None:
        if rules.may_act and rules.plan.acts(delta):
            self._open.clear()
        elif rules.fold is not None and (row := self._joined(unit, delta, rules.fold)) is not None:
            self.lost[unit].append((delta, row if rules.plan.touches_row_alone(delta) else None))
            return
        self.kept[unit].append(delta)

    def _joined(self, unit: int, delta: Delta, rules: _FoldRules) -> str | None:
        """Returns the row's token if a delta was folded into an earlier one.

        Otherwise it is a head, or ends what could be folded.
        """
        op = delta.op
        token = rules.key.token(_image(delta))
        if token is None:
            return None
        if op is DELETE or (op is UPDATE and _moves(delta, rules)):
            self._close(token, rules.key.token({**delta.key, **delta.row}))
            return None
        head = None if op is INSERT else self._open.get(token)
        if head is None or not rules.joins(self.kept[head.unit][head.place], delta):
            self._open[token] = _Head(unit, len(self.kept[unit]))
            return None
        self._merge(head, delta.row)
        return token

    def _merge(self, head: _Head, row: Row) -> None:
        """Lets a head write further columns, of a delta that is folded into it."""
        if head.merged is not None:
            head.merged.update(row)
            return
        kept = self.kept[head.unit]
        one = kept[head.place]
        head.merged = _merged(one.row, row)
        kept[head.place] = Delta(one.table, one.op, one.key, head.merged, one.before, one.ordinal)
        self.heads.add(head.unit)

    def _close(self, *tokens: str | None) -> None:
        for token in tokens:
            if token is not None:
                self._open.pop(token, None)


def _merged(columns: Row, later: Row) -> dict[str, Json]:
    return {**columns, **later}


def _image(delta: Delta) -> Row:
    """Returns the key of the row that a delta makes or finds, perhaps with other columns."""
    if delta.op is UPDATE or delta.op is DELETE:
        return delta.key
    return delta.row if delta.key.keys() <= delta.row.keys() else {**delta.key, **delta.row}


def _moves(delta: Delta, rules: _FoldRules) -> bool:
    row, key = delta.row, delta.key
    # A generator takes three times as long.
    for name in rules.primary_key:  # noqa: SIM110
        if name in row and not _same(row[name], key.get(name)):
            return True
    return False


def _same(one: Json, other: Json) -> bool:
    """Returns whether two values are certainly one to every target: they are spelled alike."""
    return type(one) is type(other) and type(one) in _SCALARS and one == other
