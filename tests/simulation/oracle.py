"""The oracle: what the target may hold, by the source's history alone. It shares no code with Kainite.

After each transaction of the target:

* a source transaction is there at most once (``journal`` has its name once);
* when it is there, so is every earlier one that it conflicts with;
* with ``targetConsistency = prefix`` every earlier one is there at all;
* the tables hold exactly what the source's transactions that are there add up to, in the source's order: none of them
  is there in part.

At the end, once faults have stopped, all transactions are there. What a source without ends says late is judged by
:mod:`simulation.extras`.

A correction stands for the transaction that it corrects: one of the two is there. What an operator discards need not
be there, and what conflicts with it need not be made in the source's order (:mod:`simulation.replay`). Behind it, a
change touches what it names: what the source's row was before, or what a delete took along there, may never have been.
What may be out of place, because it has failed or waits for a lock, is *excused*, and with it what it holds back: while
one of them is not there, the rest of the prefix may go on without it. A unit that can have no turn, because its number
is another one's, fails before its turn, and holds back transactions before its own too; where the other one came first,
later ones go on without it, and it is never applied behind them.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from simulation.extras import Extras
from simulation.odd import OddUnits
from simulation.replay import Replay
from simulation.source import Source, Transaction, rows_of


class BrokenPromiseError(AssertionError):
    """The target holds what it must not hold, or lacks what it must have."""


@dataclass(slots=True)
class Allowed:
    """What the oracle overlooks; transactions by number.

    Attributes:
        prefix: whether commits must be in order, all of them.
        excused: those that may fail, or wait for so long that others go on.
        late: pairs (earlier, later): the earlier one got parts after its time was over, and after the later one.
        discarded: those that an operator has asked to discard.
        gone: those of which the owner has said that they are discarded.
        extras: what the source says late.
        odd: what is no unit of work.
    """

    prefix: bool = False
    excused: Collection[int] = ()
    late: Collection[tuple[int, int]] = ()
    discarded: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    extras: Extras = field(default_factory=Extras)
    odd: OddUnits = field(default_factory=OddUnits)


class Oracle:
    """Watches one target.

    Args:
        source: the history.
        path: of the target's database.
        allowed: what is overlooked.
    """

    def __init__(self, source: Source, path: Path, allowed: Allowed) -> None:
        self.allowed = allowed
        self._source = source
        self._by_name = {transaction.name: transaction for transaction in source.history}
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._version = -1
        self._replayed = Replay(source.tables, told=source.tells_parents)
        self._conflicts = _conflicts(source)
        self._whole = 0  # every transaction up to here is there, or its place is another one's
        self._excused = _closure(source, {*allowed.excused, *self._held_back_early()}, self._conflicts)
        self.there: dict[int, Transaction] = {}
        """The transactions that are in the target, by the number of that for which each stands."""

    def look(self) -> str | None:
        """Looks at the target if it has changed; returns what is wrong with it."""
        version = self._connection.execute("PRAGMA data_version").fetchone()[0]
        if version == self._version:
            return None
        self._version = version
        said = [name for (name,) in self._connection.execute(f"SELECT what FROM {self._source.journal} ORDER BY rowid")]
        if self.allowed.odd.planned:
            if (odd := self.allowed.odd.look(said)) is not None:
                return odd
            said = [name for name in said if not self.allowed.odd.said(name)]
        names = [name for name in said if not name.endswith(" extra")]
        before = {one.name for one in self.there.values()}
        if (wrong := self._twice(names) or self.allowed.extras.look(said, before)) is not None:
            return wrong
        fresh = sorted((self._by_name[n] for n in names if n not in before), key=lambda one: one.stands_for)
        for one in fresh:
            if one.stands_for in self.there:
                return f"{one.name} is applied, and {self.there[one.stands_for].name} too"
            self.there[one.stands_for] = one
        return next((wrong for one in fresh if (wrong := self._early(one, fresh))), None) or self._torn(fresh)

    def begin_anew(self) -> None:
        """Takes the target as it is now: somebody has replaced it."""
        self._version = self._connection.execute("PRAGMA data_version").fetchone()[0]
        names = [
            name for (name,) in self._connection.execute(f"SELECT what FROM {self._source.journal} ORDER BY rowid")
        ]
        self._whole = 0
        self.there = {one.stands_for: one for name in names if (one := self._by_name.get(name)) is not None}
        self._replayed.close()
        self._replayed = Replay(self._source.tables, told=self._source.tells_parents)
        self._replayed.add([one for _, one in sorted(self.there.items())], self.there)

    def missing(self) -> list[str]:
        """Returns the transactions that are not there."""
        places = {one.stands_for for one in self._source.history}
        lacking = sorted(places - self.there.keys() - self.allowed.discarded)
        return [*(f"T-{number}" for number in lacking), *self.allowed.extras.missing(), *self.allowed.odd.missing()]

    def hopeless(self, number: int) -> bool:
        """Returns whether a transaction conflicts with one that was discarded: the target may refuse it for ever."""
        return number in self._behind()

    def discarded(self, number: int) -> None:
        """Notes that the log says of a transaction that it is discarded.

        Raises:
            BrokenPromiseError: it is there.
        """
        if number in self.there:
            raise BrokenPromiseError(f"T-{number} is discarded, and was applied")
        self.allowed.gone.add(number)

    def holds_back(self, number: int) -> bool:
        """Returns whether a later transaction conflicts with this one."""
        return any(number in earlier for earlier in self._conflicts.values())

    def not_replaced(self, number: int) -> None:
        """Notes that an operator discards a transaction that its correction does not replace.

        The correction comes in its own place then: what waited for the transaction goes first.
        """
        if number in self.allowed.discarded:
            return  # the correction is discarded, and was to stand for it
        self.allowed.discarded.add(number)
        for one in self._source.history:
            if one.stands_for == number and number not in self.there:
                one.stands_for = one.number
        self._conflicts = _conflicts(self._source)

    def close(self) -> None:
        self._connection.close()
        self._replayed.close()
        self._source.database.close()

    def _early(self, one: Transaction, fresh: list[Transaction]) -> str | None:
        """Returns before what a transaction is there that it must not pass."""
        number, allowed = one.stands_for, self.allowed
        without_turn = allowed.odd.without_turn()
        not_waited_for = allowed.discarded | without_turn
        if number in allowed.gone:
            return f"{one.name} is applied, and was discarded"
        for earlier, shared in self._conflicts[number].items():
            if earlier in self.there or earlier in not_waited_for or (earlier, number) in allowed.late:
                continue
            if not self._touched_what_may_not_be(earlier, shared):
                return f"{one.name} is applied before T-{earlier}; both touch {sorted(map(str, shared))}"
        with_it = {other.stands_for for other in fresh}  # what is there only now was missing until now
        there = self.there.keys() - with_it if number in without_turn else ()
        if passed := [later for later in there if number in self._conflicts[later]]:
            return f"{one.name} is applied after T-{passed[0]}, which conflicts with it"
        if allowed.prefix:
            gap = self._gap(number)
            if gap and (self._excused | self._behind()).isdisjoint({*gap, *with_it}):
                return f"{one.name} is applied before T-{gap[0]}, and targetConsistency is prefix"
        return None

    def _touched_what_may_not_be(self, number: int, shared: set[object]) -> bool:
        """Returns whether a transaction touches this only by rows as they were in the source, and they may never be so.

        Where a transaction that comes before it was discarded, so may have been the one that made such a row.
        """
        return shared.isdisjoint(self._source.history[number - 1].named) and number in self._behind()

    def _held_back_early(self) -> set[int]:
        """Returns the transactions before one that fails ahead of its turn which conflict with it.

        Its unit comes before theirs in the log, and holds them back until it is discarded.
        """
        return {earlier for number in self.allowed.odd.without_turn() for earlier in self._conflicts[number]}

    def _gap(self, number: int) -> list[int]:
        """Returns the transactions before this one that are not there."""
        while self._whole + 1 < number and (self._whole + 1 in self.there or not self._is_place(self._whole + 1)):
            self._whole += 1
        return [n for n in range(self._whole + 1, number) if n not in self.there and self._is_place(n)]

    def _behind(self) -> frozenset[int]:
        """Returns what was discarded, and what conflicts with it and comes later, and so on."""
        return _closure(self._source, self.allowed.discarded, self._conflicts)

    def _is_place(self, number: int) -> bool:
        return self._source.history[number - 1].stands_for == number

    def _twice(self, names: list[str]) -> str | None:
        unknown = [name for name in names if name not in self._by_name]
        if unknown:
            return f"the target has a transaction {unknown[0]} that the source never had"
        there = set(names)
        twice = sorted({name for name in names if names.count(name) > 1}) if len(there) < len(names) else []
        if twice:
            return f"{twice[0]} is applied twice"
        lost = [one.name for one in self.there.values() if one.name not in there]
        return f"{lost[0]} was there and is gone" if lost else None

    def _torn(self, fresh: list[Transaction]) -> str | None:
        after = f"after {', '.join(one.name for one in fresh) or 'no transaction'} was applied"
        try:
            self._replayed.add(fresh, self.there, self._behind())
        except sqlite3.Error as error:
            return f"what is applied cannot have been applied in order ({error}), {after}"
        for name, table in self._source.tables.items():
            found, expected = rows_of(self._connection, table), self._replayed.database.rows(table)
            if found != expected:
                keys = sorted(key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key))
                return f"{name} {keys[0]} is {found.get(keys[0])}, not {expected.get(keys[0])}, {after}"
        return None


def _conflicts(source: Source) -> dict[int, dict[int, set[object]]]:
    """Returns, by number, the earlier transactions that a transaction conflicts with, and what on."""
    found: dict[int, dict[int, set[object]]] = {}
    written: defaultdict[object, list[int]] = defaultdict(list)
    read: defaultdict[object, list[int]] = defaultdict(list)
    at = 0
    for one in sorted(source.history, key=lambda one: one.stands_for):
        while at < one.stands_for - 1:
            at = _note(source.history[at], written, read)
        mine: defaultdict[int, set[object]] = defaultdict(set)
        for tokens, others in ((one.written, (written, read)), (one.read, (written,))):
            for token in tokens:
                for numbers in others:
                    for number in numbers.get(token, ()):
                        mine[number].add(token)
        found[one.number] = dict(sorted(mine.items()))
    return found


def _note(one: Transaction, written: dict[object, list[int]], read: dict[object, list[int]]) -> int:
    """Notes what a transaction touches, unless it stands for another one; returns its number."""
    if one.number == one.stands_for:
        for tokens, noted in ((one.written, written), (one.read, read)):
            for token in tokens:
                noted[token].append(one.number)
    return one.number


def _closure(source: Source, some: Collection[int], conflicts: dict[int, dict[int, set[object]]]) -> frozenset[int]:
    """Returns the transactions, and those that conflict with one of them and come later, and so on."""
    found = set(some)
    for one in source.history if found else ():
        if found & conflicts[one.number].keys() or one.stands_for in found:
            found.add(one.number)
    return frozenset(found)
