"""Loads from MariaDB into PostgreSQL: what is copied, what is refused, and what a kill at each step leaves."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from kainite.base.errors import CatalogueError, SourceError, TargetRejectedError
from kainite.capture.mysql import same_place, snapshot_tables
from kainite.extract.offsets.place import Place
from kainite.replicate.ledger import LoadState
from kainite_spark.load.snapshot_readers import SILENT_S, SnapshotReaders, snapshot_lives
from kainite_spark.load.tasks import LoadStepResult, LoadTask
from support.binlog_loading import BinlogLoading, binlog_loading, following
from support.mariadb_source import here, session, source_database
from support.names import unique
from support.waiting import eventually

_PAUSE_S = 0.005  # between two transactions of a writer: all of them are applied in the end
SOURCE = (
    "CREATE TABLE account (id INT PRIMARY KEY, balance BIGINT NOT NULL, name VARCHAR(200) NOT NULL)",
    "CREATE TABLE move (id BIGINT AUTO_INCREMENT PRIMARY KEY, `from` INT NOT NULL, `to` INT NOT NULL,"
    " FOREIGN KEY (`from`) REFERENCES account (id), FOREIGN KEY (`to`) REFERENCES account (id))",
    "INSERT INTO account SELECT seq, 1000, REPEAT('x', 150) FROM seq_1_to_4000",
    "INSERT INTO move (`from`, `to`) SELECT seq, seq + 1 FROM seq_1_to_3000",
    "ANALYZE TABLE account, move",
)
TARGET = (
    "CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL, name text NOT NULL)",
    'CREATE TABLE move (id bigint PRIMARY KEY, "from" int NOT NULL REFERENCES account,'
    ' "to" int NOT NULL REFERENCES account)',
)


@pytest.fixture
def world(
    mariadb_source_server: str, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[BinlogLoading]:
    monkeypatch.setattr(snapshot_tables, "RANGE_BYTES", 64 * 1024)
    with (
        source_database(mariadb_source_server) as source,
        binlog_loading(source, postgres, tmp_path, SOURCE, TARGET) as made,
    ):
        yield made


@dataclass
class WatchedReaders:
    """Implements :class:`kainite_spark.load.rounds.StepRunner`: calls back before each job of a few steps."""

    before: Callable[[LoadTask, int], object]
    parallelism: int = 2
    silent: float = SILENT_S
    jobs: int = 0
    ran: list[int] = field(default_factory=list)

    def run(self, task: LoadTask, steps: Sequence[int], look: Callable[[], None]) -> list[LoadStepResult]:
        self.before(task, self.jobs)
        self.jobs += 1
        results = SnapshotReaders(self.parallelism, self.silent).run(task, steps[:3], look)
        self.ran += [result.step for result in results]
        return results


class DriverKilledError(Exception):
    """Ends a load where SIGKILL would."""


def killed_at(job: int) -> WatchedReaders:
    """Returns a runner whose driver dies before a job."""

    def die(_: LoadTask, now: int) -> None:
        if now == job:
            raise DriverKilledError

    return WatchedReaders(die)


def readers_of(snapshot: str) -> list[psutil.Process]:
    """Returns the processes that listen in a snapshot's folder."""
    return [
        process
        for process in psutil.process_iter()
        if any(one.laddr and str(one.laddr).startswith(snapshot) for one in sockets_of(process))
    ]


def sockets_of(process: psutil.Process) -> list[Any]:
    try:
        return list(process.net_connections("unix"))
    except psutil.Error:
        return []


def has_ended(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


@contextmanager
def writers(url: str, count: int = 2) -> Iterator[list[int]]:
    """Moves money between accounts, and notes each move, until the block ends; gives a list that grows with them."""
    stop, done, failures = threading.Event(), list[int](), list[BaseException]()

    def write(number: int) -> None:
        try:
            with closing(session(url)) as connection:
                connection.query("SET innodb_lock_wait_timeout = 20")
                for turn in range(1, 1_000_000):
                    if stop.is_set():
                        return
                    one, other = sorted(((turn * 7 + number) % 4000 + 1, (turn * 13 + number * 3) % 4000 + 1))
                    connection.begin()
                    connection.query(f"UPDATE account SET balance = balance - 1 WHERE id = {one}")
                    connection.query(f"UPDATE account SET balance = balance + 1 WHERE id = {other}")
                    connection.query(f"INSERT INTO move (`from`, `to`) VALUES ({one}, {other})")
                    connection.query(f"DELETE FROM move WHERE id = {turn % 3000 + 1}")
                    connection.commit()
                    done.append(turn)
                    stop.wait(_PAUSE_S)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: len(done) > 20 or bool(failures))
        yield done
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures, failures


