"""A settings file names a source of either kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite import settings
from kainite.capture.mysql.command import PROGRAM as OF_MARIADB
from kainite.capture.postgresql.command import PROGRAM as OF_POSTGRESQL
from kainite.replicate.any_ends import any_ends_of
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.ends import ReplicaEnds
from kainite.settings import Settings


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (f"{OF_MARIADB} --source mariadb://kainite@a/shop", BinlogEnds),
        (f"{OF_POSTGRESQL} --source postgresql://a/shop --slot s --publication p", ReplicaEnds),
    ],
)
def test_the_extractor_tells_the_kind(tmp_path: Path, command: str, kind: type) -> None:
    ends = any_ends_of(configured(tmp_path, command, "postgresql://b/shop"))
    assert isinstance(ends, kind)
    assert ends.target == "postgresql://b/shop"
    into_mariadb = configured(tmp_path, command, "mariadb://b/shop")
    assert any_ends_of(into_mariadb).target == "mariadb://b/shop"


def configured(folder: Path, command: str, target: str) -> Settings:
    values = {
        "applicationName": "shop", "streamName": "s", "target": target, "unitsOfWork": "true",
        "extractorName": command, "extractorMode": "cyclic", "extractorOffsets": "kainite",
        "extractorOffsetFile": "shop.offset",
    }  # fmt: skip
    path = folder / "shop.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return settings.load(path, needs=())
