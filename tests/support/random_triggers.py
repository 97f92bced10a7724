"""Triggers of safe kinds, drawn from a seed: what they do depends on the source's rows alone, and ends."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from support.type_values import Kind, quoted

TALLY: Final = "CREATE TABLE tally (what text PRIMARY KEY, n bigint NOT NULL)"
"""The table in which triggers count."""

_COUNT: Final = "INSERT INTO tally VALUES ({}, 1) ON CONFLICT (what) DO UPDATE SET n = tally.n + 1; RETURN NULL"


class _Column(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> Kind: ...
    @property
    def parent(self) -> tuple[str, str] | None: ...


@dataclass(frozen=True)
class RandomTrigger:
    """A trigger with its function.

    Attributes:
        table: its table, quoted.
        sql: what makes both.
        repeatable: whether it changes nothing in a row that it has seen before, so that it may fire in a replica, too.
    """

    table: str
    sql: str
    repeatable: bool = False


class Triggers:
    """Draws the triggers of a schema.

    Args:
        plain: the columns of each table that a trigger may write, by the table's quoted name.
    """

    def __init__(self, chance: random.Random, plain: Mapping[str, Sequence[_Column]]) -> None:
        self._chance = chance
        self._plain = plain
        self._made = 0

    def of_table(self, table: str, columns: Sequence[_Column], *, partitioned: bool) -> Iterator[RandomTrigger]:
        """Yields some triggers of a table."""
        chance = self._chance
        if chance.random() < 0.35 and self._plain[table]:
            yield self._filling(table)
        if chance.random() < 0.2:
            yield self._counting(table, "ROW")
        if chance.random() < 0.15:
            yield self._counting(table, "STATEMENT")
        if chance.random() < 0.15 and not partitioned:
            yield self._counting_late(table)
        parents = [column for column in columns if column.parent is not None and self._plain[column.parent[0]]]
        if parents and chance.random() < 0.4:
            yield self._touching_parent(table, chance.choice(parents))

    def _filling(self, table: str) -> RandomTrigger:
        """Fills a column that is NULL before its row is written."""
        column = self._chance.choice(self._plain[table])
        fills = f"NEW.{column.name} := coalesce(NEW.{column.name}, {column.kind.value(self._chance)}); RETURN NEW"
        return self._trigger(table, "BEFORE INSERT OR UPDATE", fills, "FOR EACH ROW", repeatable=True)

    def _counting(self, table: str, each: str) -> RandomTrigger:
        count = _COUNT.format(f"{quoted(f'{table} {each} ')} || TG_OP")
        return self._trigger(table, "AFTER INSERT OR UPDATE OR DELETE", count, f"FOR EACH {each}")

    def _counting_late(self, table: str) -> RandomTrigger:
        """Counts at the commit."""
        count = _COUNT.format(f"{quoted(f'{table} late ')} || TG_OP")
        each = "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
        return self._trigger(table, "AFTER INSERT OR UPDATE OR DELETE", count, each, constraint=" CONSTRAINT")

    def _touching_parent(self, table: str, column: _Column) -> RandomTrigger:
        """Changes the row that a new or changed row names by a foreign key; no trigger fires it."""
        assert column.parent is not None
        parent, key = column.parent
        target = self._chance.choice(self._plain[parent])
        value = target.kind.value(self._chance)
        change = f"UPDATE {parent} SET {target.name} = {value} WHERE {key} = NEW.{column.name}; RETURN NULL"
        each = "FOR EACH ROW WHEN (pg_trigger_depth() < 1)"
        return self._trigger(table, "AFTER INSERT OR UPDATE", change, each)

    def _trigger(
        self, table: str, when: str, body: str, each: str, *, repeatable: bool = False, constraint: str = ""
    ) -> RandomTrigger:
        name = f"does_{self._made}"
        self._made += 1
        function = (
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SET search_path = public"
            f" AS {quoted(f'BEGIN {body}; END')}"
        )
        trigger = f"CREATE{constraint} TRIGGER {name} {when} ON {table} {each} EXECUTE FUNCTION {name}()"
        return RandomTrigger(table, f"{function}; {trigger}", repeatable)
