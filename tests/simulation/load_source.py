"""A source of loads: a history of transactions, its tables as of any of them, and what a target may hold of them.

The oracle shares no code with Kainite: it reads the target's rows, and from Kainite's tables the states alone. With
``targetConsistency = prefix`` the tables that are live must together be as of one transaction, in each snapshot of the
target; and never of an earlier one than before.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeAlias

import psycopg
from msgspec.structs import replace
from psycopg import errors

from kainite.uow.delta import Delta, Operation

TABLES: Final = {"account": ("id", "v"), "entry": ("id", "account", "v"), "journal": ("n",)}
"""The tables' columns, all of them numbers; ``journal`` has no key, so what is written twice is there twice."""

DDL: Final = """
    CREATE TABLE account (id bigint PRIMARY KEY, v bigint NOT NULL);
    CREATE TABLE entry (id bigint PRIMARY KEY, account bigint NOT NULL REFERENCES account, v bigint NOT NULL);
    CREATE TABLE journal (n bigint NOT NULL);
"""

STEP: Final = 0x1000
"""Bytes of WAL from one commit to the next."""

Rows: TypeAlias = dict[int, tuple[int, ...]]
State: TypeAlias = dict[str, Rows]

_STATE: Final = """
    SELECT (SELECT state FROM kainite_load WHERE log_partition = 'log/0'),
           (SELECT coalesce(json_object_agg(table_name, state), '{}') FROM kainite_load_table),
           (SELECT count(*) FROM kainite_held_delta),
           (SELECT coalesce(json_agg(convalidated), '[]') FROM pg_constraint WHERE contype = 'f'),
           to_regclass('journal') IS NOT NULL"""
_LATER: Final = """
    SELECT EXISTS (SELECT FROM kainite_load WHERE log_partition = %s AND generation > %s AND snapshot IS NOT NULL)"""
_DONE: Final = """
    SELECT EXISTS (SELECT FROM kainite_load_step WHERE log_partition = %s AND step = %s AND done_at IS NOT NULL)"""
_ROWS: Final = "(SELECT coalesce(json_agg(json_build_array({0}) ORDER BY {0}), '[]') FROM {1})"


@dataclass(frozen=True, slots=True)
class FoundTarget:
    """A snapshot of the target: the states of the load and of its tables, what is held, foreign keys, and rows."""

    load: str | None
    own: Mapping[str, str]
    held: int
    keys: Sequence[bool]
    rows: Mapping[str, Sequence[Sequence[int]]]


@dataclass(frozen=True, slots=True)
class LoadTransaction:
    """A transaction: when it commits, in seconds, its commit LSN and its changes."""

    at: float
    lsn: int
    deltas: tuple[Delta, ...]

    @property
    def uow(self) -> str:
        return f"pg-{self.lsn // STEP}-{self.lsn >> 32:X}/{self.lsn & 0xFFFFFFFF:X}"


@dataclass
class LoadHistory:
    """What happens in the source.

    Attributes:
        rng: decides it.
        count: how many transactions there are.
        seconds: within which they commit.
        transactions: these.
        states: the tables before the first one, and after each.
    """

    rng: Random
    count: int
    seconds: float
    transactions: list[LoadTransaction] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    _keys: Iterator[int] = field(default_factory=lambda: itertools.count(100))

    def __post_init__(self) -> None:
        accounts: Rows = {key: (key, 0) for key in range(1, 13)}
        entries: Rows = {key: (key, 1 + key % 12, 0) for key in range(1, 9)}
        self.states.append({"account": accounts, "entry": entries, "journal": {}})
        times = sorted(self.rng.uniform(0.0, self.seconds) for _ in range(self.count))
        for number, at in enumerate(times, 1):
            state = copy.deepcopy(self.states[-1])
            changes = [self._change(state, number) for _ in range(self.rng.choice((1, 2, 3)))]
            found = [delta for some in changes for delta in some]
            deltas = tuple(replace(delta, ordinal=place) for place, delta in enumerate(found))
            self.transactions.append(LoadTransaction(at, number * STEP, deltas))
            self.states.append(state)

    def committed(self, now: float) -> int:
        """Returns how many transactions have committed."""
        return sum(one.at <= now for one in self.transactions)

    def _change(self, state: State, number: int) -> list[Delta]:
        accounts, entries, rng = state["account"], state["entry"], self.rng
        free = sorted(accounts.keys() - {account for _, account, _ in entries.values()})
        match rng.choice(("change", "change", "open", "close", "enter", "drop", "note")):
            case "change":
                key = rng.choice(sorted(accounts))
                accounts[key] = (key, number)
                return [Delta("account", Operation.UPDATE, {"id": key}, {"v": number}, {})]
            case "open":
                key = next(self._keys)
                accounts[key] = (key, number)
                return [Delta("account", Operation.INSERT, {"id": key}, {"id": key, "v": number}, {})]
            case "close" if free:
                key = rng.choice(free)
                del accounts[key]
                return [Delta("account", Operation.DELETE, {"id": key}, {}, {})]
            case "enter":
                key = next(self._keys)
                entries[key] = (key, rng.choice(sorted(accounts)), number)
                new = dict(zip(TABLES["entry"], entries[key], strict=True))
                return [Delta("entry", Operation.INSERT, {"id": key}, new, {})]
            case "drop" if len(entries) > 1:
                key = rng.choice(sorted(entries))
                del entries[key]
                return [Delta("entry", Operation.DELETE, {"id": key}, {}, {})]
        place = len(state["journal"])
        state["journal"][place] = (100 * number + place,)
        return [Delta("journal", Operation.INSERT, {}, {"n": 100 * number + place}, {})]


