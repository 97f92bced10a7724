"""From two empty hands to a target that may be loaded: what is found, and what is made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kainite import settings
from kainite.base.errors import SettingsError, SourceError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.configured_ends import ends_of
from kainite.replicate.findings import CheckFinding, is_ready
from kainite.replicate.preparation import check_ready, look, target_catalogue, write
from kainite.settings import Settings
from kainite_demo.postgres_server import programs
from support.replicas import run

TABLES = """
    DROP TABLE item, note;
    CREATE TABLE parent (id int PRIMARY KEY, name text UNIQUE);
    CREATE TABLE child (id int PRIMARY KEY, parent_id int REFERENCES parent ON DELETE CASCADE);
    CREATE INDEX child_parent ON child (parent_id);
    INSERT INTO parent VALUES (1, 'one');
"""


@pytest.fixture
def configured(
    source: SourceSlot, postgres: str, tmp_path: Path, kinesis: Any, moto_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Settings]:
    """Gives the settings of a replica of ``TABLES`` in an empty database, with a stream."""
    monkeypatch.setenv("PATH", f"{programs()}:/usr/bin:/bin")
    run(source.url, "DROP PUBLICATION changes", TABLES)
    kinesis.create_stream(StreamName=source.slot, ShardCount=1)
    command = f"kainite-extract-postgresql --source {source.url!r} --slot {source.slot} --publication changes"
    values = {
        "applicationName": "shop", "streamName": source.slot, "target": postgres, "extractorName": command,
        "extractorMode": "cyclic", "extractorOffsets": "kainite", "extractorOffsetFile": "shop.offset",
        "unitsOfWork": "true", "uowOrder": "dense", "kinesisEndpoint": moto_endpoint, "regionName": "us-east-1",
    }  # fmt: skip
    path = tmp_path / "shop.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    yield settings.load(path, needs=())
    kinesis.delete_stream(StreamName=source.slot)


def wrong(findings: list[CheckFinding]) -> dict[str, str]:
    return {finding.about: finding.mend for finding in findings if finding.verdict == "wrong"}


def test_what_is_missing_is_told_with_what_mends_it(configured: Settings, source: SourceSlot) -> None:
    found = look(configured)
    assert not is_ready(found)
    assert wrong(found) == {
        "publication": "CREATE PUBLICATION changes FOR ALL TABLES",
        "slot": f"SELECT pg_create_logical_replication_slot('{source.slot}', 'pgoutput'), or kainite replicate init"
        " --write",
        "offset file": 'kainite extract -p FILE --begin \'{"lsn":"…","number":0}\', or kainite replicate init --write',
    }
    with pytest.raises(SettingsError, match=r"the load cannot begin: slot: .*kainite replicate init"):
        check_ready(found)


def test_what_is_missing_is_made_and_a_second_time_nothing_is(configured: Settings, postgres: str) -> None:
    done = list(write(configured))
    assert [line.split()[:2] for line in done] == [
        ["made", "publication"], ["made", "replication"], ["made", "offset"], ["made", "2"],
    ]  # fmt: skip
    found = look(configured)
    assert wrong(found) == {}
    check_ready(found)
    assert list(write(configured)) == []
    assert run(postgres, "SELECT count(*) FROM parent") == [(0,)]
    waiting = "SELECT count(*) FROM kainite_load_step WHERE done_at IS NULL"
    assert run(postgres, waiting) == [(5,)]  # two primary keys, a unique one, an index, a foreign key
    assert not target_catalogue(configured, ends_of(configured)).tables["parent"].primary_key


def test_a_slot_without_an_offset_file_gets_one_until_the_target_is_loaded(
    configured: Settings, source: SourceSlot, postgres: str
) -> None:
    list(write(configured))
    file = configured.extract.offset_file
    assert file is not None
    first = file.read_bytes()
    file.unlink()
    assert [line.split()[:2] for line in write(configured)] == [["made", "offset"]]
    assert file.read_bytes() == first
    file.unlink()
    run(postgres, "UPDATE kainite_load SET position = '0/1'")
    with pytest.raises(SourceError, match="put a copy back"):
        list(write(configured))


def test_a_slot_that_is_gone_is_not_made_anew_behind_an_offset(configured: Settings, source: SourceSlot) -> None:
    list(write(configured))
    run(source.url, f"SELECT pg_drop_replication_slot('{source.slot}')")
    assert list(write(configured)) == []
    assert set(wrong(look(configured))) == {"slot"}
