"""What a look at the settings, the offset file and the stream finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kainite import settings
from kainite.extract.offsets.offset_file import offset_file_of
from kainite.extract.offsets.place import Place
from kainite.replicate.findings import CheckFinding
from kainite.replicate.settings_checks import BYTES_A_SECOND, look_at_settings
from kainite.replicate.tables import ReplicaTable, TablePart
from kainite.settings import Settings
from support.names import unique


@pytest.fixture
def configured(tmp_path: Path, kinesis: Any, moto_endpoint: str) -> Settings:
    name = unique("s")
    kinesis.create_stream(StreamName=name, ShardCount=1)
    values = {
        "applicationName": "shop", "streamName": name, "extractorName": "x", "extractorMode": "cyclic",
        "extractorOffsets": "kainite", "extractorOffsetFile": "shop.offset", "unitsOfWork": "true",
        "uowOrder": "dense", "kinesisEndpoint": moto_endpoint, "regionName": "us-east-1",
    }  # fmt: skip
    path = tmp_path / "shop.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return settings.load(path, needs=())


def table(seconds: int) -> ReplicaTable:
    part = TablePart(1, "t", 0, seconds * BYTES_A_SECOND)
    return ReplicaTable("public", "t", "public.t", (), (), "d", 0, (part,))


def told(findings: list[CheckFinding]) -> dict[str, str]:
    return {finding.about: f"{finding.verdict}: {finding.found} → {finding.mend}" for finding in findings}


def test_the_offset_file_is_looked_for(configured: Settings) -> None:
    found = told(list(look_at_settings(configured, [], 0x10)))
    assert """--begin '{"lsn":"0/10","number":0}'""" in found["offset file"]
    file = offset_file_of(configured)
    assert file is not None
    file.create(Place({"lsn": "0/10", "number": 0}))
    assert told(list(look_at_settings(configured, [], 0x10)))["offset file"].startswith("ok")
    file.path.write_text("{")
    assert "is broken" in told(list(look_at_settings(configured, [], 0x10)))["offset file"]


def test_the_streams_retention_is_compared_with_the_load(configured: Settings) -> None:
    assert "ok: the load takes about 60 s" in told(list(look_at_settings(configured, [table(60)], None)))["retention"]
    long = told(list(look_at_settings(configured, [table(7 * 3600)], None)))["retention"]
    assert long.startswith("wrong: the load takes about 7.0 h")
    assert long.endswith("--retention-period-hours 29")
    away = replace(configured, stream=replace(configured.stream, name="none"))
    assert "cannot be asked" in told(list(look_at_settings(away, [table(60)], None)))["retention"]


def test_settings_by_which_the_target_would_be_another_are_told(configured: Settings, tmp_path: Path) -> None:
    path = tmp_path / "other.properties"
    text = (tmp_path / "shop.properties").read_text()
    path.write_text(text.replace("dense", "arrival") + "targetConsistency=conflict\n")
    found = [one.mend for one in look_at_settings(settings.load(path, needs=()), [], None) if one.about == "settings"]
    assert found == ["uowOrder = dense", "targetConsistency = prefix"]
