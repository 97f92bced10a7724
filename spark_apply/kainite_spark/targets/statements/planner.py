"""Plans set-based statements: which deltas of a group of units share a statement, and in which order. Pure.

Units come layer by layer (:mod:`kainite_spark.targets.statements.layers`), a unit's deltas step by step
(:mod:`kainite_spark.targets.statements.steps`). Within a step: inserts and upserts by ascending precedence, then
updates, then deletes by descending precedence. Deltas of one table that write the same columns share a
statement. Rows of a table that references itself come parents first when they are written, children
first when they are deleted, also where they are in several partitions of it. Changes that may fire a
trigger keep their places (:mod:`kainite_spark.targets.statements.hooked_runs`). A target renders the
statements in its own SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, zip_longest
from typing import ClassVar, TypeAlias

from kainite.base.errors import DeltaError, TargetRejectedError
from kainite.uow.canonical import canonical_of, is_opaque
from kainite.uow.catalogue.tables import Catalogue, Column, Table
from kainite.uow.delta import DELETE, INSERT, TRUNCATE, UPDATE, UPSERT, Delta, Operation
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.statements import accepted_values
from kainite_spark.targets.statements.accepted_values import Accepts
from kainite_spark.targets.statements.after_actions import fitted
from kainite_spark.targets.statements.hooked_runs import runs, segments
from kainite_spark.targets.statements.layers import conflict_layers
from kainite_spark.targets.statements.net_effect import NetEffect
from kainite_spark.targets.statements.self_reference import depths, references_itself
from kainite_spark.targets.statements.steps import PHASES, Stepper


@dataclass(frozen=True, slots=True)
class StatementShape:
    """The properties that all deltas of one statement share.

    Attributes:
        table: the table's name in the catalogue.
        op: the operation.
        columns: the written columns, sorted; for an update that does not change its row's key,
            without the key's columns.
        key: the columns that identify the row: the primary key; () for an insert.
        moves: whether it is an update that changes its row's key; ``columns`` then hold the new key.
        reached: whether the target may have made these deletes, or these changes of keys, by itself, by the action of a
            foreign key, when their unit changed a parent.
        may_miss: whether rows need not be there: deletes that say so, or one row that the target may have deleted by
            itself before it is updated or deleted here, in a statement in the source's own order.
    """

    table: str
    op: Operation
    columns: tuple[str, ...]
    key: tuple[str, ...]
    moves: bool = False
    reached: bool = False
    may_miss: bool = False

    @property
    def counts_rows(self) -> bool:
        """Returns whether every delta must touch a row; an upsert without columns beside the key need not."""
        if self.may_miss:
            return False
        return self.op is not UPSERT or len(self.columns) > len(self.key)


@dataclass(frozen=True, slots=True)
class Statement:
    """One set-based statement.

    Attributes:
        shape: all its deltas have it.
        deltas: they touch different rows.
        settles: whether what triggers have deferred is done behind it, as at the end of the unit alone.
    """

    shape: StatementShape
    deltas: Sequence[Delta]
    settles: bool = False

    MAX_ROWS: ClassVar[int] = 10_000


FOLDED_LAYERS = 16
"""Layers from which folding is worth its work: it takes about as long as the statements of so many layers."""

_Groups: TypeAlias = dict[StatementShape, list[Delta]]
_Likeness: TypeAlias = tuple[object, ...]
_Part: TypeAlias = tuple[int, StatementShape, list[Delta]]


class Planner:
    """Turns units into statements, by the target's tables and their precedence.

    Args:
        catalogue: the target's tables.
        levels: precedence by table name (:func:`kainite.uow.precedence.levels.precedence_map`).
        accepting: returns what tells whether a column surely takes a value.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        levels: Mapping[str, int],
        accepting: Callable[[Column], Accepts] = accepted_values.accepting,
    ) -> None:
        self._catalogue = catalogue
        self._levels = levels
        self._stepper = Stepper(catalogue)
        self._net_effect = NetEffect(catalogue, self._stepper.keys, accepting)
        self._shapes: dict[_Likeness, StatementShape] = {}
        self._opaque_keys: dict[str, frozenset[str]] = {}
        self._cascaded: set[int] = set()

    def plan(self, units: Sequence[Unit], *, folded: bool = False, hooked: Collection[str] = ()) -> Iterator[Statement]:
        """Yields the statements that apply ``units``, given in log order, in one transaction.

        Args:
            units: in log order.
            folded: whether changes of one row may be made as one; they are where units stand in many layers.
            hooked: the tables of which a change may fire a trigger or a rule.

        Raises:
            TargetRejectedError: a delta names a table or column that the target does not have, or
                a key that is not the table's primary key.
        """
        for unit in units:
            refuse_emptying(unit.deltas)
        self._note_cascades(units)
        if not hooked:
            yield from self._layer_by_layer(units, folded=folded)
            return
        fires = self._firing(frozenset(hooked))
        for run in runs(units, fires):
            if run.hooked:
                yield from self._around_hooks(run.units[0], fires)
            else:
                yield from self._layer_by_layer(run.units, folded=folded)

    def _note_cascades(self, units: Iterable[Unit]) -> None:
        """Notes which deltas the target may have made by itself when it is their turn."""
        if self._stepper.acts:
            self._cascaded = {id(delta) for unit in units for delta in self._stepper.cascaded(unit.deltas)}

    def _firing(self, hooked: Collection[str]) -> Callable[[Delta], bool]:
        return lambda delta: self._table(delta.table).name in hooked

    def _around_hooks(self, unit: Unit, fires: Callable[[Delta], bool]) -> Iterator[Statement]:
        """Yields the statements of a unit that may fire something; the last one settles."""
        waiting: Statement | None = None
        for segment in segments(unit.deltas, fires):
            for statement in chain.from_iterable(map(self._ordered, self._stepper.steps(tuple(segment)))):
                alone = fires(statement.deltas[0])
                for part in (Statement(statement.shape, (d,)) for d in statement.deltas) if alone else (statement,):
                    if waiting is not None:
                        yield waiting
                    waiting = part
        if waiting is not None:
            yield replace(waiting, settles=True)

    def _layer_by_layer(self, units: Sequence[Unit], *, folded: bool) -> Iterator[Statement]:
        for layer in self._layers(units, folded=folded):
            steps = zip_longest(*(self._stepper.steps(unit.deltas) for unit in layer), fillvalue=())
            for step in steps:
                yield from self._ordered(chain.from_iterable(step))

    def _layers(self, units: Sequence[Unit], *, folded: bool) -> list[list[Unit]]:
        layers = conflict_layers(units, FOLDED_LAYERS if folded else None)
        if folded and len(layers) == FOLDED_LAYERS:
            return conflict_layers(self._net_effect.of(units))
        return layers

    def one_by_one(self, unit: Unit) -> Iterator[Statement]:
        """Yields a statement for each delta, in the source's order as far as it is known; raises as :meth:`plan`."""
        refuse_emptying(unit.deltas)
        try:
            in_order = self._stepper.in_order(unit.deltas, again=True)
            deltas = list(fitted(in_order, self._stepper.keys.plan, self._stepper.cascaded(in_order)))
        except DeltaError as error:
            raise TargetRejectedError(str(error)) from error
        self._cascaded = {id(delta) for delta in self._stepper.cascaded([each.delta for each in deltas])}
        for each in deltas:
            shape = self._shape(each.delta)
            yield Statement(replace(shape, may_miss=True) if each.may_miss else shape, (each.delta,))

    def in_runs(self, unit: Unit) -> Iterator[Statement]:
        """Yields the statements of :meth:`one_by_one`, but one for a run of rows that may name each other.

        A source may make, or delete, such rows by one statement, and tells the child before the parent, or the parent
        before the child: it checks a foreign key behind the whole statement. A run is consecutive inserts, or deletes,
        of a table that references itself, as far as they may be executed in any order. Deletes in several partitions of
        one table are a run by the name of the whole.
        """
        for shape, run in groupby(self.one_by_one(unit), lambda statement: self._of_whole(statement.shape)):
            statements = list(run)
            deltas = [delta for each in statements for delta in each.deltas]
            itself = references_itself(self._catalogue.tables[shape.table])
            if len(deltas) > 1 and itself and self._stepper.commute(shape.op, deltas):
                yield Statement(shape, deltas)
            else:
                yield from statements

    def has_runs(self, unit: Unit) -> bool:
        """Returns whether :meth:`in_runs` differs from :meth:`one_by_one`; raises as they do."""
        return any(len(statement.deltas) > 1 for statement in self.in_runs(unit))

    def _of_whole(self, shape: StatementShape) -> StatementShape:
        """Returns the shape by the name of the whole for deletes in a partition of a table that references itself."""
        whole = self._catalogue.tables.get(self._whole(shape.table))
        if shape.op is not DELETE or whole is None or whole.primary_key != shape.key:
            return shape
        return replace(shape, table=whole.name) if references_itself(whole) else shape

    def _whole(self, name: str) -> str:
        """Returns the table that a table is a part of; itself, where it is none."""
        return self._catalogue.tables[name].part_of or name

    def _ordered(self, deltas: Iterable[Delta]) -> Iterator[Statement]:
        groups: _Groups = {}
        alike: dict[_Likeness, list[Delta]] = {}  # several may have one shape: then they have one list, too
        for delta in deltas:
            likeness = self._likeness(delta)
            rows = alike.get(likeness)
            if rows is None:
                rows = alike[likeness] = groups.setdefault(self._shape_of(likeness, delta), [])
            rows.append(delta)
        parts = sorted(self._parts(groups), key=lambda part: (*self._rank(part[1]), part[0]))
        for _, shape, rows in parts:
            for start in range(0, len(rows), Statement.MAX_ROWS):
                yield Statement(shape, rows[start : start + Statement.MAX_ROWS])

    def _parts(self, groups: _Groups) -> Iterator[_Part]:
        families: dict[tuple[str, int], _Groups] = {}
        for shape, rows in groups.items():
            families.setdefault((self._whole(shape.table), PHASES[shape.op]), {})[shape] = rows
        for (_, rank), family in families.items():
            tables = [shape.table for shape in family]
            itself = any(references_itself(self._catalogue.tables[name]) for name in tables)
            if rank == PHASES[UPDATE] or not itself:
                yield from ((0, shape, rows) for shape, rows in family.items())
            else:
                yield from _by_depth(self._depths(tables[0], family), family)

    def _depths(self, table: str, family: _Groups) -> Sequence[int]:
        try:
            plan = self._stepper.keys.plan(table)
            return depths(plan, [delta for rows in family.values() for delta in rows])
        except DeltaError as error:
            raise TargetRejectedError(str(error)) from error

    def _rank(self, shape: StatementShape) -> tuple[int, int]:
        level = self._levels.get(shape.table, 1)
        return PHASES[shape.op], -level if shape.op is DELETE else level

    def _shape(self, delta: Delta) -> StatementShape:
        return self._shape_of(self._likeness(delta), delta)

    def _likeness(self, delta: Delta) -> _Likeness:
        """Returns what deltas of one shape share, but for the order of their columns."""
        op = delta.op
        moves = op is UPDATE and (_moves(delta) or self._may_spell_anew(delta))
        reached = bool(self._cascaded) and id(delta) in self._cascaded
        # The text of the operation: an enum's own hash is a function in Python.
        return (moves, reached, delta.table, op._value_, delta.may_miss, *delta.key, None, *delta.row)

    def _shape_of(self, likeness: _Likeness, delta: Delta) -> StatementShape:
        shape = self._shapes.get(likeness)
        if shape is None:
            moves, reached, *_ = likeness
            made = replace(_shape(self._table(delta.table), delta, bool(moves)), reached=bool(reached))
            shape = self._shapes[likeness] = made
        return shape

    def _may_spell_anew(self, delta: Delta) -> bool:
        """Returns whether an update gives a part of the key that may be stored otherwise: a collation finds b by B."""
        opaque = self._opaque_keys.get(delta.table)
        if opaque is None:
            table = self._table(delta.table)
            columns = (name for name in table.primary_key if is_opaque(canonical_of([table.columns[name]])))
            opaque = self._opaque_keys[delta.table] = frozenset(columns)
        return not opaque.isdisjoint(delta.row)

    def _table(self, name: str) -> Table:
        table = self._catalogue.find(name)
        if table is None:
            raise TargetRejectedError(f"the target has no table {name}")
        return table


