"""Whether a MariaDB source is closed, and who may write in it all the same."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from kainite.replicate.binlog_closing import look_at_binlog_writers
from kainite.targets.mariadb.connection import connect
from support.binlog_loading import BinlogLoading, binlog_loading
from support.mariadb_source import execute, source_database
from support.names import unique


def told(world: BinlogLoading) -> str:
    found = look_at_binlog_writers(world.ends)
    return " | ".join(f"{one.verdict} {one.about}: {one.found} -> {one.mend}" for one in found)


def test_sessions_and_users_are_named_and_the_missing_rights(
    mariadb_source_server: str, postgres: str, tmp_path: Path
) -> None:
    name = unique("writer").replace("-", "_")
    with (
        source_database(mariadb_source_server) as source,
        binlog_loading(source, postgres, tmp_path, ["CREATE TABLE item (id INT)"], []) as world,
    ):
        url = source.replace("root@", f"{name}@")
        database = source.split("/")[3].split("?")[0]
        execute(source, f"CREATE USER {name}@localhost", f"GRANT SELECT ON {database}.* TO {name}@localhost")
        try:
            with closing(connect(url)):
                found = told(world)
                assert f"({name}) -> KILL them" in found
                assert "wrong source: the server takes writes -> SET GLOBAL read_only = 1" in found
                assert "wrong rights" not in found
            poor = BinlogLoading(replace(world.ends, source=replace(world.ends.source, url=url)))
            found = told(poor)
            assert "wrong rights: the source's user may write no marker" in found
            assert f"has no CREATE, INSERT, UPDATE on {database}.kainite_heartbeat" in found
            execute(
                source, f"GRANT READ_ONLY ADMIN ON *.* TO {name}@localhost",
                f"GRANT CREATE, INSERT, UPDATE ON {database}.kainite_heartbeat TO {name}@localhost",
                "SET GLOBAL read_only = 1",
            )  # fmt: skip
            found = told(poor)
            assert "ok source: the server refuses writes (read_only)" in found
            assert "wrong rights" not in found
            assert f"'{name}'@'localhost' may write all the same" in told(world)
        finally:
            execute(source, "SET GLOBAL read_only = 0", f"DROP USER {name}@localhost")


def test_what_writes_without_a_session_is_named(mariadb_source_server: str, postgres: str, tmp_path: Path) -> None:
    with (
        source_database(mariadb_source_server) as source,
        binlog_loading(source, postgres, tmp_path, ["CREATE TABLE item (id INT)"], []) as world,
    ):
        found = told(world)
        assert "replicates another server" not in found
        assert "event scheduler" not in found
        name = unique("origin").replace("-", "_")
        try:
            execute(
                source, "SET GLOBAL event_scheduler = ON",
                f"CHANGE MASTER '{name}' TO master_host = '127.0.0.1', master_port = 1, master_user = 'nobody'",
                f"START SLAVE '{name}' SQL_THREAD",
            )  # fmt: skip
            found = told(world)
        finally:
            execute(source, "SET GLOBAL event_scheduler = OFF", f"STOP SLAVE '{name}'", f"RESET SLAVE '{name}' ALL")
        assert "warning source: it replicates another server, whose changes read_only lets through" in found
        assert "its event scheduler is on" in found
