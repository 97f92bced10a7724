"""Derives the order of a unit's deltas from the target's keys, where the source does not number them. Pure.

The order of arrival says little then: the records of a transaction come through several shards. What the source's own
constraints demand holds in each order in which it can have made the changes:

* changes of one row: only the order of arrival is known, and is kept;
* a unique value is given up before another row takes it. A delete that does not tell the row's unique values may give
  up any, so it comes before each delta that takes one in its table;
* a parent is inserted before a child names it; a child is deleted, or leaves, before its parent is deleted. A child
  that does not tell its old parent may leave any.

Deltas that nothing of this concerns keep their order of arrival. If the demands contradict each other, deletes that do
not tell their unique values had nothing to do with the values that others take, and their demand is dropped. If they
still do (a value that wanders, a constraint that is deferred), the order of arrival stays. In a unit in which foreign
keys act it is tried first (:meth:`kainite_spark.targets.statements.steps.Stepper.in_order`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from kainite.uow.delta import Delta, Operation, Row
from kainite.uow.touched.plan import TablePlan

_Point: TypeAlias = tuple[str, Hashable]
"""What some deltas must come before, and others behind."""

_ANY_TAKEN = "any taken"


@dataclass(frozen=True, slots=True)
class PlannedDelta:
    """A delta with the keys of its table.

    Attributes:
        delta: as it came.
        table: its name in the catalogue.
        plan: the table's keys.
        parents: the tables that its foreign keys name.
    """

    delta: Delta
    table: str
    plan: TablePlan[str]
    parents: frozenset[str]

    @property
    def old(self) -> Row:
        return {**self.delta.before, **self.delta.key}

    @property
    def new(self) -> Row:
        return {**self.old, **self.delta.row}

    def writes(self, columns: frozenset[str]) -> bool:
        """Returns whether the delta may give these columns other values."""
        if self.delta.op is Operation.DELETE:
            return False
        return self.delta.op is not Operation.UPDATE or not columns.isdisjoint(self.delta.row)


def derived_order(planned: Sequence[PlannedDelta]) -> list[Delta]:
    """Returns the deltas in an order that the source's constraints allow; in that of arrival if none is found.

    Raises:
        DeltaError: a key value does not fit its column.
    """
    arrived = [each.delta for each in planned]
    if not _values_may_change_hands(planned):
        return arrived
    for guessed in (True, False):
        graph = _graph(planned, guessed=guessed)
        if graph.is_sound():
            return [arrived[place] for place in graph.order()]
    return arrived


def _graph(planned: Sequence[PlannedDelta], *, guessed: bool) -> _Graph:
    """Returns what is demanded; ``guessed``: also of deletes that do not tell their unique values."""
    graph = _Graph(len(planned))
    for place, each in enumerate(planned):
        for point in _before(each):
            if guessed or point[0] != _ANY_TAKEN:
                graph.before(place, point)
        for point in _behind(each):
            graph.behind(place, point)
    _chain_rows(planned, graph)
    return graph


def _values_may_change_hands(planned: Sequence[PlannedDelta]) -> bool:
    keyed = [each for each in planned if each.plan.unique]
    givers = {each.table for each in keyed if each.delta.op in (Operation.DELETE, Operation.UPDATE)}
    takers = {each.table for each in keyed if any(each.writes(key.columns) for key in each.plan.unique)}
    return not givers.isdisjoint(takers) and len(keyed) > 1


def _before(each: PlannedDelta) -> Iterator[_Point]:
    """Yields what the delta must come before: the taking of values, the naming of a parent, the end of a parent."""
    delta, old = each.delta, each.old
    for key in each.plan.unique:
        if delta.op is Operation.DELETE or (delta.op is Operation.UPDATE and each.writes(key.columns)):
            token = key.token(old)
            if token is not None and (delta.op is Operation.DELETE or token != key.token(each.new)):
                yield "taken", token
            elif token is None and delta.op is Operation.DELETE and key.unknown(old):
                yield _ANY_TAKEN, each.table
    if delta.op in (Operation.INSERT, Operation.UPSERT):
        yield from (("named", token) for named in each.plan.named if (token := named.key.token(each.new)) is not None)
        return
    for parent in each.plan.parents:
        if delta.op is Operation.DELETE or each.writes(parent.key.columns):
            token = parent.key.token(old)
            if token is not None:
                yield "ends", token
            elif parent.key.unknown(old):
                yield from (("any ends", table) for table in each.parents - {each.table})


def _behind(each: PlannedDelta) -> Iterator[_Point]:
    """Yields what the delta must come behind; the points of :func:`_before`."""
    delta = each.delta
    if delta.op is Operation.DELETE:
        yield "any ends", each.table
        yield from (("ends", token) for named in each.plan.named if (token := named.key.token(each.old)) is not None)
        return
    for key in each.plan.unique:
        if each.writes(key.columns) and (token := key.token(each.new)) is not None and token != key.token(each.old):
            yield "taken", token
            yield _ANY_TAKEN, each.table
    for parent in each.plan.parents:
        if each.writes(parent.key.columns) and (token := parent.key.token(each.new)) is not None:
            yield "named", token


def _chain_rows(planned: Sequence[PlannedDelta], graph: _Graph) -> None:
    last: dict[str, int] = {}
    for place, each in enumerate(planned):
        tokens = {token for key in each.plan.rows for image in (each.old, each.new) if (token := key.token(image))}
        for token in tokens:
            if token in last:
                graph.chain(last[token], place)
            last[token] = place


@dataclass(slots=True)
class _Graph:
    """Deltas by their places, and points between them."""

    size: int
    _following: defaultdict[int | _Point, list[int | _Point]] = field(default_factory=lambda: defaultdict(list))
    _waits: defaultdict[int | _Point, int] = field(default_factory=lambda: defaultdict(int))
    _sorted: list[int] = field(default_factory=list)

    def before(self, place: int, point: _Point) -> None:
        self._edge(place, point)

    def behind(self, place: int, point: _Point) -> None:
        self._edge(point, place)

    def chain(self, one: int, other: int) -> None:
        self._edge(one, other)

    def is_sound(self) -> bool:
        """Sorts the deltas; returns whether no demands contradict each other."""
        waits = dict(self._waits)
        ready = [place for place in range(self.size) if not waits.get(place)]
        heapify(ready)
        points = [node for node in self._following if not isinstance(node, int) and not waits.get(node)]
        while ready or points:
            node: int | _Point = points.pop() if points else heappop(ready)
            if isinstance(node, int):
                self._sorted.append(node)
            for after in self._following.get(node, ()):
                waits[after] -= 1
                if waits[after]:
                    continue
                if isinstance(after, int):
                    heappush(ready, after)
                else:
                    points.append(after)
        return len(self._sorted) == self.size

    def order(self) -> list[int]:
        """Returns the places in their order; call :meth:`is_sound` first."""
        return self._sorted

    def _edge(self, one: int | _Point, other: int | _Point) -> None:
        self._following[one].append(other)
        self._waits[other] += 1