@dataclass
class LoadOracle:
    """Judges the target after each transaction.

    Attributes:
        history: the source's.
        connection: a session of its own with the target.
        at: the number of the transaction that the target is as of, at least.
    """

    history: LoadHistory
    connection: psycopg.Connection
    at: int = 0

    def look(self, now: float) -> str | None:
        """Returns what is wrong with the target; None where nothing is."""
        found = self._found()
        if found is None or found.load != "live":
            return None
        live = [name for name in found.rows if found.own.get(name) == "live"]
        for number in range(self.at, self.history.committed(now) + 1):
            if all(self._is_as_of(found, name, number) for name in live):
                self.at = number
                return None
        return f"no state of the source from {self.at} on has these rows: { {name: found.rows[name] for name in live} }"

    def holds(self) -> bool:
        """Tells whether changes of a table that is loaded by itself are held."""
        return bool(_one(self.connection.execute("SELECT count(*) FROM kainite_held_delta"))[0])

    def has_steps_of_a_load_after(self, name: str, generation: int) -> bool:
        """Tells whether a later load than that of a generation has its point, and so its steps."""
        return bool(_one(self.connection.execute(_LATER, (name, generation)))[0])

    def has_done(self, name: str, step: int) -> bool:
        """Tells whether a step of a load is done."""
        return bool(_one(self.connection.execute(_DONE, (name, step)))[0])

    def missing(self) -> str | None:
        """Returns what is left to be done; None where the target is as of the last transaction."""
        found, last = self._found(), len(self.history.transactions)
        if found is None:
            return "a table is locked"
        if found.load != "live" or set(found.own.values()) != {"live"}:
            return f"not live: {found.load}, {found.own}"
        if found.held or list(found.keys) != [True]:
            return f"{found.held} changes are held, and the foreign keys are {found.keys}"
        behind = [name for name in TABLES if not self._is_as_of(found, name, last)]
        return f"not as the source: {', '.join(behind)}" if behind else None

    def _is_as_of(self, found: FoundTarget, name: str, number: int) -> bool:
        wanted = sorted(self.history.states[number][name].values())
        return found.rows[name] == [list(row) for row in wanted]

    def _found(self) -> FoundTarget | None:
        """Reads one snapshot; returns None where somebody has locked a table against readers."""
        run = self.connection.execute
        try:
            with self.connection.transaction():
                run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                run("SET LOCAL lock_timeout = '1ms'")
                load, own, held, keys, journal = _one(run(_STATE))
                tables = [name for name in TABLES if journal or name != "journal"]
                columns = ", ".join(_ROWS.format(", ".join(TABLES[name]), name) for name in tables)
                rows = _one(run(f"SELECT {columns}".encode()))
        except errors.LockNotAvailable:
            return None
        return FoundTarget(load, own, held, keys, dict(zip(tables, rows, strict=True)))


def _one(cursor: psycopg.Cursor[Any]) -> Sequence[Any]:
    row: Sequence[Any] | None = cursor.fetchone()
    assert row is not None
    return row
