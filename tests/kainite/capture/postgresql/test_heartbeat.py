"""Heartbeats become units without deltas, with numbers that no restart changes; a source that takes none is read."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import psycopg
import pytest

from kainite.capture.heartbeats import Heartbeats
from kainite.capture.postgresql.extractor import PostgresExtractor, Reading
from kainite.capture.postgresql.heartbeat import PREFIX, MessageHeartbeat
from kainite.capture.postgresql.offset import Offset
from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite_demo.postgres_server import postgres

LIMIT = 60.0
OFTEN = 0.001
NEVER_AGAIN = 3600.0


@pytest.fixture
def without_its_standby() -> Iterator[str]:
    """Gives the URL of a server that waits with each commit for a standby which never comes."""
    with (
        TemporaryDirectory(prefix="kainite-pg-") as folder,
        postgres(Path(folder, "pg"), wal_level="logical", synchronous_standby_names="nobody") as url,
    ):
        yield url


def created(source: SourceSlot) -> dict[str, Any]:
    with create_slot(source) as slot:
        return Offset(slot.lsn, 0).as_json()


def units(extractor: PostgresExtractor, start: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Asks until ``count`` units have ended, never storing anything; returns their ends."""
    ends: list[dict[str, Any]] = []
    offset, deadline = start, time.monotonic() + LIMIT
    while len(ends) < count and time.monotonic() < deadline:
        for message in map(orjson.loads, extractor.answer(orjson.dumps({"start": offset, "stored": start}))):
            offset = message.get("offset", offset)
            ends += [message] if message.get("end") else []
    extractor.close()
    return ends[:count]


def test_a_heartbeat_is_a_unit_without_deltas_with_the_next_number(source: SourceSlot) -> None:
    start = created(source)
    before = time.time_ns()
    ends = units(PostgresExtractor(Reading(source, heartbeat=OFTEN)), start, 3)

    assert [(end["number"], end["count"]) for end in ends] == [(1, 0), (2, 0), (3, 0)]
    assert all(abs(end["time"] - before) < 300e9 for end in ends)


def test_what_was_a_heartbeat_keeps_its_number_without_the_option(source: SourceSlot) -> None:
    start = created(source)
    first = units(PostgresExtractor(Reading(source, heartbeat=OFTEN)), start, 2)
    with psycopg.connect(source.url, autocommit=True) as connection:
        connection.execute("INSERT INTO item VALUES (1, 'x', 1)")

    again = units(PostgresExtractor(Reading(source)), start, 3)

    assert again[:2] == first
    assert [end["number"] for end in again] == [1, 2, 3]


def test_messages_of_others_and_outside_of_transactions_take_no_number(source: SourceSlot) -> None:
    start = created(source)
    with psycopg.connect(source.url, autocommit=True) as connection:
        connection.execute("SELECT pg_logical_emit_message(true, 'of another program', 'x')")
        connection.execute("SELECT pg_logical_emit_message(false, %s, '')", [PREFIX])
        connection.execute("INSERT INTO item VALUES (1, 'x', 1)")

    (end,) = units(PostgresExtractor(Reading(source)), start, 1)

    assert (end["number"], end["count"]) == (1, 1)


def test_a_beat_that_is_not_due_writes_nothing(source: SourceSlot) -> None:
    start = created(source)
    heartbeat = Heartbeats(MessageHeartbeat(source.url), NEVER_AGAIN)
    for _ in range(3):
        heartbeat.beat()
    heartbeat.close()
    with psycopg.connect(source.url, autocommit=True) as connection:
        connection.execute("INSERT INTO item VALUES (1, 'x', 1)")

    assert [end["count"] for end in units(PostgresExtractor(Reading(source)), start, 2)] == [0, 1]


def test_a_source_that_takes_no_heartbeat_is_told_once_for_each_reason(source: SourceSlot) -> None:
    told: list[str] = []
    separator = "&" if "?" in source.url else "?"
    hours = iter(range(0, 100_000, 3600))
    heartbeat = Heartbeats(
        MessageHeartbeat(f"{source.url}{separator}user=nobody_here"), 60.0, lambda: next(hours), told.append
    )
    for _ in range(3):
        heartbeat.beat()
    heartbeat.close()

    assert len(told) == 1
    assert "no heartbeat can be written into the source" in told[0]


def test_a_heartbeat_does_not_wait_for_a_standby_that_is_away(without_its_standby: str) -> None:
    told: list[str] = []
    heartbeat = Heartbeats(MessageHeartbeat(without_its_standby), NEVER_AGAIN, complain=told.append)
    beating = threading.Thread(target=heartbeat.beat, daemon=True)  # it would wait until the server stops
    beating.start()
    beating.join(LIMIT)

    assert not beating.is_alive()
    assert not told
    heartbeat.close()
