"""Loads of single tables from MariaDB while the apply job goes on: no other table is held up, nothing is lost.

:mod:`support.live_binlog` has the traffic, and the looks at the target's states. What does not depend on the kind
of the source is in test_table_job.py.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from kainite.base.errors import SourceError, TargetRejectedError
from kainite.capture.mysql import snapshot_tables
from kainite.capture.truncate import OnTruncate
from kainite.replicate import binlog_table
from kainite.replicate.binlog_gaps import gaps_of
from kainite.replicate.binlog_table import paired_table
from kainite.replicate.table_ledger import load_name
from kainite_spark.load import catch_up
from support.binlog_loading import BinlogLoading
from support.driver_kills import KilledError, kills
from support.live_binlog import LiveBinlog, live_binlog
from support.live_replica import DRIFT, FOREIGN_KEYS
from support.mariadb_source import mariadb_with_binlog, source_database
from support.replicas import LOG, tables_of
from support.waiting import eventually


@pytest.fixture
def source(mariadb_source_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(snapshot_tables, "RANGE_BYTES", 512 * 1024)
    with source_database(mariadb_source_server) as url:
        yield url


LOOKS = 20  # half a second apart: more than the time between two checks
THROWN_AWAY = re.compile("another server|was written anew|lost the end of its binlog")


def go_on(live: LiveBinlog, _: object = None) -> None:
    """Has units applied that touch the table, so that there is something to be held."""
    live.traffic.go(10)
    eventually(lambda: live.applied(live.traffic.count))


@pytest.mark.parametrize("table", ["account", pytest.param("entry", marks=pytest.mark.long)])
def test_a_table_is_loaded_again_while_units_that_touch_it_go_on(
    source: str, postgres: str, tmp_path: Path, table: str
) -> None:
    with live_binlog(source, postgres, tmp_path) as live:
        live.traffic.go(20)
        eventually(lambda: live.applied(20))
        live.loading.in_target(DRIFT, "DELETE FROM entry WHERE n % 3 = 0")
        live.load("entry" if table == "account" else "account")

        def meanwhile(_: int) -> None:
            go_on(live)
            assert live.state(table) == "loading"
            assert live.loading.in_target(FOREIGN_KEYS) == []
            status = live.loading.status()
            assert not status.consistent
            assert next(one for one in status.tables if one.state == "loading").position.startswith("transaction ")

        runner = live.steps(meanwhile)
        assert live.load(table, runner=runner).state == "live"
        assert not live.loading.in_target("SELECT snapshot FROM kainite_load WHERE snapshot IS NOT NULL")
        live.traffic.go(10)
        live.settle()
        assert live.loading.status().consistent


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_driver_that_is_killed_at_any_step_loses_and_doubles_nothing(
    source: str, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live_binlog(source, postgres, tmp_path) as live:
        for step, kill in kills().items():
            live.traffic.go(5)
            live.loading.in_target(DRIFT)
            kill(monkeypatch)
            with pytest.raises(KilledError):
                live.load("account", runner=live.steps(partial(go_on, live)))
            go_on(live)
            assert live.load("account", runner=live.steps(partial(go_on, live))).state == "live", step
            live.settle()


def test_a_table_that_is_refused_fails_alone_and_goes_on_when_that_is_mended(
    source: str, postgres: str, tmp_path: Path
) -> None:
    with live_binlog(source, postgres, tmp_path) as live:
        live.loading.in_target("ALTER TABLE account ADD CONSTRAINT few CHECK (id < 3010) NOT VALID")
        with pytest.raises(TargetRejectedError, match="few"):
            live.load("account", runner=live.steps(partial(go_on, live)))
        assert live.state("account") == "failed"
        go_on(live)
        assert live.load("entry").state == "live"
        assert [one.table for one in live.loading.status().tables if one.state != "live"] == ["public.account"]
        live.loading.in_target("ALTER TABLE account DROP CONSTRAINT few")
        assert live.load("account").state == "live"
        live.settle()


def test_a_truncate_of_a_table_that_is_loaded_by_itself_is_held_in_its_place(
    source: str, postgres: str, tmp_path: Path
) -> None:
    with live_binlog(source, postgres, tmp_path, follows=False, on_truncate=OnTruncate.APPLY) as live:
        live.traffic.go(5)
        held: list[Any] = []

        def look() -> None:
            if not held and live.state("entry") == "catching up":
                live.loading.in_source("TRUNCATE TABLE entry", "INSERT INTO entry VALUES (1, 5, 1)")
                live.made.catch_up()
                held.extend(live.loading.in_target("SELECT count(*) FROM kainite_held_delta"))

        assert live.load("entry", look=look).state == "live"
        assert held[0][0] >= 2
        assert live.loading.in_target("SELECT * FROM entry") == [(1, 5, 1)]
        live.settle()


MORE = "CREATE TABLE more (id INT PRIMARY KEY, account_id INT REFERENCES account (id))"


def test_a_table_is_added_that_the_extraction_has_read_before_the_target_had_it(
    source: str, postgres: str, tmp_path: Path
) -> None:
    """Lets units from before the addition fail, as they must, and be applied when it is there: without its rows."""
    with live_binlog(source, postgres, tmp_path, follows=False) as live:
        live.loading.in_source(
            MORE, "BEGIN", "INSERT INTO more VALUES (1, 1)", "UPDATE account SET balance = 55 WHERE id = 1", "COMMIT"
        )
        live.made.catch_up()
        [uow] = live.made.failed()
        live.loading.in_target(MORE)
        live.made.read_catalogue()

        def look() -> None:
            if live.state("more") == "catching up":
                live.made.catch_up()

        assert live.load("more", look=look).state == "live"
        live.loading.in_source("UPDATE more SET account_id = 2", "INSERT INTO more VALUES (2, 1)")
        live.made.catch_up()
        assert live.made.failed().keys() > {uow}  # what changes the same rows waits behind it
        live.made.retry(uow)
        assert live.made.failed() == {}
        assert live.loading.differences("account", "more") == {}


def test_a_table_is_added_to_those_that_the_extraction_reads(
    source: str, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Holds the table's changes, and waits for an extraction that has begun with the new options."""
    monkeypatch.setattr(binlog_table, "READ_S", 1.0)
    with live_binlog(source, postgres, tmp_path, follows=False, tables=READ) as live:
        live.loading.in_source(MORE, "INSERT INTO more VALUES (1, 1)")
        live.loading.in_target(MORE)
        live.made.read_catalogue()
        live.made.catch_up()
        ends = live.loading.ends
        with pytest.raises(SourceError, match="--table more"):
            paired_table(ends, "more", tables_of(postgres))
        wider = replace(ends, source=replace(ends.source, tables=WIDER))
        live.loading = BinlogLoading(wider)
        with pytest.raises(SourceError, match="start kainite extract anew"):
            live.load("more")
        with pytest.raises(SourceError, match="start kainite extract anew"):
            live.loading.load(anew=True)
        live.made.begin_again(tables=wider.source.tables)
        live.made.catch_up()

        def look() -> None:
            if live.state("more") == "catching up":
                live.loading.in_source("INSERT INTO more SELECT COUNT(*) + 1, 2 FROM more")
                live.made.catch_up()

        assert live.load("more", look=look).state == "live"
        live.made.catch_up()
        assert live.made.failed() == {}
        assert live.loading.in_target("SELECT count(*) >= 2 FROM more") == [(True,)]
        assert live.loading.differences() == {}


