"""Sessions whose snapshots have a place in the binlog."""

from __future__ import annotations

from contextlib import closing

import pytest

from kainite.base.errors import SourceError
from kainite.capture.mysql.snapshot_session import SnapshotGoneError, SnapshotSession
from kainite.capture.mysql.snapshot_tables import snapshot_tables
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.capture.mysql.text_forms import TextSpelling
from support.mariadb_source import execute, here, rows

pytestmark = pytest.mark.mariadb  # a snapshot of MySQL does not say its place in the binlog

ITEMS = "SELECT id FROM item ORDER BY id"


def test_a_snapshot_stands_where_the_binlog_is_and_has_nothing_that_commits_later(database: str) -> None:
    execute(database, "CREATE TABLE item (id INT PRIMARY KEY)", "INSERT INTO item VALUES (1)")
    before = here(database)
    with closing(SnapshotSession(database)) as one:
        place = one.begin()
        assert (place.file, place.position) == (before["file"], before["position"])
        execute(database, "INSERT INTO item VALUES (2)")
        assert b"".join(one.blocks(ITEMS, [TextSpelling.AS_IT_IS])) == b"1\n"
        later = one.begin()
        assert place.is_before(later)
        assert b"".join(one.blocks(ITEMS, [TextSpelling.AS_IT_IS])) == b"1\n2\n"


def test_a_session_that_is_gone_says_so(database: str) -> None:
    execute(database, "CREATE TABLE item (id INT PRIMARY KEY)")
    with closing(SnapshotSession(database)) as one:
        one.begin()
        one.check()
        name = database.split("/")[3].split("?")[0]
        (session,) = rows(database, f"SELECT id FROM information_schema.processlist WHERE db = '{name}' AND id <>"
                          " connection_id()")[0]  # fmt: skip
        execute(database, f"KILL {session}")
        with pytest.raises(SnapshotGoneError):
            list(one.blocks(ITEMS, [TextSpelling.AS_IT_IS]))
        with pytest.raises(SnapshotGoneError):
            one.check()


def test_a_table_that_was_altered_behind_the_snapshot_cannot_be_held(database: str) -> None:
    execute(database, "CREATE TABLE item (id INT PRIMARY KEY)", "INSERT INTO item VALUES (1)")
    with closing(SnapshotSession(database)) as one:
        one.begin()
        execute(database, "TRUNCATE TABLE item")
        with pytest.raises(SourceError, match="definition has changed"):
            one.hold(["item"])


def test_bytes_may_be_longer_than_the_texts_that_the_server_makes(database: str) -> None:
    execute(database, "CREATE TABLE item (id INT PRIMARY KEY, v LONGBLOB)",
            "INSERT INTO item VALUES (1, REPEAT('x', @@max_allowed_packet DIV 2 + 1))")  # fmt: skip
    with closing(MysqlSourceCatalogue(database)) as catalogue, closing(SnapshotSession(database)) as one:
        (table,) = snapshot_tables(catalogue, str(catalogue.value("SELECT database()")), ())
        one.begin()
        found = b"".join(one.blocks(table.query("TRUE"), [column.form.spelling for column in table.copied]))
        size = int(catalogue.value("SELECT LENGTH(v) FROM item"))
    assert found == b"1\t\\\\x" + b"78" * size + b"\n"
