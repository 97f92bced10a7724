"""A watch over a real source."""

from __future__ import annotations

import psycopg
import pytest

from kainite.base.errors import SourceError
from kainite.capture.postgresql.quiet_source import watching
from kainite.capture.postgresql.replication import SourceSlot
from support.replicas import run
from support.waiting import eventually


def test_a_marker_lies_behind_the_point_also_in_a_source_that_is_closed(source: SourceSlot) -> None:
    database = run(source.url, "SELECT current_database()")[0][0]
    run(source.url, "INSERT INTO note VALUES ('before')",
        f"ALTER DATABASE {database} SET default_transaction_read_only = on")  # fmt: skip
    with watching(source) as watch:
        first, second = watch.mark(), watch.mark()
        assert watch.point <= first.commit_lsn < second.commit_lsn
        watch.look()
    left = "SELECT FROM pg_replication_slots WHERE database = current_database()"
    eventually(lambda: run(source.url, left) == [])


@pytest.mark.parametrize(
    "write",
    ["INSERT INTO item VALUES (2)", "UPDATE item SET name = 'x'", "DELETE FROM item", "TRUNCATE item"],
)
def test_each_kind_of_change_is_seen_with_its_table(source: SourceSlot, write: str) -> None:
    run(source.url, "INSERT INTO item VALUES (1)")
    with watching(source) as watch:
        run(source.url, write)
        with pytest.raises(SourceError, match=r"transaction \d+ has changed public\.item and committed at 20"):
            watch.look()


def test_what_is_not_published_is_no_matter(source: SourceSlot) -> None:
    run(source.url, "DROP PUBLICATION changes", 'CREATE PUBLICATION "changes" FOR TABLE item')
    with watching(source) as watch:
        run(source.url, "INSERT INTO note VALUES ('unseen')", "BEGIN; INSERT INTO item VALUES (1); ROLLBACK")
        watch.look()


def test_who_is_in_the_way_of_the_point_is_named(source: SourceSlot) -> None:
    with psycopg.connect(source.url) as writer:
        writer.execute("INSERT INTO note VALUES ('open')")
        with pytest.raises(SourceError, match=f"pid {writer.info.backend_pid} "), watching(source, lock_wait=0.2):
            pass