@contextmanager
def named(source: str, postgres: str, folder: Path) -> Iterator[LiveBinlog]:
    """Gives a live replica whose extraction reads the tables of its settings, which have one more than before."""
    with live_binlog(source, postgres, folder, follows=False, tables=READ) as live:
        alone = MORE.replace("REFERENCES account (id)", "")
        live.loading.in_source(alone, "INSERT INTO more VALUES (1, 1)")
        live.loading.in_target(alone)
        live.made.read_catalogue()
        live.loading = BinlogLoading(replace(live.loading.ends, source=replace(live.loading.ends.source, tables=WIDER)))
        restarted(live, WIDER)
        yield live


READ = ("account", "counter", "journal", "entry")
WIDER = (*READ, "more")


def restarted(live: LiveBinlog, tables: tuple[str, ...], *, applies: bool = True) -> None:
    """Ends the extraction, begins it again with other tables, and has a change of the added one committed."""
    live.made.begin_again(tables=tables)
    live.made.read()
    live.loading.in_source("INSERT INTO more SELECT COUNT(*) + 1, 2 FROM more")
    live.made.read()
    if applies:
        live.made.catch_up()


def place_of(live: LiveBinlog, load: str) -> int | None:
    """Returns the point of a load in the ledger."""
    [(position,)] = live.loading.in_target(
        f"SELECT (position - '0/0')::bigint FROM kainite_load WHERE log_partition = '{load}'"
    )
    return None if position is None else int(position)


def loaded_whole(live: LiveBinlog, steps: Any) -> None:
    """Loads all tables anew, of which no load has filled the added one."""
    live.loading.in_target("TRUNCATE more")
    live.loading.load(steps, anew=True)


ADDED = load_name(LOG, ("public", "more"))


def following_look(live: LiveBinlog) -> None:
    """Applies what has committed, so that the apply job passes the point."""
    if live.state("more") == "catching up":
        live.made.catch_up()


