"""The apply job's transactions through PgBouncer, in whose one session other clients have left their settings."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from kainite.doctor.finding import FindingState
from kainite.settings import load
from kainite.targets.postgresql.pooling import OWN_POOL
from kainite_spark.doctor import look_at_target
from support.pgbouncer import leave_settings_behind, pgbouncer
from support.stores import Database, Store, Stores

TABLES = """
    CREATE TABLE item (id bigint PRIMARY KEY, at timestamptz, day date, lasts interval, note text, words text[]);
    CREATE SCHEMA elsewhere;
    CREATE TABLE elsewhere.item (other int PRIMARY KEY);
"""
TOLD = "the target is behind a pooler in transaction mode"


@pytest.fixture
def pooled(postgres: str) -> Iterator[str]:
    with pgbouncer(postgres) as url:
        yield url


@pytest.fixture
def store(postgres: str, pooled: str) -> Iterator[Store]:
    opened = Stores(Database(postgres, pooled))
    opened.database.run(TABLES)
    leave_settings_behind(pooled)
    yield opened.open("")
    opened.close()


def test_the_other_clients_settings_are_there(pooled: str, postgres: str) -> None:
    Database(postgres).run(TABLES)
    leave_settings_behind(pooled)
    with psycopg.connect(pooled) as client:
        assert client.execute("SELECT current_schema(), current_setting('array_nulls')").fetchall() == [
            ("elsewhere", "off")
        ]


def test_values_are_stored_as_they_are_meant(store: Store, pooled: str) -> None:
    values = {"at": "2026-01-02 12:00:00", "day": "2026-03-04", "lasts": "1 mon 2 days", "note": "€ 東京"}
    for tid in (1, 2):
        leave_settings_behind(pooled)
        unit = store.unit(tid, store.insert("item", id=tid, **values, words="{a,NULL}"))
        assert store.statuses(unit) == ["committed"]
    read = "extract(hour FROM at AT TIME ZONE 'UTC')::int, day = '2026-03-04', lasts = '1 mon 2 days', note, words"
    row = (12, True, True, "€ 東京", ["a", None])
    assert store.database.rows(f"SELECT id, {read} FROM public.item ORDER BY id") == [(1, *row), (2, *row)]
    assert store.acknowledged() == [1, 2]
    assert store.session.applied("0", [1, 2, 3]) == {1, 2}


def test_a_locked_row_is_waited_for_no_longer_than_elsewhere(store: Store, postgres: str, pooled: str) -> None:
    assert store.statuses(store.unit(1, store.insert("item", id=1, note="old"))) == ["committed"]
    with psycopg.connect(postgres) as holder:
        # Who waits for longer gets the row, and is committed.
        holder.execute("SET idle_in_transaction_session_timeout = '15s'")
        holder.execute("SELECT FROM item WHERE id = 1 FOR UPDATE")
        leave_settings_behind(pooled)
        [outcome] = store.apply(store.unit(2, store.update("item", {"id": 1}, note="new")))
        assert outcome.status.value != "committed"
        assert "lock timeout" in (outcome.cause or "")
    leave_settings_behind(pooled)
    assert store.statuses(store.unit(2, store.update("item", {"id": 1}, note="new"))) == ["committed"]
    assert store.database.rows("SELECT note FROM item") == [("new",)]


def test_the_start_tells_it_once(store: Store, postgres: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        store.target.prepare("0", store.catalogue)
    [told] = [record for record in caplog.records if record.getMessage() == TOLD]
    assert told.levelno == logging.WARNING
    caplog.clear()
    straight = Stores(Database(postgres))
    straight.open("")
    straight.close()
    assert TOLD not in caplog.messages


def test_the_doctor_tells_it_and_finds_the_tables(store: Store, pooled: str, tmp_path: Path) -> None:
    leave_settings_behind(pooled)
    path = tmp_path / "app.properties"
    path.write_text(f"applicationName=app\nregionName=us-east-1\ntarget={pooled}\n")
    found = [finding for finding in look_at_target(load(path, needs=())) if finding.state is not FindingState.WELL]
    assert [(finding.state, finding.remedy) for finding in found] == [(FindingState.WARNING, OWN_POOL)]
