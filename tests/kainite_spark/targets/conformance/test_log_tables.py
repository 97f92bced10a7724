"""One table of a target has one log."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

from kainite.base.errors import CatalogueError, KainiteError, TargetFencedError
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.log_tables import LogTables
from kainite_spark.targets.opening import open_target
from support.stores import DATABASES, Database, Store

pytestmark = DATABASES


def taking(log: str, *tables: str, target: str = "") -> LogTables:
    return LogTables(log, f"{log}/{target}" if target else log, {table: f"s.{table}" for table in tables})


def begins(store: Store, log: str, *tables: str, generation: int, target: str = "") -> None:
    """Begins an apply job, which has these tables in its settings file."""
    own = taking(log, *tables, target=target)
    store.target.take_tables(own)
    store.target.raise_generation(own.log_partition, generation)
    store.target.give_up_tables(Fence(own.log_partition, generation, 1), own)


def taken(store: Store) -> list[tuple[str, str]]:
    return [
        (name, log) for name, log in store.database.rows("SELECT table_name, log FROM kainite_log_table ORDER BY 1")
    ]


def test_a_log_takes_its_tables_as_often_as_it_begins(shop: Store) -> None:
    for _ in range(2):
        shop.target.take_tables(taking("log/0", "a", "b"))
    assert taken(shop) == [("s.a", "log/0"), ("s.b", "log/0")]


def test_a_table_of_another_log_is_refused_and_nothing_is_taken(shop: Store) -> None:
    shop.target.take_tables(taking("log/0", "a", "b"))
    with pytest.raises(CatalogueError, match=r"table s\.b of the target is written by the log log/0, and log/1 would"):
        shop.target.take_tables(taking("log/1", "b", "c"))
    assert taken(shop) == [("s.a", "log/0"), ("s.b", "log/0")]


def test_logs_with_different_tables_do_not_meet(shop: Store) -> None:
    shop.target.take_tables(taking("log/0", "a"))
    shop.target.take_tables(taking("log/1", "b"))
    shop.target.take_tables(taking("log/0", "a"))
    assert taken(shop) == [("s.a", "log/0"), ("s.b", "log/1")]


def test_a_table_that_a_log_gives_up_is_free(shop: Store) -> None:
    """Shows what a log is refused changes nothing of what it had."""
    begins(shop, "log/0", "a", "b", generation=1)
    shop.target.take_tables(taking("log/1", "c"))
    with pytest.raises(CatalogueError):
        shop.target.take_tables(taking("log/1", "a"))
    assert ("s.c", "log/1") in taken(shop)
    begins(shop, "log/0", "b", generation=2)
    begins(shop, "log/1", "a", generation=1)
    assert taken(shop) == [("s.a", "log/1"), ("s.b", "log/0")]
    begins(shop, "log/1", generation=2)
    assert taken(shop) == [("s.b", "log/0")]


def test_a_job_that_waits_for_the_one_that_runs_gives_nothing_up(shop: Store) -> None:
    """Shows a standby with another settings file frees no table that the running job writes to."""
    begins(shop, "log/0", "a", "b", generation=1)
    shop.target.take_tables(taking("log/0", "b"))
    with pytest.raises(CatalogueError):
        shop.target.take_tables(taking("log/1", "a"))


def test_a_job_that_was_taken_over_gives_nothing_up(shop: Store) -> None:
    begins(shop, "log/0", "a", generation=1)
    begins(shop, "log/0", "a", "b", generation=2)
    with pytest.raises(TargetFencedError):
        shop.target.give_up_tables(Fence("log/0", 1, 2), taking("log/0", "a"))
    assert taken(shop) == [("s.a", "log/0"), ("s.b", "log/0")]


def test_a_table_is_given_up_under_the_fence_that_shuts_out_the_tasks_that_wrote_to_it(shop: Store) -> None:
    begins(shop, "log/0", "a", "b", generation=1)
    shop.target.give_up_tables(Fence("log/0", 1, 2), taking("log/0", "b"))
    with pytest.raises(TargetFencedError):
        shop.session.apply(Fence("log/0", 1, 1), [shop.unit(1, shop.insert("region", id=2, name="a"))])


def test_a_table_goes_from_one_target_of_a_log_to_another(shop: Store) -> None:
    """Shows two targets of one log may be one database, and each replaces its own tables alone."""
    begins(shop, "log/0", "a", "b", generation=1)
    begins(shop, "log/0", "a", target="shop", generation=1)
    begins(shop, "log/0", "b", target="crm", generation=1)
    assert taken(shop) == [("s.a", "log/0"), ("s.b", "log/0")]
    begins(shop, "log/0", target="crm", generation=2)
    assert taken(shop) == [("s.a", "log/0")]


def test_of_two_logs_that_begin_together_one_has_all_and_one_nothing(shop: Store) -> None:
    both = threading.Barrier(2)
    refused: list[str] = []

    def begin(log: str, tables: tuple[str, ...]) -> None:
        with closing(open_target(shop.database.target, shop.catalogue)) as own:  # each is a process of its own
            both.wait(30)
            try:
                own.take_tables(taking(log, *tables))
            except KainiteError as error:
                refused.append(str(error))

    names = tuple("abcdefgh")
    threads = [
        threading.Thread(target=begin, args=("log/0", names)),
        threading.Thread(target=begin, args=("log/1", names[::-1])),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    logs = {log for _, log in taken(shop)}
    assert len(logs) == len(refused) == 1
    assert len(taken(shop)) == len(names)


def test_logs_that_begin_together_do_not_keep_each_other_from_their_tables(shop: Store) -> None:
    together = threading.Barrier(3)
    refused: list[str] = []

    def begin(log: str) -> None:
        own = taking(log, *(f"{log}_{letter}" for letter in "abcdefgh"))
        with closing(open_target(shop.database.target, shop.catalogue)) as target:
            for _ in range(20):
                together.wait(30)
                try:
                    target.take_tables(own)
                except KainiteError as error:
                    refused.append(str(error))

    threads = [threading.Thread(target=begin, args=(f"log/{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not refused
    assert len(taken(shop)) == 24


def test_a_person_who_frees_the_tables_of_a_log_that_is_over(shop: Store, database: Database) -> None:
    """Shows what the refusal advises."""
    shop.target.take_tables(taking("log/0", "a"))
    database.run("DELETE FROM kainite_log_table WHERE log = 'log/0'")
    shop.target.take_tables(taking("log/1", "a"))
    assert taken(shop) == [("s.a", "log/1")]
