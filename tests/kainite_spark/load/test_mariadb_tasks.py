"""Loads from PostgreSQL into MariaDB: what is copied and refused, what a kill leaves, and the stream behind them."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import psycopg
import pytest

from kainite.base.errors import CatalogueError, TargetError, TargetRejectedError
from kainite.capture.postgresql.consistent_snapshot import lives
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate import page_ranges
from kainite.replicate.ledger import CopyStep, LoadState
from kainite.replicate.mariadb_load_ledger import MariadbLoadLedger
from kainite.replicate.mariadb_target_session import mariadb_session
from kainite_spark.load.mariadb_tasks import run_mariadb_step
from kainite_spark.load.runner import ThreadStepRunner
from kainite_spark.load.tasks import LoadStepResult, LoadTask, RowsOf, StepOutcome, rows_of_postgresql
from support.mariadb_loading import MariadbLoading, mariadb_following, mariadb_loading
from support.replicas import LOG
from support.waiting import eventually

SOURCE = (
    "CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL, boss int REFERENCES account, pad text)",
    "CREATE TABLE counter (id int PRIMARY KEY, n bigint NOT NULL)",
    "CREATE TABLE entry (n bigint PRIMARY KEY, giver int REFERENCES account, taker int REFERENCES account)",
    "INSERT INTO account SELECT n, 100, CASE WHEN n < 3000 THEN n + 1 END, repeat('x', 300)"
    " FROM generate_series(1, 3000) n",
    "INSERT INTO counter VALUES (1, 0)",
)
TARGET = (
    "CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL, boss int, pad longtext,"
    " FOREIGN KEY (boss) REFERENCES account (id))",
    "CREATE TABLE counter (id int PRIMARY KEY, n bigint NOT NULL)",
    "CREATE TABLE entry (n bigint PRIMARY KEY, giver int, taker int, FOREIGN KEY (giver) REFERENCES account (id),"
    " FOREIGN KEY (taker) REFERENCES account (id))",
)
TABLES = ("account", "counter", "entry")


@pytest.fixture
def world(source: SourceSlot, mariadb_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[MariadbLoading]:
    monkeypatch.setattr(page_ranges, "LEAST_PAGES", 50)
    with mariadb_loading(source, mariadb_server, SOURCE, TARGET) as made:
        yield made


@dataclass
class Traffic:
    """Transactions that move money, and count themselves: a state that the source never had shows."""

    url: str
    count: int = 0

    def go(self, times: int) -> None:
        with psycopg.connect(self.url) as connection:
            for _ in range(times):
                self.count += 1
                giver, taker = self.count * 7 % 3000 + 1, self.count * 13 % 2999 + 1
                with connection.transaction():
                    run = connection.execute
                    run("UPDATE account SET balance = balance - 1 WHERE id = %s", [giver])
                    run("UPDATE account SET balance = balance + 1 WHERE id = %s", [taker])
                    run("UPDATE counter SET n = n + 1")
                    run("INSERT INTO entry VALUES (%s, %s, %s)", [self.count, giver, taker])


def state(world: MariadbLoading) -> int:
    """Checks that the target is a state that the source had; returns which one, by its count."""
    [(total, count, entries, latest)] = world.in_target(
        "SELECT (SELECT sum(balance) FROM account), n, (SELECT count(*) FROM entry),"
        " (SELECT coalesce(max(n), 0) FROM entry) FROM counter"
    )
    assert (total, entries, latest) == (300_000, count, count)
    return int(count)


class DriverKilledError(Exception):
    """Ends a load where SIGKILL would."""


@dataclass
class WatchedSteps:
    """Implements :class:`kainite_spark.load.rounds.StepRunner`: calls back before each job of a few steps."""

    before: Callable[[LoadTask, int], object] = lambda _, __: None
    parallelism: int = 2
    jobs: int = 0
    ran: list[int] = field(default_factory=list)

    def run(self, task: LoadTask, steps: Sequence[int], look: Callable[[], None]) -> list[LoadStepResult]:
        self.before(task, self.jobs)
        self.jobs += 1
        results = ThreadStepRunner(self.parallelism).run(task, steps[:2], look)
        self.ran += [result.step for result in results if result.outcome is StepOutcome.DONE]
        return results


def killed_at(job: int) -> WatchedSteps:
    """Returns a runner whose driver dies before a job."""

    def die(_: LoadTask, now: int) -> None:
        if now == job:
            raise DriverKilledError

    return WatchedSteps(die)


def test_each_state_from_the_first_one_on_is_one_of_the_source(world: MariadbLoading) -> None:
    traffic = Traffic(world.ends.source.url)
    traffic.go(5)
    with mariadb_following(world) as follower:
        follower.log(5)  # in the log before the point, as some of what comes later
        steps = WatchedSteps(lambda _, __: traffic.go(3))
        found = world.load(steps)
        assert found.state is LoadState.LIVE
        assert len(steps.ran) > 5
        first = state(world)
        assert 5 <= first < traffic.count
        traffic.go(4)
        follower.catch_up(traffic.count)
        assert follower.failed() == {}
        assert state(world) == traffic.count
        assert world.differences(*TABLES) == {}
        told = world.status()
        assert (told.consistent, told.rows, told.statements, told.statements_done) == (True, 3001 + first, 3, 3)

        traffic.go(3)
        follower.log(traffic.count)  # before the second point, and not applied
        again = world.load(WatchedSteps(lambda _, __: traffic.go(1)), anew=True)
        assert again.generation == found.generation + 1
        second = state(world)
        assert traffic.count > second >= first + 7
        follower.catch_up(traffic.count)
        assert follower.failed() == {}
        assert world.differences(*TABLES) == {}


# While rows are copied; while foreign keys are looked at; before anything is copied.
@pytest.mark.parametrize("job", [2, *(pytest.param(job, marks=pytest.mark.long) for job in (4, 0))])
def test_a_driver_that_was_killed_goes_on_where_it_was(world: MariadbLoading, job: int) -> None:
    with pytest.raises(DriverKilledError):
        world.load(killed_at(job))
    before = world.found()
    assert before.state is LoadState.LOADING
    world.in_source("INSERT INTO counter VALUES (2, 7)")
    left = world.in_target("SELECT 1 FROM kainite_load_step WHERE done_at IS NULL")
    steps = WatchedSteps()
    after = world.load(steps)
    assert (after.state, after.position, after.generation) == (LoadState.LIVE, before.position, before.generation + 1)
    assert len(steps.ran) == len(left) > 0
    assert world.differences(*TABLES) == {"counter": (1, 0)}


def test_a_load_whose_snapshot_is_gone_empties_what_it_had_copied_and_begins_anew(world: MariadbLoading) -> None:
    with pytest.raises(DriverKilledError):
        world.load(killed_at(1))
    before = world.found()
    assert before.snapshot is not None
    snapshot = before.snapshot
    world.in_source(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE backend_type = 'walsender' AND datname = current_database()",
        "DELETE FROM account WHERE id = 1",
    )
    eventually(lambda: not lives(world.ends.source.url, snapshot))
    after = world.load()
    assert after.state is LoadState.LIVE
    assert (after.position or 0) > (before.position or 0)
    assert world.differences(*TABLES) == {}


_FROZEN = """
import os, pickle, signal, sys
from contextlib import contextmanager
from functools import partial
from kainite_spark.load.mariadb_tasks import run_mariadb_step
from kainite_spark.load.tasks import close_sessions, rows_of_postgresql