def total(world: BinlogLoading) -> object:
    return world.in_target("SELECT count(*), sum(balance) FROM account")[0]


def test_a_load_with_writers_is_one_state_of_the_source_and_what_follows_makes_both_equal(world: BinlogLoading) -> None:
    with following(world) as follower:
        with writers(world.ends.source.url) as done:
            assert world.load().state is LoadState.LIVE
            assert total(world) == (4000, 4_000_000)
            moved = world.in_target("SELECT count(*) FROM move")[0][0]
            seen = len(done)
            eventually(lambda: len(done) > seen + 20)
        assert moved >= 1
        number = follower.catch_up()
        assert follower.failed() == {}
        assert world.differences("account", "move") == {}
        position = world.found().position
        assert position is not None
        assert 1 < position <= number
        status = world.status()
        assert (status.consistent, status.position) == (True, f"transaction {position - 1}")


def test_a_load_behind_units_that_are_applied_does_not_need_them_again(world: BinlogLoading) -> None:
    with following(world) as follower:
        world.in_source("UPDATE account SET balance = 7 WHERE id = 1", "DELETE FROM move WHERE id = 5")
        world.load()
        world.in_source("UPDATE account SET balance = balance + 1 WHERE id = 1")
        assert follower.catch_up() == 3
        assert (follower.failed(), world.differences("account", "move")) == ({}, {})
        assert world.found().position == 3


def test_a_killed_driver_goes_on_with_the_same_snapshot(world: BinlogLoading) -> None:
    with writers(world.ends.source.url):
        first = killed_at(2)
        with pytest.raises(DriverKilledError):
            world.load(first)
        left = world.found()
        again = WatchedReaders(lambda *_: None)
        assert world.load(again).state is LoadState.LIVE
        assert world.found().position == left.position
        assert len(first.ran) + len(again.ran) == world.status().ranges
        assert total(world) == (4000, 4_000_000)
    with following(world) as follower:
        follower.catch_up()
        assert (follower.failed(), world.differences("account", "move")) == ({}, {})


def test_readers_end_with_the_load(world: BinlogLoading) -> None:
    seen: list[str] = []
    world.load(WatchedReaders(lambda task, _: seen.append(task.snapshot or "")))
    assert not snapshot_lives(seen[0])
    assert not Path(seen[0]).exists()
    eventually(lambda: not readers_of(seen[0]))


def test_one_reader_of_two_is_enough(world: BinlogLoading) -> None:
    def kill(task: LoadTask, job: int) -> None:
        if job == 1:
            readers_of(task.snapshot or "")[0].kill()

    with writers(world.ends.source.url):
        runner = WatchedReaders(kill)
        first = world.load(runner)
        assert first.generation == 1
        assert total(world) == (4000, 4_000_000)


def test_without_readers_the_load_begins_anew(world: BinlogLoading) -> None:
    killed: list[int] = []

    def kill(task: LoadTask, job: int) -> None:
        if job == 2 and not killed:
            for process in readers_of(task.snapshot or ""):
                killed.append(process.pid)
                process.kill()
                process.wait()

    with writers(world.ends.source.url):
        assert world.load(WatchedReaders(kill)).generation == 2
        assert len(killed) == 2
        assert total(world) == (4000, 4_000_000)


def test_a_frozen_reader_changes_nothing_when_it_wakes_up(world: BinlogLoading) -> None:
    with psycopg.connect(world.ends.target, autocommit=True) as other:
        frozen: list[psutil.Process] = []
        with pytest.raises(DriverKilledError):
            world.load(killed_at(1))
        snapshot = world.found().snapshot
        assert snapshot is not None
        frozen += readers_of(snapshot)
        for process in frozen:
            os.kill(process.pid, signal.SIGSTOP)
        assert world.load(anew=True).state is LoadState.LIVE
        for process in frozen:
            os.kill(process.pid, signal.SIGCONT)
        for process in frozen:
            eventually(partial(has_ended, process))
        assert other.execute("SELECT count(*) FROM account").fetchone() == (4000,)


