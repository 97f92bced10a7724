"""Which MariaDB source a settings file names."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite import settings
from kainite.base.errors import SettingsError
from kainite.capture.mysql.command import PROGRAM
from kainite.replicate.binlog_ends import binlog_ends_of, has_binlog_source, reading_of, refuse_binlog_source
from kainite.settings import Settings


def configured(folder: Path, **more: str) -> Settings:
    values = {
        "applicationName": "shop", "streamName": "s", "target": "postgresql://b/shop", "unitsOfWork": "true",
        "extractorName": f"{PROGRAM} --source mariadb://kainite@a/shop --table one", "extractorMode": "cyclic",
        "extractorOffsets": "kainite", "extractorOffsetFile": "shop.offset",
    } | more  # fmt: skip
    path = folder / "shop.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return settings.load(path, needs=())


def test_the_source_is_read_as_the_extractor_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAINITE_SOURCE_PASSWORD", "s/cret")
    ends = binlog_ends_of(configured(tmp_path, logTableName="log", logPartition="7"))
    assert ends.source_url == "mariadb://kainite:s%2Fcret@a/shop"
    assert (ends.source.tables, ends.target, ends.log_partition) == (("one",), "postgresql://b/shop", "log/7")
    assert ends.offsets.path == tmp_path / "shop.offset"
    assert "cret" not in repr(ends)


def test_another_target_and_another_place_of_the_offset_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="copies from MariaDB into targets that begin with postgresql"):
        binlog_ends_of(configured(tmp_path, target="sqlite:///shop"))
    with pytest.raises(SettingsError, match="set extractorMode=cyclic and extractorOffsets=kainite"):
        binlog_ends_of(configured(tmp_path, extractorOffsets="extractor"))


def test_a_command_line_that_is_not_the_extractors_is_refused() -> None:
    with pytest.raises(SettingsError, match=f"must run {PROGRAM}"):
        reading_of(["other", "--source", "x"])
    with pytest.raises(SettingsError, match="No such option"):
        reading_of(["/bin/" + PROGRAM, "--source", "x", "--nothing"])


def test_what_takes_postgresql_alone_refuses_mariadb(tmp_path: Path) -> None:
    of_mariadb = configured(tmp_path)
    assert has_binlog_source(of_mariadb)
    with pytest.raises(SettingsError, match="takes PostgreSQL sources alone"):
        refuse_binlog_source(of_mariadb)
    other = configured(tmp_path, extractorName="another-program")
    assert not has_binlog_source(other)
    refuse_binlog_source(other)
