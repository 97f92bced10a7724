"""A schema of more than thirty tables: made in an empty target, loaded, followed, compared, and cut over."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest

from kainite import settings
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.applied_point import read_standing
from kainite.replicate.configured_ends import ends_of
from kainite.replicate.findings import CheckVerdict
from kainite.replicate.ledger import LoadState
from kainite.replicate.preparation import look, write
from kainite.settings import ApplySettings, Settings, TargetTriggers
from kainite_demo.postgres_server import programs
from kainite_spark.load.cutover import CutOver
from kainite_spark.load.cutover_sequences import PostgresSequences
from kainite_spark.load.cutover_source import PostgresCutOverSource
from support.comparisons import compared
from support.replica import Replica
from support.replicas import InlineSteps, Loading
from support.thirty_tables import CHANGES, FILL, MORE, SCHEMA, work


def settings_of(source: SourceSlot, target: str, folder: Path, endpoint: str, **more: str) -> Settings:
    command = f"kainite-extract-postgresql --source {source.url!r} --slot {source.slot} --publication changes"
    values = {
        "applicationName": "shop", "streamName": source.slot, "target": target, "extractorName": command,
        "extractorMode": "cyclic", "extractorOffsets": "kainite", "extractorOffsetFile": "shop.offset",
        "unitsOfWork": "true", "uowOrder": "dense", "kinesisEndpoint": endpoint, "regionName": "us-east-1",
        "logTableName": "log", "logPartition": "0", **more,
    }  # fmt: skip
    path = folder / "shop.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return settings.load(path, needs=())


def test_a_target_is_made_loaded_and_followed(
    source: SourceSlot, postgres: str, tmp_path: Path, kinesis: Any, moto_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{programs()}:/usr/bin:/bin")
    kinesis.create_stream(StreamName=source.slot, ShardCount=1)
    configured = settings_of(source, postgres, tmp_path, moto_endpoint)
    world = Loading(ends_of(configured), 0)
    world.in_source("DROP TABLE item, note", SCHEMA)
    list(write(configured))
    assert [found for found in look(configured) if found.verdict is CheckVerdict.WRONG] == []
    world.in_source(FILL, CHANGES[0])
    pending = list(CHANGES[1:4])
    load = world.load(InlineSteps(lambda _: world.in_source(pending.pop()) if pending else None))
    assert load.state is LoadState.LIVE
    assert world.differences().keys() == {"public.line", "public.line_note", "public.person", "public.product"}
    world.in_source(*CHANGES[4:])

    assert configured.extract.offset_file is not None
    begin = orjson.loads(configured.extract.offset_file.read_bytes())["start"]
    made = Replica(source, postgres, begin)
    try:
        made.catch_up(len(CHANGES) + 1)
        assert made.failed() == {}
    finally:
        made.close()
    assert world.differences() == {}
    described = (
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 AND conname NOT LIKE 'kainite%' ORDER BY 1, 2"
    )
    assert world.in_source(described) == world.in_target(described)
    indexes = "SELECT indexname, indexdef FROM pg_indexes WHERE tablename NOT LIKE 'kainite%' AND schemaname = 'public'"
    assert sorted(world.in_source(indexes)) == sorted(world.in_target(indexes))


OFF = ApplySettings(triggers=TargetTriggers.OFF)


class Shop:
    """A day's work in a source, from any thread."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._chance = random.Random(24)
        self._lock = threading.Lock()
        self.count = 0

    def work(self, times: int) -> None:
        with self._lock:
            for _ in range(times):
                self.count += 1
                self._connection.execute(work(self._chance, self.count).encode())

    @contextmanager
    def open(self) -> Iterator[None]:
        """Goes on with the work meanwhile."""
        closing_time = threading.Event()

        def work_on() -> None:
            while not closing_time.wait(0.01):
                self.work(1)

        with ThreadPoolExecutor(1) as pool:
            working = pool.submit(work_on)
            try:
                yield
            finally:
                closing_time.set()
                working.result()

    def close(self) -> None:
        self._connection.close()


def test_from_an_empty_target_to_a_database_that_is_written(
    source: SourceSlot, postgres: str, tmp_path: Path, kinesis: Any, moto_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Works in the shop until the source is closed for the cut-over."""
    monkeypatch.setenv("PATH", f"{programs()}:/usr/bin:/bin")
    kinesis.create_stream(StreamName=source.slot, ShardCount=1)
    configured = settings_of(source, postgres, tmp_path, moto_endpoint, targetTriggers="off")
    world = Loading(ends_of(configured), 0)
    world.in_source("DROP TABLE item, note", SCHEMA, MORE)
    list(write(configured))
    assert [found for found in look(configured) if found.verdict is CheckVerdict.WRONG] == []
    world.in_source(FILL)
    shop = Shop(source.url)
    with shop.open():
        assert world.load(InlineSteps(lambda _: shop.work(2))).state is LoadState.LIVE
    assert configured.extract.offset_file is not None
    begin = orjson.loads(configured.extract.offset_file.read_bytes())["start"]
    made = Replica(source, postgres, begin, apply=OFF)
    try:
        with made.living(until_cut_over=True):
            with shop.open():
                assert [compared(world.ends).verdict for _ in range(3)] == ["equal"] * 3
            shop.close()
            world.in_source(f"ALTER DATABASE {source.slot} SET default_transaction_read_only = on")
            log = partial(read_standing, made.store, "0")
            cut_source = PostgresCutOverSource(world.ends, PostgresSequences(world.ends))
            done = CutOver(cut_source, log, threading.Event(), lambda *_: None, 60.0).run()
        assert made.failed() == {}
    finally:
        made.close()
    assert done is not None
    assert world.found().state is LoadState.CUT_OVER
    assert world.differences() == {}
    check_written(world, done.sequences, done.triggers)


def check_written(world: Loading, sequences: tuple[str, ...], triggers: tuple[str, ...]) -> None:
    """Checks that the target gives the numbers that the source would give, and does what its triggers say."""
    numbered = "SELECT sequencename, last_value FROM pg_sequences WHERE sequencename NOT LIKE 'kainite%' ORDER BY 1"
    assert world.in_source(numbered) == world.in_target(numbered)
    assert {"public.ticket", "public.person_id_seq", "public.line_note_id_seq"} <= set(sequences)
    assert ["priced" in trigger for trigger in triggers] == [True]
    [(before,)] = world.in_target("SELECT count(*) FROM changed")
    assert world.in_target(
        "INSERT INTO person (name) VALUES ('written here')",
        "UPDATE product SET price = 1 WHERE sku = 'sku 1'",
        "SELECT count(*) FROM changed",
    ) == [(before + 1,)]