def test_a_reader_that_freezes_within_a_step_is_ended_and_another_one_does_its_step(world: BinlogLoading) -> None:
    """Keeps both readers within a step by a lock until one is frozen there; its session in the target goes with it."""
    frozen: list[psutil.Process] = []

    def freeze(task: LoadTask, job: int) -> None:
        if job == 0:
            frozen.append(readers_of(task.snapshot or "")[0])

    with ThreadPoolExecutor(1) as pool, psycopg.connect(world.ends.target) as holder:
        holder.execute("LOCK TABLE account IN SHARE MODE")
        loading = pool.submit(world.load, WatchedReaders(freeze, silent=3.0))
        try:
            eventually(lambda: waiting(world) == 2 or loading.done())
            frozen[0].suspend()
        finally:
            holder.rollback()
        assert loading.result().state is LoadState.LIVE
    assert has_ended(frozen[0])
    assert total(world) == (4000, 4_000_000)


def waiting(world: BinlogLoading) -> int:
    """Returns how many steps wait for a lock in the target."""
    [(count,)] = world.in_target(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    return int(count)


def test_a_refused_row_ends_no_other_step_and_the_load_goes_on_when_that_is_mended(world: BinlogLoading) -> None:
    world.in_target("ALTER TABLE account ADD CHECK (id <> 1234)")
    with pytest.raises(TargetRejectedError, match=r"public\.account: .*account_id_check"):
        world.load()
    world.in_target("ALTER TABLE account DROP CONSTRAINT account_id_check")
    assert world.load().state is LoadState.LIVE
    assert world.differences("account", "move") == {}


def test_tables_cannot_be_altered_while_they_are_copied(world: BinlogLoading) -> None:
    refused: list[str] = []

    def alter(_: LoadTask, job: int) -> None:
        if job == 1:
            with pytest.raises(Exception, match="Lock wait timeout"):
                world.in_source("SET lock_wait_timeout = 1", "TRUNCATE TABLE move")
            refused.append("truncate")

    world.load(WatchedReaders(alter))
    assert refused
    world.in_source("SET lock_wait_timeout = 5", "ALTER TABLE move ADD COLUMN more INT")


def test_what_the_target_lacks_is_told_before_anything_begins(world: BinlogLoading) -> None:
    world.in_source("CREATE TABLE more (id INT PRIMARY KEY)", "ALTER TABLE account ADD COLUMN `new%` INT")
    with pytest.raises(CatalogueError, match=r"no table more; the target's table public\.account has no column new%"):
        world.load()
    assert not world.status().tables


def test_a_purged_binlog_is_told(world: BinlogLoading) -> None:
    offsets = world.ends.offsets
    offsets.save(Place(offsets.load().start | {"file": "binlog.999999"}))
    with pytest.raises(SourceError, match="purged"):
        world.load()


def test_the_number_is_right_behind_the_end_of_a_file(world: BinlogLoading) -> None:
    with following(world) as follower:
        for turn in range(3):
            world.in_source(f"UPDATE account SET balance = {turn} WHERE id = 2", "FLUSH BINARY LOGS")
        world.load()
        assert world.found().position == 4
        assert follower.catch_up() == 3
        assert (follower.failed(), world.differences("account", "move")) == ({}, {})


def test_a_transaction_that_is_in_the_binlog_and_not_yet_committed_is_not_lost(world: BinlogLoading) -> None:
    url = world.ends.source.url
    before = here(url)
    world.in_source(
        "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'", "SET GLOBAL rpl_semi_sync_master_timeout = 4000",
        "SET GLOBAL rpl_semi_sync_master_enabled = ON",
    )  # fmt: skip
    writer = threading.Thread(target=world.in_source, args=("UPDATE account SET balance = 77 WHERE id = 1",))
    try:
        with following(world) as follower:
            writer.start()
            eventually(lambda: here(url) != before)
            world.load()
            writer.join()
            follower.catch_up()
            assert (follower.failed(), world.differences("account", "move")) == ({}, {})
    finally:
        writer.join()
        world.in_source("SET GLOBAL rpl_semi_sync_master_enabled = OFF")


def test_a_transaction_that_is_prepared_at_the_point_comes_by_the_log(world: BinlogLoading) -> None:
    with following(world) as follower:
        with closing(session(world.ends.source.url)) as other:
            for statement in (
                "XA START 'one'", "UPDATE account SET balance = 5 WHERE id = 3", "XA END 'one'", "XA PREPARE 'one'"
            ):  # fmt: skip
                other.query(statement)
            world.load()
            assert world.in_target("SELECT balance FROM account WHERE id = 3") == [(1000,)]
            other.query("XA COMMIT 'one'")
        assert follower.catch_up() == 1
        assert (follower.failed(), world.differences("account", "move")) == ({}, {})


def test_where_sessions_find_no_common_place_commits_are_kept_out(
    world: BinlogLoading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(same_place, "BEGINNINGS", 0)
    with writers(world.ends.source.url) as done:
        world.load()
        assert total(world) == (4000, 4_000_000)
        seen = len(done)
        eventually(lambda: len(done) > seen + 5)


def test_who_may_not_keep_commits_out_is_told_so(world: BinlogLoading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same_place, "BEGINNINGS", 0)
    url, name = world.ends.source.url, unique("reader").replace("-", "_")
    database = url.split("/")[3].split("?")[0]
    world.in_source(
        f"CREATE USER {name}@localhost", f"GRANT SELECT ON {database}.* TO {name}@localhost",
        f"GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO {name}@localhost",
    )  # fmt: skip
    poor = replace(world.ends, source=replace(world.ends.source, url=url.replace("root@", f"{name}@")))
    with pytest.raises(SourceError, match=r"GRANT RELOAD ON \*\.\* TO the user"):
        BinlogLoading(poor).load()
    monkeypatch.setattr(same_place, "BEGINNINGS", 50)
    monkeypatch.setattr(same_place, "has_xa", lambda _: False)  # other tests of the server may have
    assert BinlogLoading(poor).load().state is LoadState.LIVE
    world.in_source(f"DROP USER {name}@localhost")


PAIRS = {
    "bigint": ("BIGINT", "-9223372036854775808"), "numeric(20)": ("BIGINT UNSIGNED", "18446744073709551615"),
    "boolean": ("TINYINT(1)", "1"), "numeric(30,10)": ("DECIMAL(30,10)", "-12345678901234567890.0123456789"),
    "real": ("FLOAT", "0.1"), "numeric": ("FLOAT", "16777217"), "double precision": ("DOUBLE", "0.30000000000000004"),
    "bit(10)": ("BIT(10)", "b'1000000001'"), "text": ("LONGTEXT", "'ä\\\\x\t\n\r𝄞'"), "bytea": ("BLOB", "X'00ff5c'"),
    "varchar(5)": ("VARCHAR(5) CHARACTER SET latin1", "'€ä'"), "date": ("DATE", "'2024-02-29'"),
    "timestamp(6)": ("DATETIME(6)", "'2024-02-29 23:59:59.987654'"), "interval": ("TIME(6)", "'-838:59:58.5'"),
    "timestamptz(6)": ("TIMESTAMP(6)", "'2024-02-29 23:59:59.987654'"), "smallint": ("YEAR", "2024"),
    "jsonb": ("JSON", "'{\"a\": 1.50}'"), "uuid": ("UUID", "'11223344-5566-1788-99aa-bbccddeeff00'"),
    "inet": ("INET6", "'::ffff:1.2.3.4'"), "varchar(3)": ("ENUM('a','b')", "'b'"),
    "varchar(9)": ("SET('x','y')", "'x,y'"), "char(7)": ("INT(5) ZEROFILL", "42"), "varchar(1)": ("TEXT", "''"),
}  # fmt: skip


def test_a_row_that_is_copied_and_one_that_is_applied_are_the_same(
    mariadb_source_server: str, postgres: str, tmp_path: Path
) -> None:
    here, there = (", ".join(f"v{n} {kind}" for n, kind in enumerate(kinds))
                   for kinds in ((kind for kind, _ in PAIRS.values()), PAIRS))  # fmt: skip
    values = ", ".join(value for _, value in PAIRS.values())
    with (
        source_database(mariadb_source_server) as source,
        binlog_loading(
            source, postgres, tmp_path,
            ["SET time_zone = '+00:00'", f"CREATE TABLE wide (id INT PRIMARY KEY, {here})",
             f"INSERT INTO wide VALUES (1, {values})", "INSERT INTO wide (id) VALUES (3)"],
            [f"CREATE TABLE wide (id int PRIMARY KEY, {there})"],
        ) as world,
        following(world) as follower,
    ):  # fmt: skip
        world.load()
        world.in_source(
            "SET time_zone = '+00:00'", f"INSERT INTO wide VALUES (2, {values})", "INSERT INTO wide (id) VALUES (4)"
        )
        follower.catch_up()
        assert follower.failed() == {}
        rows = world.in_target("SELECT to_jsonb(w) - 'id' FROM wide w ORDER BY id")
        assert len(rows) == 4
        assert rows[0] == rows[1]
        assert set(rows[2][0].values()) == {None}
        assert rows[2] == rows[3]
