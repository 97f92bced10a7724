"""The settings file of a new replica."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite import settings
from kainite.base.errors import SettingsError
from kainite.replicate.binlog_ends import binlog_ends_of
from kainite.replicate.configured_ends import ends_of
from kainite.replicate.new_file import write_properties


def test_the_file_is_one_that_kainite_reads(tmp_path: Path) -> None:
    path = tmp_path / "shop.properties"
    write_properties(path, "postgresql://h/shop", "postgresql://h/replica", "Shop-changes")
    ends = ends_of(settings.load(path, needs=("applicationName",)))
    assert (ends.source.slot, ends.source.publication) == ("shop_changes", "shop_changes")
    assert (ends.source.url, ends.target) == ("postgresql://h/shop", "postgresql://h/replica")
    with pytest.raises(SettingsError, match="is there already"):
        write_properties(path, "postgresql://h/shop", "postgresql://h/replica", "Shop-changes")


@pytest.mark.parametrize(
    ("source", "told"), [(None, "give all of"), ("host=a dbname=b", "must be a URL"), ("foo", "must be a URL")]
)
def test_what_no_file_can_have_is_refused(tmp_path: Path, source: str | None, told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        write_properties(tmp_path / "x", source, "postgresql://h/replica", "s")
    with pytest.raises(SettingsError, match="cannot be written"):
        write_properties(tmp_path / "none" / "x", "postgresql://h/s", "postgresql://h/replica", "s")


@pytest.mark.parametrize(
    ("target", "stream", "told"),
    [
        ("replica", "shop-changes", "target: must be postgresql://"),
        ("postgresql://h/replica", "a b", "streamName: must be a stream name"),
        ("postgresql://h/replica", "s", "applicationName: must be a DynamoDB table name"),
    ],
)
def test_no_file_is_left_that_no_command_can_use(tmp_path: Path, target: str, stream: str, told: str) -> None:
    path = tmp_path / "shop.properties"
    with pytest.raises(SettingsError, match=f"{told}.*; the file was not written"):
        write_properties(path, "postgresql://h/shop", target, stream)
    assert not path.exists()


def test_a_source_of_mariadb_has_its_own_extractor(tmp_path: Path) -> None:
    path = tmp_path / "shop.properties"
    write_properties(path, "mariadb://kainite@a/shop", "postgresql://kainite@b/shop", "shop-changes")
    configured = settings.load(path, needs=("applicationName",))
    ends = binlog_ends_of(configured)
    assert ends.source.url == "mariadb://kainite@a/shop"
    assert ends.target == "postgresql://kainite@b/shop"
    assert ends.offsets.path == tmp_path / "shop.offset"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("mariadb://kainite@a/shop", "Passwords belong into KAINITE_SOURCE_PASSWORD and the target's address."),
        ("postgresql://kainite@a/shop", "Passwords belong into ~/.pgpass and the target's address."),
    ],
)
def test_a_target_of_mariadb_is_read_where_it_may_be_one(tmp_path: Path, source: str, told: str) -> None:
    path = tmp_path / "shop.properties"
    write_properties(path, source, "mariadb://kainite@b/public", "shop-changes")
    assert told in path.read_text()
    configured = settings.load(path, needs=("applicationName",))
    connecting = binlog_ends_of if source.startswith("mariadb") else ends_of
    assert connecting(configured).target == "mariadb://kainite@b/public"
