"""Sessions of one process read MariaDB at one point, behind which heartbeats are written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kainite.base.errors import SourceError
from kainite.capture.mysql import same_place
from kainite.capture.mysql.snapshot_session import SnapshotSession
from kainite.capture.mysql.snapshot_tables import snapshot_tables
from kainite.capture.mysql.text_forms import TextSpelling
from kainite.replicate.binlog_point import source_catalogue
from kainite.replicate.binlog_points import BinlogPoints, beat_binlog
from support.binlog_loading import binlog_loading
from support.mariadb_source import source_database
from support.names import unique


def ids(session: SnapshotSession) -> list[str | None]:
    return [row[0] for row in session.rows("SELECT id + 0 FROM item ORDER BY id", [TextSpelling.AS_IT_IS])]


def test_all_sessions_see_what_was_there_at_the_point(
    mariadb_source_server: str, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(same_place, "has_xa", lambda _: False)  # other tests of the server may have
    with (
        source_database(mariadb_source_server) as source,
        binlog_loading(source, postgres, tmp_path, ["CREATE TABLE item (id INT PRIMARY KEY)"], []) as world,
    ):
        with source_catalogue(world.ends) as (catalogue, database):
            points = BinlogPoints(world.ends, snapshot_tables(catalogue, database, ()), 3)
        world.in_source("INSERT INTO item VALUES (1)")
        floor = points.floor()
        with points.snapshot() as found:
            points.beat()
            world.in_source("INSERT INTO item VALUES (2)")
            assert [ids(session) for session in points.sessions] == [["1"]] * 3
        assert (floor, found.place, points.shown(found.place)) == (2, 2, "transaction 1")
        assert points.floor() == 4


def test_a_source_that_takes_no_heartbeat_says_which_right_is_missing(
    mariadb_source_server: str, postgres: str, tmp_path: Path
) -> None:
    name = unique("reader").replace("-", "_")
    with (
        source_database(mariadb_source_server) as source,
        binlog_loading(source, postgres, tmp_path, [f"CREATE USER {name}@localhost"], []) as world,
    ):
        database = source.split("/")[3].split("?")[0]
        world.in_source(f"GRANT SELECT ON {database}.* TO {name}@localhost")
        poor = replace(world.ends, source=replace(world.ends.source, url=source.replace("root@", f"{name}@")))
        with pytest.raises(SourceError, match="GRANT CREATE, SELECT, INSERT, UPDATE ON its database's kainite_heart"):
            beat_binlog(poor)
        world.in_source(f"GRANT CREATE, INSERT, UPDATE ON {database}.kainite_heartbeat TO {name}@localhost")
        beat_binlog(poor)
        world.in_source(f"DROP USER {name}@localhost")
