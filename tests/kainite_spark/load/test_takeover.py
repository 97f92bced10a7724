"""A target that went back is loaded again, and units are applied from the load's point on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import psycopg
import pytest

from kainite.base.errors import LogFencedError, TargetWentBackError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.state.outcomes import outcomes_partition
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.mariadb_target_session import mariadb_session
from kainite.store.memory import MemoryStore
from kainite.targets.mariadb.rows import rows_of
from kainite_spark.driver.outcomes import mount_outcomes
from kainite_spark.load.takeover import take_over
from kainite_spark.targets.mariadb import ledger as of_mariadb
from kainite_spark.targets.mark import TargetMark
from support.replica import Replica, replica
from support.replicas import LOG, Loading

TABLES = "CREATE TABLE account (id int PRIMARY KEY, balance int)"
BACK = ("UPDATE kainite_fence SET generation = 0, micro_batch = 0", "TRUNCATE kainite_applied, account")


def taking_over(made: Replica, target: str) -> Callable[[], int | None]:
    def act() -> int | None:
        with psycopg.connect(target, autocommit=True) as connection:
            return take_over(made.store, "0", connection, LOG, "a load", 60, threading.Event())

    return act


def test_a_load_repairs_a_target_that_went_back_and_one_that_is_empty(source: SourceSlot, postgres: str) -> None:
    with replica(source, postgres, TABLES) as made:
        world = Loading(ReplicaEnds(source, postgres, LOG), 0)
        world.load()
        assert taking_over(made, postgres)() is None, "nothing is committed"
        world.in_source(*(f"INSERT INTO account VALUES ({n}, 1)" for n in range(5)))
        made.catch_up(5)
        assert taking_over(made, postgres)() is None, "the target has it all"
        for back in (BACK, ("DELETE FROM kainite_fence", "TRUNCATE account")):
            world.in_target(*back)
            world.in_source("UPDATE account SET balance = balance + 1")
            with pytest.raises(TargetWentBackError, match="kainite replicate load --anew"):
                made.catch_up(1)
            world.in_source("DELETE FROM account WHERE id = 7", "INSERT INTO account VALUES (7, 1)")
            world.load(anew=True, take_over=taking_over(made, postgres))
            assert world.differences() == {}
            world.in_source("UPDATE account SET balance = balance * 2")
            made.catch_up(2 if back is BACK else 3)  # a deletion of no row is no transaction
            assert made.failed() == {}
            assert world.differences() == {}


def test_without_taking_over_the_target_is_refused_behind_the_load_as_well(source: SourceSlot, postgres: str) -> None:
    with replica(source, postgres, TABLES) as made:
        world = Loading(ReplicaEnds(source, postgres, LOG), 0)
        world.load()
        world.in_source("INSERT INTO account VALUES (1, 1)")
        made.catch_up(1)
        world.in_target(*BACK)
        world.load(anew=True)
        world.in_source("INSERT INTO account VALUES (2, 1)")
        with pytest.raises(TargetWentBackError):
            made.catch_up(1)


def test_a_job_that_still_writes_to_the_former_target_says_no_more_units_committed(postgres: str) -> None:
    store, name, stop = MemoryStore(), outcomes_partition("0"), threading.Event()
    lease = partial(mount_outcomes, store, name, lease=0.2, stop=stop)
    former = lease("a job")
    assert former is not None
    former.append([Outcome(1, UnitStatus.COMMITTED)], TargetMark(former.generation, 7))
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE kainite_fence (log_partition text, generation bigint, micro_batch bigint)")
        connection.execute("CREATE TABLE kainite_applied (log_partition text, transaction_id bigint)")
        generation = take_over(store, "0", connection, LOG, "a load", 0.2, stop)
    assert generation == former.generation + 1
    with pytest.raises(LogFencedError):
        former.append([Outcome(2, UnitStatus.COMMITTED)], TargetMark(former.generation, 8))


def test_a_mariadb_target_that_went_back_is_taken_over_too(mariadb: str) -> None:
    store, name, stop = MemoryStore(), outcomes_partition("0"), threading.Event()
    former = mount_outcomes(store, name, "a job", lease=0.2, stop=stop)
    assert former is not None
    former.append([Outcome(1, UnitStatus.COMMITTED)], TargetMark(former.generation, 7, (1,)))
    with mariadb_session(mariadb) as connection:
        for statement in of_mariadb.CREATE:
            connection.query(statement)
        rows_of(connection, of_mariadb.NEW_FENCE, LOG, former.generation)
        rows_of(connection, of_mariadb.ADVANCE, former.generation, 7, LOG)
        connection.query(f"{of_mariadb.ACKNOWLEDGE} ('{LOG}', 1, 'T')")
        taking = partial(take_over, store, "0", connection, LOG, "a load", 0.2, stop)
        assert taking() is None, "the target has it all"
        rows_of(connection, of_mariadb.TRIM, LOG, 2)
        assert taking() == former.generation + 1
        connection.query("DELETE FROM kainite_fence")
        assert taking() == former.generation + 2
