"""Loads between two real databases: what is copied, what is refused, and what a kill at each step leaves."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from kainite.base.errors import CatalogueError, SettingsError, SourceError, TargetError, TargetRejectedError
from kainite.capture.postgresql.consistent_snapshot import lives
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ledger import LoadState
from kainite.replicate.load_ledger import LoadLedger
from support.pgbouncer import pgbouncer
from support.replicas import LOG, InlineSteps, Loading, loading, run
from support.waiting import eventually

TABLES = """
    CREATE TABLE item (id int PRIMARY KEY, name text, twice int GENERATED ALWAYS AS (id * 2) STORED);
    CREATE TABLE line (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item_id int NOT NULL REFERENCES item);
"""
FILL = """
    INSERT INTO item SELECT n, repeat('x', 900) FROM generate_series(1, 20000) n;
    INSERT INTO line (item_id) SELECT n FROM generate_series(1, 20000) n;
"""


class KilledError(Exception):
    """The driver was killed."""


def killed_at(place: int) -> InlineSteps:
    """Returns a runner whose driver is killed when so many steps have begun."""
    begun = 0

    def before(_: int) -> None:
        nonlocal begun
        begun += 1
        if begun > place:
            raise KilledError

    return InlineSteps(before, parallelism=1)


def test_rows_are_copied_and_the_target_is_live(source: SourceSlot, postgres: str) -> None:
    with loading(source, postgres, FILL, both=[TABLES]) as world:
        found = world.load()
        assert found.state is LoadState.LIVE
        assert found.position is not None
        assert found.position > world.slot_lsn
        assert world.differences() == {}
        status = world.status()
        assert status.consistent
        assert (status.rows, status.ranges) == (40_000, status.ranges_done)
        assert {table.state for table in status.tables} == {"live"}


def test_a_large_table_is_cut_into_ranges_and_children_come_behind_parents(source: SourceSlot, postgres: str) -> None:
    with loading(source, postgres, FILL, both=[TABLES]) as world:
        world.load()
        stages = world.in_target("SELECT table_name, stage, count(*) FROM kainite_load_step GROUP BY 1, 2 ORDER BY 1")
    assert stages == [("item", 1, 3), ("line", 2, 1)]


@pytest.mark.parametrize("place", range(4))
def test_a_driver_that_was_killed_goes_on_where_it_was(source: SourceSlot, postgres: str, place: int) -> None:
    with loading(source, postgres, FILL, both=[TABLES]) as world:
        with pytest.raises(KilledError):
            world.load(killed_at(place))
        before = world.found()
        assert before.state is LoadState.LOADING
        world.in_source("INSERT INTO item VALUES (0, 'after the point')")
        again = InlineSteps()
        after = world.load(again)
        assert (after.state, after.position) == (LoadState.LIVE, before.position)
        assert len(again.ran) == 4 - place
        assert world.differences() == {"public.item": (1, 0)}


def test_a_load_whose_snapshot_is_gone_begins_anew(source: SourceSlot, postgres: str) -> None:
    with loading(source, postgres, FILL, both=[TABLES]) as world:
        with pytest.raises(KilledError):
            world.load(killed_at(3))
        before = world.found()
        end_snapshot(world)
        world.in_source("UPDATE item SET name = 'changed' WHERE id < 1000", "DELETE FROM line WHERE n = 7")
        after = world.load()
        assert after.position is not None
        assert before.position is not None
        assert after.position > before.position
        assert after.generation == before.generation + 1
        assert world.differences() == {}


def test_a_snapshot_that_is_lost_while_rows_are_copied_begins_the_load_anew(source: SourceSlot, postgres: str) -> None:
    with loading(source, postgres, FILL, both=[TABLES]) as world:
        lost: list[int | None] = []

        def lose_once(_: int) -> None:
            if not lost:
                lost.append(world.found().position)
                end_snapshot(world)

        after = world.load(InlineSteps(lose_once))
        assert after.state is LoadState.LIVE
        assert after.position != lost[0]
        assert world.differences() == {}


def end_snapshot(world: Loading) -> None:
    """Ends the session that keeps the snapshot, as a restart of the source does."""
    snapshot = world.found().snapshot
    assert snapshot is not None
    world.in_source(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE backend_type = 'walsender' AND datname = current_database()"
    )
    eventually(lambda: not lives(world.ends.source.url, snapshot))


def test_the_snapshot_is_let_go_when_all_rows_are_copied(source: SourceSlot, postgres: str) -> None:
    kept: list[str | None] = []
    with loading(source, postgres, FILL, both=[TABLES]) as world:
        world.load(InlineSteps(lambda _: kept.append(world.found().snapshot)))
        assert kept[0] is not None
        snapshot = kept[0]
        eventually(lambda: not lives(world.ends.source.url, snapshot))


def test_a_live_target_is_left_alone_unless_the_load_is_to_begin_anew(source: SourceSlot, postgres: str) -> None:
    with loading(source, postgres, FILL, both=[TABLES]) as world:
        first = world.load()
        world.in_source("DELETE FROM line")
        assert world.load() == first
        anew = world.load(anew=True)
        assert anew.generation == first.generation + 1
        assert world.differences() == {}


def test_rows_that_no_load_has_put_there_are_never_deleted(source: SourceSlot, postgres: str) -> None:
    with loading(source, postgres, FILL, both=[TABLES]) as world:
        world.in_target("INSERT INTO item VALUES (7, 'mine')")
        with pytest.raises(CatalogueError, match=r"rows that no load has put there, in public\.item: TRUNCATE"):
            world.load()
        assert world.in_target("SELECT name FROM item") == [("mine",)]


def test_a_step_that_the_target_refuses_ends_no_other(source: SourceSlot, postgres: str) -> None:
    with loading(source, postgres, FILL, both=[TABLES]) as world:
        world.in_target("ALTER TABLE line ADD CHECK (item_id <> 5)")
        with pytest.raises(TargetRejectedError, match=r"public\.line: .*line_item_id_check"):
            world.load()
        status = world.status()
        assert [(table.table, table.state) for table in status.tables] == [
            ("public.item", "copied"),
            ("public.line", "failed"),
        ]
        assert not status.consistent
        world.in_target("ALTER TABLE line DROP CONSTRAINT line_item_id_check")
        again = InlineSteps()
        assert world.load(again).state is LoadState.LIVE
        assert len(again.ran) == 1
        assert world.differences() == {}


def test_a_missing_slot_is_refused_and_one_that_went_away_voids_the_point(source: SourceSlot, postgres: str) -> None:
    drop = "SELECT pg_drop_replication_slot('%s')" % source.slot  # noqa: UP031
    with loading(source, postgres, FILL, both=[TABLES]) as world:
        dropped = InlineSteps(lambda step: world.in_source(drop) if step == 4 else None)
        with pytest.raises(SourceError, match=r"does not exist.*begins anew"):
            world.load(dropped)
        assert (world.found().state, world.found().position) == (LoadState.LOADING, None)
        with pytest.raises(SourceError, match="does not exist"):
            world.load()


def test_two_loads_at_once_are_one_too_many(source: SourceSlot, postgres: str) -> None:
    with (
        loading(source, postgres, both=[TABLES]) as world,
        psycopg.connect(postgres, autocommit=True) as other,
    ):
        LoadLedger(other, LOG)
        with pytest.raises(TargetError, match=f"another kainite replicate load.*pid {other.info.backend_pid}"):
            world.load()


def test_a_transaction_in_the_way_of_the_point_is_named_and_the_load_may_be_tried_again(
    source: SourceSlot, postgres: str
) -> None:
    with loading(source, postgres, FILL, both=[TABLES]) as world:
        with psycopg.connect(source.url) as writer:
            writer.execute("DELETE FROM line WHERE n = 1")
            with pytest.raises(SourceError, match=f"pid {writer.info.backend_pid} "):
                world.load(lock_wait=0.2)
        assert world.load().state is LoadState.LIVE
        assert world.differences() == {}


def test_a_table_that_references_itself_is_one_step(source: SourceSlot, postgres: str) -> None:
    tree = "CREATE TABLE node (id int PRIMARY KEY, above int REFERENCES node, pad text)"
    fill = "INSERT INTO node SELECT n, CASE WHEN n < 20000 THEN n + 1 END, repeat('x', 900)"
    with loading(source, postgres, f"{fill} FROM generate_series(1, 20000) n", both=[tree]) as world:
        world.load()
        assert world.status().ranges == 1
        assert world.differences() == {}


def test_a_cycle_of_foreign_keys_is_refused_before_anything_begins(source: SourceSlot, postgres: str) -> None:
    cycle = """
        CREATE TABLE a (id int PRIMARY KEY, b int); CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a);
        ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b DEFERRABLE"""
    with loading(source, postgres, both=[cycle]) as world:
        with pytest.raises(CatalogueError, match=r"form a cycle \(a, b\).*DROP CONSTRAINT"):
            world.load()
        assert not world.status().tables
        assert run(postgres, "SELECT count(*) FROM kainite_load") == [(0,)]


def test_a_target_behind_a_pooler_is_refused_before_anything_is_begun(source: SourceSlot, postgres: str) -> None:
    with loading(source, postgres, both=[TABLES]) as world, pgbouncer(postgres) as pooled:
        behind = replace(world, ends=replace(world.ends, target=pooled))
        with pytest.raises(SettingsError, match=r"the target's address leads through a pooler .*the server's own port"):
            behind.load()
        assert world.in_target("SELECT to_regclass('kainite_load')") == [(None,)]
        assert world.in_target("SELECT FROM pg_locks WHERE locktype = 'advisory'") == []
        assert world.load().state is LoadState.LIVE
