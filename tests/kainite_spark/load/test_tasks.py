"""Steps that are repeated, left behind, killed or frozen: the target has the rows of each once."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import source_session
from kainite.replicate.keeper import kept_snapshot
from kainite.replicate.ledger import CopyStep, LoadStep, StatementStep
from kainite.replicate.load_ledger import LoadLedger
from kainite.replicate.tables import published
from kainite_demo.postgres_server import postgres as server
from kainite_spark.load.tasks import LoadTask, StepOutcome, run_step
from kainite_spark.targets.postgresql import ledger as apply_ledger
from support.replicas import Loading, loading
from support.waiting import eventually

TABLES = "CREATE TABLE item (id int PRIMARY KEY, name text)"
FILL = "INSERT INTO item SELECT n, 'x' FROM generate_series(1, 500) n"
SLOW = "COPY (SELECT id, name FROM (SELECT id, name, pg_sleep(0.006) FROM public.item OFFSET 0) AS s) TO STDOUT"


@contextmanager
def planned(source: SourceSlot, postgres: str, *work: CopyStep | StatementStep) -> Iterator[tuple[Loading, LoadTask]]:
    """Gives a load with steps from 1 on, whose driver is this process."""
    with (
        loading(source, postgres, FILL, both=[TABLES]) as world,
        psycopg.connect(postgres, autocommit=True) as connection,
    ):
        connection.execute(apply_ledger.CREATE_FENCE)
        ledger = LoadLedger(connection, world.ends.log_partition)
        ledger.create()
        ledger.begin()
        point = kept_snapshot(world.ends, ledger.generation, ())
        with source_session(source.url) as session:
            tables = published(session, source.publication)
        steps = [LoadStep(number, 1, "public", "item", each) for number, each in enumerate(work, 1)]
        ledger.plan(point, tables, steps)
        yield world, LoadTask(world.ends, ledger.generation, point.snapshot)


def copying(query: str = "COPY (SELECT id, name FROM public.item) TO STDOUT") -> CopyStep:
    return CopyStep((query,), "COPY item (id, name) FROM STDIN")


@contextmanager
def in_process(task: LoadTask, step: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a step in a process of its own."""
    file = folder / "task"
    file.write_bytes(pickle.dumps((task, step)))
    code = (
        "import pickle, sys; from kainite_spark.load.tasks import run_step;"
        " print(run_step(*pickle.load(open(sys.argv[1], 'rb'))).outcome.value)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def is_copying(world: Loading) -> bool:
    query = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY item%' AND state = 'active'"
    return bool(world.in_target(query) == [(1,)])


def test_a_step_that_runs_again_changes_nothing(source: SourceSlot, postgres: str) -> None:
    with planned(source, postgres, copying(), StatementStep("CREATE INDEX named ON public.item (name)")) as (
        world,
        task,
    ):
        for _ in range(2):
            assert [run_step(task, step).outcome for step in (1, 2)] == [StepOutcome.DONE] * 2
        assert world.differences() == {}
        assert world.in_target("SELECT step, rows, bytes FROM kainite_load_step ORDER BY 1")[0] == (1, 500, 2892)


def test_a_frozen_task_changes_nothing_when_it_wakes_up_behind_its_repetition(
    source: SourceSlot, postgres: str, tmp_path: Path
) -> None:
    with (
        planned(source, postgres, copying(SLOW)) as (world, task),
        in_process(task, 1, tmp_path) as frozen,
    ):
        eventually(lambda: is_copying(world))
        os.kill(frozen.pid, signal.SIGSTOP)
        assert run_step(task, 1).outcome is StepOutcome.DONE
        os.kill(frozen.pid, signal.SIGCONT)
        assert frozen.communicate(timeout=60)[0] == b"again\n"
        assert world.differences() == {}


def test_a_frozen_task_of_an_earlier_driver_does_not_hold_up_the_next_one(
    source: SourceSlot, postgres: str, tmp_path: Path
) -> None:
    with (
        planned(source, postgres, copying(SLOW)) as (world, task),
        in_process(task, 1, tmp_path) as frozen,
    ):
        eventually(lambda: is_copying(world))
        os.kill(frozen.pid, signal.SIGSTOP)
        world.in_target("SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'")
        world.load()
        os.kill(frozen.pid, signal.SIGCONT)
        assert frozen.communicate(timeout=60)[0] == b"again\n"
        assert world.differences() == {}
        assert run_step(task, 1).outcome is StepOutcome.FENCED


def test_a_task_that_is_killed_leaves_nothing(source: SourceSlot, postgres: str, tmp_path: Path) -> None:
    with planned(source, postgres, copying(SLOW)) as (world, task):
        with in_process(task, 1, tmp_path) as killed:
            eventually(lambda: is_copying(world))
            killed.kill()
        eventually(lambda: not is_copying(world))
        assert world.in_target("SELECT count(*) FROM item") == [(0,)]
        assert run_step(task, 1).outcome is StepOutcome.DONE
        assert world.differences() == {}


def test_a_step_that_a_crash_of_the_target_takes_back_is_done_again(source: SourceSlot) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="kainite-crash-") as folder,
        server(Path(folder) / "target", bgwriter_lru_maxpages="0") as target,
        planned(source, target, copying(), StatementStep("CREATE INDEX named ON public.item (name)")) as (world, task),
    ):
        [(writer,)] = world.in_target("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
        os.kill(writer, signal.SIGSTOP)
        assert [run_step(task, step).outcome for step in (1, 2)] == [StepOutcome.DONE] * 2
        assert world.in_target("SELECT count(*) FROM item") == [(500,)]
        os.kill(writer, signal.SIGKILL)  # the server ends all sessions, and begins anew from its disk
        eventually(lambda: answers_anew(world, writer))
        assert world.in_target("SELECT count(*) FROM kainite_load_step WHERE done_at IS NULL") == [(2,)]
        assert world.in_target("SELECT (SELECT count(*) FROM item), to_regclass('named') IS NULL") == [(0, True)]
        assert [run_step(task, step).outcome for step in (1, 2)] == [StepOutcome.DONE] * 2
        assert world.differences() == {}


def answers_anew(world: Loading, writer: int) -> bool:
    try:
        found = world.in_target("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
    except psycopg.OperationalError:
        return False
    return found not in ([], [(writer,)])


def test_a_task_without_its_snapshot_and_one_of_another_generation_say_so(source: SourceSlot, postgres: str) -> None:
    with planned(source, postgres, copying()) as (world, task):
        assert run_step(replace(task, snapshot="00000003-00000002-1"), 1).outcome is StepOutcome.SNAPSHOT_LOST
        assert run_step(replace(task, snapshot="none"), 1).outcome is StepOutcome.SNAPSHOT_LOST
        assert run_step(replace(task, generation=task.generation + 1), 1).outcome is StepOutcome.FENCED
        assert world.in_target("SELECT count(*) FROM item") == [(0,)]


def test_what_a_database_refuses_has_its_cause_and_what_passes_is_tried_again(
    source: SourceSlot, postgres: str
) -> None:
    bad = CopyStep(("COPY (SELECT id, id FROM public.item) TO STDOUT",), "COPY item (id, missing) FROM STDIN")
    with planned(source, postgres, bad, copying()) as (world, task):
        refused = run_step(task, 1)
        assert refused.outcome is StepOutcome.REFUSED
        assert 'column "missing" of relation "item" does not exist' in refused.cause
        away = replace(task, ends=replace(world.ends, target="postgresql:///x?host=/nonexistent"))
        assert run_step(away, 2).outcome is StepOutcome.AGAIN


@pytest.mark.parametrize("setting", ["DateStyle = 'German'", "lc_monetary = 'C.UTF-8'", "client_encoding = 'LATIN1'"])
def test_values_do_not_depend_on_what_the_databases_have_set(source: SourceSlot, postgres: str, setting: str) -> None:
    table = "CREATE TABLE value (id int PRIMARY KEY, d date, f float8, i interval, b bytea, t text)"
    fill = "INSERT INTO value VALUES (1, '2026-02-03', 0.1::float8 + 0.2, '1 day 2 h', '\\x00ff', E'ä\\t\\\\\\n')"
    database = psycopg.conninfo.conninfo_to_dict(postgres)["dbname"]
    with loading(source, postgres, fill, both=[table]) as world:
        world.in_target(f'ALTER DATABASE "{database}" SET {setting}')
        world.load()
        assert world.differences() == {}


def test_a_kept_connection_that_was_lost_meanwhile_is_opened_anew(source: SourceSlot, postgres: str) -> None:
    with planned(source, postgres, StatementStep("SELECT 1"), copying()) as (world, task):
        assert run_step(task, 1).outcome is StepOutcome.DONE
        ended = (
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name LIKE 'kainite load %'"
        )
        assert world.in_target(ended) == [(True,)]
        assert run_step(task, 2).outcome is StepOutcome.DONE
        assert world.differences() == {}
