"""A schema of more than thirty tables: made in an empty target, loaded, and followed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from kainite import settings
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.configured_ends import ends_of
from kainite.replicate.findings import CheckVerdict
from kainite.replicate.ledger import LoadState
from kainite.replicate.preparation import look, write
from kainite.settings import Settings
from kainite_demo.postgres_server import programs
from support.replica import Replica
from support.replicas import InlineSteps, Loading
from support.thirty_tables import CHANGES, FILL, SCHEMA


def settings_of(source: SourceSlot, target: str, folder: Path, endpoint: str) -> Settings:
    command = f"kainite-extract-postgresql --source {source.url!r} --slot {source.slot} --publication changes"
    values = {
        "applicationName": "shop", "streamName": source.slot, "target": target, "extractorName": command,
        "extractorMode": "cyclic", "extractorOffsets": "kainite", "extractorOffsetFile": "shop.offset",
        "unitsOfWork": "true", "uowOrder": "dense", "kinesisEndpoint": endpoint, "regionName": "us-east-1",
        "logTableName": "log", "logPartition": "0",
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