@contextmanager
def frozen(rows_of, work):
    with rows_of(work) as blocks:
        def some():
            yield from blocks
            os.kill(os.getpid(), signal.SIGSTOP)
        yield some()

task, step = pickle.load(open(sys.argv[1], "rb"))
print(run_mariadb_step(task, step, partial(frozen, partial(rows_of_postgresql, task, step))).outcome.value)
close_sessions()
"""


def test_a_task_that_is_frozen_with_its_rows_written_changes_nothing_when_it_wakes_up(
    world: MariadbLoading, tmp_path: Path
) -> None:

    begun: list[subprocess.Popen[str]] = []

    def freeze(task: LoadTask, job: int) -> None:
        if job:
            return
        path = tmp_path / "task"
        path.write_bytes(pickle.dumps((task, 1)))
        process = subprocess.Popen([sys.executable, "-c", _FROZEN, str(path)], stdout=subprocess.PIPE, text=True)
        begun.append(process)
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])

    steps = WatchedSteps(freeze)
    try:
        assert world.load(steps).state is LoadState.LIVE
        assert 1 in steps.ran
        os.kill(begun[0].pid, signal.SIGCONT)
        said = begun[0].communicate(timeout=60)[0]
    finally:
        for process in begun:
            process.kill()
            process.communicate()
    assert said.strip() == StepOutcome.AGAIN.value
    assert world.differences(*TABLES) == {}


@contextmanager
def altering(world: MariadbLoading, rows: RowsOf, work: CopyStep) -> Iterator[Iterator[bytes]]:
    """Alters the target's tables between the look at their columns and the first row."""
    world.change_target(*(f"ALTER TABLE {table} ADD COLUMN more int" for table in TABLES))
    world.change_target(*(f"ALTER TABLE {table} DROP COLUMN more, COMMENT 'altered'" for table in TABLES))
    with rows(work) as blocks:
        yield blocks