def test_an_addition_that_is_gone_on_with_behind_a_gap_begins_anew(
    source: str, postgres: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Takes the table away from the extraction, and puts it back, between two calls of the command."""
    with named(source, postgres, tmp_path) as live:
        stop = threading.Event()

        def left() -> None:
            if live.state("more") == "catching up":
                stop.set()

        live.load("more", look=left, stop=stop)
        before = place_of(live, ADDED)
        assert before is not None
        restarted(live, READ)
        restarted(live, WIDER)
        assert live.load("more", look=partial(following_look, live)).state == "live"
        after = place_of(live, ADDED)
        assert after is not None
        assert after > before
        assert "the copy is worth nothing" in caplog.text
        restarted(live, WIDER)
        assert live.made.failed() == {}
        assert live.loading.differences() == {}


def test_an_extraction_that_leaves_the_table_out_while_it_catches_up_ends_the_addition(
    source: str, postgres: str, tmp_path: Path
) -> None:
    with named(source, postgres, tmp_path) as live:

        def narrow() -> None:
            if live.state("more") == "catching up":
                restarted(live, READ)  # the apply job passes the point, without a change of the table

        with pytest.raises(SourceError, match="reads account, counter, journal, entry alone"):
            live.load("more", look=narrow)
        assert place_of(live, ADDED) is None
        assert live.state("more") == "catching up"
        restarted(live, WIDER)
        assert live.load("more", look=partial(following_look, live)).state == "live"
        assert live.made.failed() == {}
        assert live.loading.differences() == {}


def test_a_load_of_everything_behind_a_gap_begins_anew(source: str, postgres: str, tmp_path: Path) -> None:
    with named(source, postgres, tmp_path) as live:
        toggled: list[int] = []

        def toggle(step: int) -> None:
            if not toggled:
                toggled.append(step)
                restarted(live, READ, applies=False)
                restarted(live, WIDER, applies=False)

        with pytest.raises(SourceError, match=r"without a gap since transaction \d+ alone.*is worth nothing"):
            loaded_whole(live, live.steps(toggle))
        assert place_of(live, LOG) is None
        live.loading.load()
        restarted(live, WIDER)
        assert live.made.failed() == {}
        assert live.loading.differences(*WIDER) == {}


def test_a_live_table_with_a_gap_is_told_until_it_is_loaded_again(source: str, postgres: str, tmp_path: Path) -> None:
    with named(source, postgres, tmp_path) as live, psycopg.connect(postgres, autocommit=True) as target:
        loaded_whole(live, live.steps())

        def told() -> list[str]:
            return [finding.found for finding in gaps_of(live.loading.ends, target)]

        assert told() == []
        restarted(live, READ)
        assert told() == ["the extraction does not read public.more: its changes are missing in the target"]
        restarted(live, WIDER)
        [gap] = told()
        assert gap.startswith("public.more was copied as of transaction ")
        assert live.loading.differences().keys() == {"more"}
        assert live.load("more", look=partial(following_look, live)).state == "live"
        assert told() == []
        assert live.loading.differences() == {}
        live.loading.ends.offsets.path.unlink()
        assert ["is not known" in one for one in told()] == [True]


def test_a_table_whose_foreign_key_acts_beside_the_binlog_is_refused(
    source: str, postgres: str, tmp_path: Path
) -> None:
    with live_binlog(source, postgres, tmp_path, follows=False) as live:
        cascade = (
            "ALTER TABLE entry ADD CONSTRAINT entry_taker FOREIGN KEY (taker) REFERENCES account (id) ON DELETE CASCADE"
        )
        live.loading.in_source(cascade)
        for table in ("account", "entry"):
            with pytest.raises(SourceError, match=r"entry \(entry_taker\) changes rows in the source"):
                paired_table(live.loading.ends, table, tables_of(postgres))
        assert paired_table(live.loading.ends, "public.counter", tables_of(postgres)).place == ("public", "counter")


def test_a_binlog_that_is_thrown_away_meanwhile_ends_the_load(
    tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "CHECK_S", 0.5)
    with (
        mariadb_with_binlog(tmp_path / "server") as server,
        source_database(server) as source,
        live_binlog(source, postgres, tmp_path, follows=False) as live,
    ):
        live.traffic.go(5)
        live.made.catch_up()
        looks: list[str] = []
        stop = threading.Event()

        def look() -> None:
            if live.state("account") == "catching up":
                looks.append("catching up")
                if len(looks) == 1:
                    live.loading.in_source("RESET MASTER")
                    live.traffic.go(5)
                if len(looks) == LOOKS:
                    stop.set()

        with pytest.raises(SourceError, match=THROWN_AWAY):
            live.load("account", look=look, stop=stop)
        [(position,)] = live.loading.in_target("SELECT position FROM kainite_load WHERE log_partition <> 'log/0'")
        assert position is None  # the next start begins anew
        with pytest.raises(SourceError, match=THROWN_AWAY):
            live.load("account")
