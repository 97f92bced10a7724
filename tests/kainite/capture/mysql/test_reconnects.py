"""Whatever a process has read when it ends, the next one goes on behind it: nothing is skipped, nothing comes twice."""

from __future__ import annotations

from typing import Any

import pytest

from support.mariadb_source import Extraction, execute, here, source_database
from support.mysql_server import IS_MYSQL

HISTORY = (
    "INSERT INTO item VALUES (1)",
    "XA START 'x'", "INSERT INTO item VALUES (2)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'",
    "BEGIN", "INSERT INTO item VALUES (3), (4)", "DELETE FROM item WHERE id = 1", "COMMIT",
    "FLUSH BINARY LOGS",
    "INSERT INTO item VALUES (5)",
    "BEGIN", "CREATE TEMPORARY TABLE mine (id int)", "INSERT INTO item VALUES (6)", "ROLLBACK",
    "CREATE TABLE other (id int PRIMARY KEY)",
    "INSERT INTO other VALUES (7)",
    "INSERT INTO item VALUES (8)",
)  # fmt: skip
LAST = 6 if IS_MYSQL else 7  # MySQL logs nothing of what is rolled back
PROCESSES = 60
"""More than are needed, also on a machine on which some answers have nothing."""


@pytest.fixture(autouse=True)
def one_transaction_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kainite.capture.mysql.extractor._RECORDS", 1)
    monkeypatch.setattr("kainite.capture.mysql.extractor._IDLE", 0.05)
    monkeypatch.setattr("kainite.capture.mysql.extractor.ADVANCE_EVERY_S", 0.0)


def read(database: str, start: dict[str, Any], answers: int) -> list[bytes]:
    """Returns all records, read by a new process after so many answers; each time one begins at the last offset."""
    found: list[bytes] = []
    offset = start
    for _ in range(PROCESSES):
        if offset["number"] >= LAST:
            break
        with Extraction(database, offset) as extraction:
            for _ in range(answers):
                found += extraction.answer()
                if extraction.offset["number"] >= LAST:
                    break
            offset = extraction.offset
    with Extraction(database, offset) as extraction:
        return [*found, *extraction.quiet()]


def test_each_transaction_comes_once_wherever_a_process_ends(database: str, mariadb_source_server: str) -> None:
    execute(database, "CREATE TABLE item (id int PRIMARY KEY)")
    start = here(database)
    with source_database(mariadb_source_server) as another:
        execute(database, *HISTORY[:6])
        execute(another, "CREATE TABLE item (id int PRIMARY KEY)", "INSERT INTO item VALUES (1)")
        execute(database, *HISTORY[6:])
        whole = read(database, start, answers=100)
        assert len(whole) == 8 + LAST
        for answers in (1, 2, 3):
            assert read(database, start, answers) == whole