def test_a_driver_that_another_one_has_shut_out_copies_nothing_more(world: MariadbLoading) -> None:
    tasks: list[LoadTask] = []

    def keep(task: LoadTask, job: int) -> None:
        tasks.append(task)
        if job:
            raise DriverKilledError

    with pytest.raises(DriverKilledError):
        world.load(WatchedSteps(keep))
    with mariadb_session(world.ends.target) as connection:
        MariadbLoadLedger(connection, LOG).go_on()
    [result, _] = ThreadStepRunner(1).run(tasks[0], [4, 5], lambda: None)
    assert result.outcome is StepOutcome.FENCED
    task = replace(tasks[0], generation=world.found().generation)
    step = world.in_target("SELECT min(step) FROM kainite_load_step WHERE done_at IS NULL")[0][0]
    altered = run_mariadb_step(task, step, partial(altering, world, partial(rows_of_postgresql, task, step)))
    assert (altered.outcome, "was altered while" in altered.cause) == (StepOutcome.AGAIN, True)
    results = ThreadStepRunner(1).run(task, [step, step], lambda: None)  # as Spark may run a task twice
    assert [one.outcome for one in results] == [StepOutcome.DONE] * 2
    gone = replace(task, snapshot="00000003-00000002-1")
    left = world.in_target("SELECT min(step) FROM kainite_load_step WHERE done_at IS NULL")[0][0]
    assert ThreadStepRunner(1).run(gone, [left], lambda: None)[0].outcome is StepOutcome.SNAPSHOT_LOST
    with mariadb_session(world.ends.target) as connection:
        MariadbLoadLedger(connection, LOG)
        with pytest.raises(TargetError, match="another kainite replicate load of log/0 runs"):
            world.load()


def test_rows_without_a_parent_are_named_and_the_load_goes_on_when_that_is_mended(world: MariadbLoading) -> None:
    world.in_source("ALTER TABLE entry DROP CONSTRAINT entry_giver_fkey", "INSERT INTO entry VALUES (7, 4711, 1)")
    world.change_target("CREATE TABLE other (id int PRIMARY KEY, boss int, FOREIGN KEY (boss) REFERENCES account (id))",
                        "SET foreign_key_checks = 0; INSERT INTO other VALUES (1, 9999)")  # fmt: skip
    with pytest.raises(TargetRejectedError) as error:
        world.load()
    for part in (
        "foreign key entry_ibfk_1 of public.entry: no row of `public`.`account` for `giver` in (4711)",
        "foreign key other_ibfk_1 of public.other: no row of `public`.`account` for `boss` in (9999)",
    ):
        assert part in str(error.value)
    assert world.found().state is LoadState.LOADING
    assert any("(4711)" in cause for cause in world.status().refused)
    world.change_target("ALTER TABLE entry DROP FOREIGN KEY entry_ibfk_1", "DROP TABLE other")
    assert world.load().state is LoadState.LIVE
    assert world.differences(*TABLES) == {}


def test_what_the_target_refuses_ends_the_load_with_its_cause(world: MariadbLoading) -> None:
    world.in_source("INSERT INTO counter VALUES (2, 3000000000)")
    world.change_target("ALTER TABLE counter MODIFY n int NOT NULL")
    with pytest.raises(TargetRejectedError, match=r"public\.counter: Out of range value for column 'n'"):
        world.load()
    assert {table.table: table.state.value for table in world.status().tables}["public.counter"] == "failed"
    world.change_target("ALTER TABLE counter MODIFY n bigint NOT NULL")
    assert world.load().state is LoadState.LIVE
    assert world.differences(*TABLES) == {}


def test_rows_that_no_load_has_put_there_are_left_alone(world: MariadbLoading) -> None:
    world.change_target("INSERT INTO counter VALUES (9, 9)")
    with pytest.raises(CatalogueError, match=r"rows that no load has put there, in public\.counter"):
        world.load()
    assert world.in_target("SELECT * FROM counter") == [(9, 9)]