def refuse_emptying(deltas: Iterable[Delta]) -> None:
    """Raises TargetRejectedError where a delta empties a table."""
    if emptied := [delta.table for delta in deltas if delta.op is TRUNCATE]:
        raise TargetRejectedError(f"TRUNCATE of {emptied[0]}: only PostgreSQL and MariaDB targets empty tables")


def _moves(delta: Delta) -> bool:
    row = delta.row
    # A generator takes three times as long.
    for column, value in delta.key.items():  # noqa: SIM110
        if row.get(column, value) != value:
            return True
    return False


def _shape(table: Table, delta: Delta, moves: bool) -> StatementShape:
    key, row = frozenset(delta.key), frozenset(delta.row)
    unknown = sorted((key | row) - table.columns.keys())
    if unknown:
        raise TargetRejectedError(f"{table.name} has no column {unknown[0]}")
    if delta.op is INSERT:
        return StatementShape(table.name, delta.op, tuple(sorted(row | key)), ())
    if key != frozenset(table.primary_key):
        named = ", ".join(table.primary_key) or "missing, so that it takes inserts only"
        raise TargetRejectedError(f"{table.name}: cannot {delta.op} by ({', '.join(sorted(key))}): its key is {named}")
    columns = {
        UPSERT: row | key,
        UPDATE: row if moves else (row - key) or key,
        DELETE: frozenset[str](),
    }[delta.op]
    return StatementShape(
        table.name, delta.op, tuple(sorted(columns)), table.primary_key, moves, may_miss=delta.may_miss
    )


def _by_depth(found: Sequence[int], family: _Groups) -> Iterator[_Part]:
    """Orders rows of a table that references itself: parents first, for deletes children first.

    Rows of one shape stay in one statement, in that order; several shapes are split by depth.
    """
    listed = [(shape, delta) for shape, rows in family.items() for delta in rows]
    deep = [(depth, shape, delta) for depth, (shape, delta) in zip(found, listed, strict=True)]
    turn = -1 if deep[0][1].op is DELETE else 1
    deep.sort(key=lambda row: turn * row[0])
    parts: dict[tuple[int, StatementShape], list[Delta]] = {}
    for depth, shape, delta in deep:
        parts.setdefault((turn * depth if len(family) > 1 else 0, shape), []).append(delta)
    yield from ((depth, shape, rows) for (depth, shape), rows in parts.items())
