"""The extractor runs under ``kainite extract``, and either is killed: each transaction arrives, with one number."""

from __future__ import annotations

import os
import random
import signal
import sysconfig
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest

from kainite.capture.mysql.command import PROGRAM
from support.extract_bench import Bench, bench, wait_until
from support.mariadb_source import execute, here, session

__all__ = ["bench"]

PLAIN, XA, ROLLED_BACK = range(3)


class Application:
    """Writes transactions in a thread until it is stopped: of one to six rows, some as XA, some rolled back in part.

    Args:
        url: the source.
        seed: of what it writes.
        others: whether each also has a row of another table.
    """

    def __init__(self, url: str, seed: int, *, others: bool = False) -> None:
        self.committed = 0
        self._others = others
        self._url = url
        self._choice = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Application:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with closing(session(self._url)) as connection:
            while not self._stop.wait(0.005):
                for statement in self._transaction():
                    connection.query(statement)
                self.committed += 1

    def _transaction(self) -> Iterator[str]:
        """Yields the statements of a transaction whose rows have its number, from 1, as their name."""
        number, kind = self.committed + 1, self._choice.choice((PLAIN, PLAIN, XA, ROLLED_BACK))
        yield f"XA START 'x{number}'" if kind == XA else "BEGIN"
        for part in range(self._choice.randint(1, 6)):
            yield f"INSERT INTO item VALUES ({10 * number + part}, '{number}')"
        if self._others:
            yield f"INSERT INTO other VALUES ({number})"
        if kind == ROLLED_BACK:
            yield "CREATE TEMPORARY TABLE mine (id int)"  # so that the server logs what is rolled back
            yield "SAVEPOINT a"
            yield f"INSERT INTO item VALUES ({-number}, 'never')"
            yield "ROLLBACK TO a"
            yield "DROP TEMPORARY TABLE mine"
        if kind == XA:
            yield from (f"XA END 'x{number}'", f"XA PREPARE 'x{number}'", f"XA COMMIT 'x{number}'")
        else:
            yield "COMMIT"


def reached(bench: Bench, number: int) -> bool:
    return int(bench.start()["number"]) >= number


def settings_of(bench: Bench, database: str) -> Path:
    execute(database, "CREATE TABLE item (id int PRIMARY KEY, name text)")
    bench.begin(orjson.dumps(here(database)).decode())
    return reading(bench, database)


def reading(bench: Bench, database: str, *tables: str) -> Path:
    """Writes the settings of an extraction that reads some tables, all where there are none."""
    program = str(Path(sysconfig.get_path("scripts"), PROGRAM))
    named = [word for table in tables for word in ("--table", table)]
    return bench.cyclic(program, "--source", database, *named, extractSpread="record", taskBackoffTimeMillis="50")


def check(bench: Bench, transactions: int) -> None:
    """Checks that units are whole, with one dense number each, in the source's order of commits."""
    units: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in map(orjson.loads, bench.records()):
        units[record["uow"]].append(record)
    numbers = {}
    for uow, records in units.items():
        (number,) = {record["number"] for record in records}
        (count,) = {record["count"] for record in records if record.get("end")}
        changes = [record for record in records if not record.get("end")]
        assert len({change["key"]["id"] for change in changes}) == count
        assert {change["new"]["name"] for change in changes} == {str(number)}
        numbers[number] = uow
    assert sorted(numbers) == list(range(1, transactions + 1))
    assert len(numbers) == len(units)


@pytest.mark.parametrize("of_extract", [True, False])
def test_killed_at_any_moment_nothing_is_missing_and_numbers_stay(
    bench: Bench, database: str, of_extract: bool
) -> None:
    settings, choice = settings_of(bench, database), random.Random(of_extract)
    with Application(database, seed=1) as application:
        for _ in range(3):
            goal = bench.start()["number"] + choice.randint(1, 40)
            with bench.running(settings) as process:
                wait_until(partial(reached, bench, goal), process)
                time.sleep(choice.uniform(0.0, 0.1))  # any moment is as good as another: that is the test
                if of_extract:
                    process.kill()
                    continue
                for child in psutil.Process(process.pid).children():
                    with suppress(ProcessLookupError):
                        os.kill(child.pid, signal.SIGKILL)
                wait_until(partial(reached, bench, goal + 1), process)
    with bench.running(settings) as process:
        wait_until(partial(reached, bench, application.committed), process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    check(bench, application.committed)
    assert bench.start()["number"] == application.committed


@pytest.mark.timeout(300)
def test_killed_and_begun_with_other_tables_each_unit_has_one_content(bench: Bench, database: str) -> None:
    """Shows it: what the killed extraction had put, and not yet in its offset, comes again with the same changes."""
    settings_of(bench, database)
    execute(database, "CREATE TABLE other (id int PRIMARY KEY)")
    choice = random.Random(5)
    choices: list[tuple[str, ...]] = [("item",), (), ("item", "other")]
    with Application(database, seed=2, others=True) as application:
        for turn in range(5):
            settings, goal = reading(bench, database, *choices[turn % 3]), bench.start()["number"] + 1
            with bench.running(settings) as process:
                wait_until(partial(reached, bench, goal), process)
                time.sleep(choice.uniform(0.0, 0.3))  # any moment is as good as another: that is the test
                process.kill()
    with bench.running(reading(bench, database)) as process:
        wait_until(partial(reached, bench, application.committed), process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    units: defaultdict[int, defaultdict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for record in map(orjson.loads, bench.records()):
        units[record["number"]][record.get("ordinal", -1)].append(record)
    assert sorted(units) == list(range(1, application.committed + 1))
    for records in units.values():
        assert all(one == copies[0] for copies in records.values() for one in copies)
        assert records[-1][0]["count"] == len(records) - 1
