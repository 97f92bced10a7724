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
    """Writes transactions in a thread until it is stopped: of one to six rows, some as XA, some rolled back in part."""

    def __init__(self, url: str, seed: int) -> None:
        self.committed = 0
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
    program = str(Path(sysconfig.get_path("scripts"), PROGRAM))
    bench.begin(orjson.dumps(here(database)).decode())
    return bench.cyclic(program, "--source", database, extractSpread="record", taskBackoffTimeMillis="50")


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
