"""A target filled by a copy that is made while Aurora DSQL goes on: with ``--copied-until`` it becomes what DSQL has.

No copy of a large database is made at one moment: DSQL ends each transaction after five minutes. So the copy here has
each row as it was at some moment of its own. All units since the stream began are applied to it, those that the copy
has already too. States: before the copy's end the target may mix moments; once all units up to that time are applied,
each state of the target is one that the source had.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest

from kainite.log.format.entry import UnitStatus
from kainite.processors.frame import Record
from kainite.processors.tables import CurrentTables
from kainite.uow.catalogue.file import write_catalogue
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.delta import Delta, parse_delta
from kainite_demo.dsql_changes import NetChange
from kainite_demo.dsql_records import Committed, Recorder
from kainite_processors.aurora_dsql import DsqlRules, deltas_of
from support.stores import Database, Store, Stores

KEYS = range(12)
BEFORE, COPIED, AFTER = 20, 60, 30
"""Transactions before the stream began, while the copy was made, and after it."""
STREAM_BEGAN = BEFORE
COPY_ENDED = BEFORE + COPIED

Rows = dict[int, str]


class History:
    """A source's transactions; the number of a transaction is its commit time.

    Attributes:
        states: the rows after each transaction; the first state has none.
        changes: what each transaction did.
    """

    def __init__(self, choice: random.Random) -> None:
        self.states: list[Rows] = [{}]
        self.changes: list[tuple[NetChange, ...]] = []
        for number in range(BEFORE + COPIED + AFTER):
            rows = dict(self.states[-1])
            keys = choice.sample(KEYS, choice.randint(1, 3))
            self.changes.append(tuple(_changed(rows, key, f"{number}", choice) for key in keys))
            self.states.append(rows)

    def copied(self, choice: random.Random) -> Rows:
        """Returns a copy that has each row as it was at a moment of its own, after the stream began."""
        moments = {key: choice.randint(STREAM_BEGAN, COPY_ENDED) for key in KEYS}
        return {key: self.states[at][key] for key, at in moments.items() if key in self.states[at]}


def _changed(rows: Rows, key: int, value: str, choice: random.Random) -> NetChange:
    if key in rows and choice.random() < 0.4:
        del rows[key]
        return NetChange("main", "item", "d", {"id": key}, None)
    operation = "u" if key in rows else "c"
    rows[key] = value
    return NetChange("main", "item", operation, None, {"id": key, "v": value})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    stores = Stores(Database(f"sqlite:///{tmp_path}/target.db"))
    yield stores.open("CREATE TABLE item (id integer PRIMARY KEY, v text NOT NULL)")
    stores.close()


Turn = Callable[[int, tuple[NetChange, ...]], tuple[Delta, ...]]


def turning(folder: Path, url: str, until: int) -> Turn:
    """Returns what turns a transaction into deltas, as the record processor does with ``--copied-until``."""
    write_catalogue(reflect(url), folder / "catalogue.json")
    rules = DsqlRules(CurrentTables(None, folder / "catalogue.json"), copied_until=until)
    recorder = Recorder(random.Random(0))

    def turn(time: int, changes: tuple[NetChange, ...]) -> tuple[Delta, ...]:
        records = recorder.records_of(Committed(f"T-{time}", time, changes), time)
        emitted = (deltas_of(Record(data, "k", f"{time}", 0.0), rules) for data in records)
        return tuple(parse_delta(orjson.loads(orjson.dumps(delta))) for deltas in emitted for delta in deltas)

    return turn


def fill(store: Store, rows: Rows) -> None:
    store.apply(store.unit(0, *(store.insert("item", id=key, v=value) for key, value in rows.items())))


@pytest.mark.parametrize("seed", range(5))
def test_the_target_becomes_what_the_source_is_and_from_the_copys_end_on_follows_it(
    store: Store, tmp_path: Path, seed: int
) -> None:
    history, choice = History(random.Random(seed)), random.Random(-seed)
    turn = turning(tmp_path, store.database.url, COPY_ENDED)
    fill(store, history.copied(choice))
    for number, changes in list(enumerate(history.changes, 1))[STREAM_BEGAN:]:
        (outcome,) = store.apply(store.unit(number, *turn(number, changes)))
        assert outcome.status is UnitStatus.COMMITTED, outcome.cause
        if number >= COPY_ENDED:
            assert dict(store.rows("item")) == history.states[number]


def test_without_the_time_units_that_the_copy_has_already_fail_and_are_seen(store: Store, tmp_path: Path) -> None:
    history, choice = History(random.Random(1)), random.Random(-1)
    turn = turning(tmp_path, store.database.url, 0)
    fill(store, history.copied(choice))
    units = [store.unit(number, *turn(number, each)) for number, each in enumerate(history.changes, 1)][STREAM_BEGAN:]
    causes = " ".join(outcome.cause or "" for unit in units for outcome in store.apply(unit))
    assert "UNIQUE constraint failed" in causes
    assert "delete met 0 rows" in causes
    assert "update met 0 rows" in causes