def test_a_table_or_column_that_the_target_lacks_is_refused_before_anything_is_done(world: MariadbLoading) -> None:
    world.change_target("ALTER TABLE counter DROP COLUMN n", "DROP TABLE entry")
    with pytest.raises(CatalogueError, match=r"no table public\.entry; the target's table public\.counter has no"):
        world.load()
    assert world.in_target("SELECT * FROM kainite_load") == []


_TYPES = {
    "a smallint": "smallint", "b boolean": "boolean", "c numeric(12,3)": "decimal(12,3)", "d real": "float",
    "e double precision": "double", "f text": "longtext", "g varchar(20)": "varchar(20)", "h char(5)": "char(5)",
    "i date": "date", "j timestamp": "datetime(6)", "k timestamptz": "datetime(6)", "l time": "time(6)",
    "m uuid": "uuid", "n jsonb": "json", "o bytea": "longblob", "p bit(5)": "bit(5)", "q bigint": "bigint",
    "r boolean": "bigint", "s integer": "varchar(20)",
}  # fmt: skip
_VALUES = (
    "-32768, true, -123456789.125, 1.5e-10, 0.1, E'a\\tb\\n\\\\c''\"é€\\U0001D11E\\r', 'x ', 'ab', '2024-02-29',"
    " '2024-01-01 10:11:12.123456', '2024-01-01 10:11:12.5+05:45', '23:59:59.999999', gen_random_uuid(),"
    """ '{"a": [1, null, "\\u00e9"]}', '\\x00ff27', B'10110', -9223372036854775808, false, 7""",
    ", ".join(["NULL"] * len(_TYPES)),
    "0, false, 0, 0, -0.0, '', '', '', '1000-01-01', '9999-12-31 23:59:59', '1970-01-01 00:00:00+00', '00:00',"
    " '00000000-0000-0000-0000-000000000000', 'null', '', B'00000', 0, true, 0",
)


def test_rows_that_are_copied_are_spelled_as_those_that_come_through_the_stream(
    source: SourceSlot, mariadb_server: str
) -> None:
    made = f"CREATE TABLE kind (id int PRIMARY KEY, {', '.join(_TYPES)})"
    there = ", ".join(f"{name.split()[0]} {kind}" for name, kind in _TYPES.items())
    fill = [f"INSERT INTO kind VALUES ({number}, {values})" for number, values in enumerate(_VALUES)]
    with mariadb_loading(
        source, mariadb_server, [made, *fill], [f"CREATE TABLE kind (id int PRIMARY KEY, {there})"]
    ) as world:
        assert world.load().state is LoadState.LIVE
        columns = ", ".join(name.split()[0] for name in _TYPES)
        world.in_source(f"INSERT INTO kind SELECT id + 100, {columns} FROM kind")
        with mariadb_following(world) as follower:
            follower.catch_up(1)
            assert follower.failed() == {}
        copied = world.in_target(f"SELECT {columns} FROM kind WHERE id < 100 ORDER BY id")
        assert copied == world.in_target(f"SELECT {columns} FROM kind WHERE id >= 100 ORDER BY id")
        assert copied[0][5] == "a\tb\n\\c'\"é€𝄞\r"
        assert copied[0][10] == world.in_source("SELECT k AT TIME ZONE 'UTC' FROM kind WHERE id = 0")[0][0]
        assert copied[0][14] == b"\x00\xff'"
        assert set(copied[1]) == {None}


def test_a_row_that_is_longer_than_a_packet_is_refused_with_what_mends_it(
    source: SourceSlot, mariadb_server: str
) -> None:
    made = ("CREATE TABLE note (id int PRIMARY KEY, told text)", "INSERT INTO note VALUES (1, repeat('x', 1100000))")
    with mariadb_loading(
        source, mariadb_server, made, ["CREATE TABLE note (id int PRIMARY KEY, told longtext)"]
    ) as world:
        [(most,)] = world.in_target("SELECT @@global.max_allowed_packet")
        world.change_target("SET GLOBAL max_allowed_packet = 1048576")
        try:
            with pytest.raises(TargetRejectedError, match="max_allowed_packet of 1048576: SET GLOBAL max_"):
                world.load()
        finally:
            world.change_target(f"SET GLOBAL max_allowed_packet = {most}")
