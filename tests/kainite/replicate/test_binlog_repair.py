"""Repairs replicas of MariaDB that live: rows become what the source has, and newer changes stay."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from kainite.base.errors import LogUnavailableError
from kainite.capture.mysql import same_place
from kainite.capture.places import commit_place_of
from kainite.log.format.entry import OperationResult
from kainite.operations.carrying_out import Operations
from kainite.operations.operation import OperationOutcome, RepairRows
from kainite.replicate.binlog_point import number_now
from kainite.replicate.paired_ends import paired_tables_to_compare
from kainite.replicate.repair import Repair, RepairOutcome
from kainite.replicate.repair_source import BinlogRepairs
from kainite.replicate.repaired_rows import to_repair
from kainite.replicate.verify_report import VerifyReport
from kainite.settings import Settings
from kainite_spark.verify.row_compare import RowCompareSource
from support.binlog_loading import BinlogLoading, Following, binlog_loading, following
from support.comparisons import compared_by
from support.mariadb_source import source_database
from support.replicas import tables_of
from support.waiting import eventually

SOURCE = (
    "CREATE TABLE customer (id INT PRIMARY KEY, name VARCHAR(40), vip TINYINT(1), code VARCHAR(20) UNIQUE,"
    " loud VARCHAR(40) AS (UPPER(name)) STORED, raw VARBINARY(9), at TIMESTAMP(3) NULL, weight DOUBLE)",
    "CREATE TABLE orders (customer INT, number INT, total DECIMAL(12,2), PRIMARY KEY (customer, number),"
    " FOREIGN KEY (customer) REFERENCES customer (id))",
    "CREATE TABLE word (word VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, n INT)",
    "INSERT INTO customer (id, name, vip, code, raw, at, weight) SELECT seq, CONCAT('customer ', seq), seq % 2,"
    " CONCAT('c', seq), X'00ff', FROM_UNIXTIME(1700000000 + seq), seq / 7 FROM seq_1_to_60",
    "INSERT INTO orders SELECT seq, seq % 3, seq / 4 FROM seq_1_to_60",
    "INSERT INTO word SELECT CONCAT(ELT(1 + seq % 3, 'a', 'B', 'ä'), seq), seq FROM seq_1_to_60",
)
TARGET = (
    "CREATE TABLE customer (id int PRIMARY KEY, name text, vip bool, code text UNIQUE,"
    " loud text GENERATED ALWAYS AS (upper(name)) STORED, raw bytea, at timestamptz, weight float8)",
    "CREATE TABLE orders (customer int REFERENCES customer, number int, total numeric(12,2),"
    " PRIMARY KEY (customer, number))",
    "CREATE TABLE word (word text PRIMARY KEY, n int)",
)
DAMAGES = (
    "UPDATE customer SET name = 'wrong', vip = NOT vip, raw = '', weight = 0 WHERE id IN (5, 6)",
    "DELETE FROM orders WHERE customer IN (7, 8)",
    "DELETE FROM customer WHERE id = 7",
    "INSERT INTO customer (id, name) VALUES (1001, 'nobody')",
    "INSERT INTO orders VALUES (1001, 1, 0)",
    "UPDATE orders SET total = total + 0.01 WHERE customer = 9",
    "UPDATE word SET word = upper(word) WHERE n = 3",  # the source's collation takes it for the same
    "UPDATE word SET word = lower(word) WHERE n = 4",
)


@contextmanager
def living(server: str, postgres: str, folder: Path) -> Iterator[tuple[BinlogLoading, Following]]:
    """Gives a replica that follows its source."""
    with (
        source_database(server) as source,
        binlog_loading(source, postgres, folder, SOURCE, TARGET) as world,
    ):
        world.load()
        with following(world) as follower:
            follower.catch_up()
            with follower.living():
                yield world, follower


@pytest.fixture(autouse=True)
def _no_prepared_transactions_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same_place, "has_xa", lambda _: False)


@pytest.fixture
def replica(mariadb_source_server: str, postgres: str, tmp_path: Path) -> Iterator[tuple[BinlogLoading, Following]]:
    with living(mariadb_source_server, postgres, tmp_path) as made:
        yield made


def compared(world: BinlogLoading, most_rows: int = 1000) -> VerifyReport:
    return compared_by(RowCompareSource(world.ends, 1), most_rows=most_rows)


def asking(follower: Following) -> Callable[[RepairRows], OperationOutcome]:
    """Returns what asks the log's owner."""
    operations = Operations(cast(Settings, None))
    operations.__dict__["log"] = follower.store, "0"
    return lambda asked: operations.carry_out(asked, "a test")


def repair_of(
    world: BinlogLoading,
    follower: Following,
    before_asking: Callable[[], Any] = lambda: None,
    ask: Callable[[RepairRows], OperationOutcome] | None = None,
    wait: float = 60.0,
) -> Repair:
    catalogue = tables_of(world.ends.target)
    tables = {table.name: table for table in paired_tables_to_compare(world.ends, catalogue, ()).tables}
    source = BinlogRepairs(world.ends, tables)
    return Repair(source, follower.store, "0", catalogue, ask or asking(follower), wait, before_asking=before_asking)


def repaired(world: BinlogLoading, follower: Following, **more: Any) -> RepairOutcome:
    """Compares, and repairs what differs."""
    return repair_of(world, follower, **more).run(to_repair(compared(world)))


def commit(world: BinlogLoading, follower: Following, *statements: str) -> None:
    """Commits a transaction in the source, and waits until it is in the log."""
    world.in_source("BEGIN", *statements, "COMMIT")
    number = number_now(world.ends)
    eventually(lambda: follower.number >= number)


def test_each_damage_is_repaired_while_both_live(replica: tuple[BinlogLoading, Following]) -> None:
    world, follower = replica
    world.in_target(*DAMAGES)
    outcome = repaired(world, follower)
    assert (outcome.status, outcome.left_out) == ("committed", ())
    assert outcome.rows == 12
    assert compared(world).verdict == "equal"
    eventually(lambda: follower.failed() == {})
    place = commit_place_of(outcome.unit)
    assert place is not None
    assert follower.number >= place > 0


def test_a_row_that_changes_behind_the_point_keeps_its_newer_value(replica: tuple[BinlogLoading, Following]) -> None:
    world, follower = replica
    changes = iter(["UPDATE customer SET name = 'newer' WHERE id = 5", "DELETE FROM customer WHERE id = 6"])

    def meanwhile() -> None:
        if (change := next(changes, None)) is not None:
            commit(world, follower, change)

    commit(world, follower, "DELETE FROM orders WHERE customer = 6")
    world.in_target("UPDATE customer SET name = 'wrong', vip = NOT vip WHERE id IN (5, 6)")
    outcome = repaired(world, follower, before_asking=meanwhile)
    assert (outcome.rows, outcome.status) == (2, "committed")
    assert compared(world).verdict == "equal"
    assert world.in_target("SELECT name FROM customer WHERE id IN (5, 6)") == [("newer",)]
    eventually(lambda: follower.failed() == {})


def test_a_row_that_always_changes_is_left_out_with_what_depends_on_it(
    replica: tuple[BinlogLoading, Following],
) -> None:
    world, follower = replica

    def meanwhile() -> None:
        commit(world, follower, "DELETE FROM orders WHERE customer = 8", "DELETE FROM customer WHERE id = 8",
               "INSERT INTO customer (id, name) VALUES (8, 'again')", "INSERT INTO orders VALUES (8, 2, 1)"
               )  # fmt: skip

    world.in_target("UPDATE orders SET total = 0 WHERE customer IN (8, 9)",
                    "UPDATE customer SET name = 'x' WHERE id = 8")  # fmt: skip
    outcome = repaired(world, follower, before_asking=meanwhile)
    assert (outcome.rows, outcome.status) == (1, "committed")
    assert [table for table, _ in outcome.left_out] == ["public.customer", "public.orders"]
    assert compared(world).verdict == "equal"  # the source's own units have set the other rows


class KilledRepairError(Exception):
    """Ends a repair where SIGKILL would."""


def test_a_repair_that_was_killed_leaves_nothing_or_a_request_that_comes_too_late(
    replica: tuple[BinlogLoading, Following],
) -> None:
    world, follower = replica
    left: list[RepairRows] = []

    def killed(request: RepairRows | None = None) -> OperationOutcome:
        left.extend([request] if request else [])
        raise KilledRepairError

    world.in_target(*DAMAGES)
    for step in ({"before_asking": killed}, {"ask": killed}):
        with pytest.raises(KilledRepairError):
            repaired(world, follower, **step)
        assert compared(world).verdict == "different"
    outcome = repaired(world, follower)
    assert outcome.status == "committed"
    answer = asking(follower)(left[0])
    assert (answer.result, answer.sentence.split(",")[0]) == (OperationResult.REFUSED, f"unit {outcome.unit}")
    assert compared(world).verdict == "equal"


def test_a_unit_that_fails_keeps_its_rows_from_the_repair(replica: tuple[BinlogLoading, Following]) -> None:
    world, follower = replica
    world.in_target("ALTER TABLE orders ADD CHECK (total < 1000)", "UPDATE orders SET total = 7 WHERE customer < 5")
    commit(world, follower, "UPDATE orders SET total = 2000 WHERE customer = 3")
    eventually(lambda: any("failed" in why for why in follower.failed().values()))
    outcome = repaired(world, follower)
    assert (outcome.rows, outcome.status) == (3, "committed")
    assert compared(world).verdict == "known"


@pytest.mark.parametrize(
    "histories",
    [
        pytest.param(6, marks=pytest.mark.timeout(300)),
        pytest.param(40, marks=[pytest.mark.long, pytest.mark.timeout(1800)]),
    ],
)
def test_newer_values_stay_in_random_histories(replica: tuple[BinlogLoading, Following], histories: int) -> None:
    """Changes source and target at random, before the point, behind it, and while the owner is asked."""
    world, follower = replica
    for seed in range(histories):
        chosen = random.Random(seed)

        def change(chosen: random.Random = chosen) -> None:
            world.in_source(*_changes(chosen))

        world.in_target(*(_damage(chosen) for _ in range(chosen.randint(1, 6))))
        change()
        wanted = to_repair(compared(world))
        change()
        outcome = repair_of(world, follower, before_asking=change if chosen.random() < 0.7 else _nothing).run(wanted)
        assert outcome.applied, (seed, outcome)
        world.in_source(*_changes(chosen))
        for _ in range(6):
            again = to_repair(compared(world))
            if not again:
                break
            assert repair_of(world, follower).run(again).applied
        assert compared(world).verdict == "equal", seed
        eventually(lambda: follower.failed() == {})


def _changes(chosen: random.Random) -> Iterator[str]:
    """Yields statements that change few rows of the source, which meet what is damaged now and then."""
    for _ in range(chosen.randint(0, 3)):
        one = chosen.randint(1, 20)
        yield chosen.choice(
            (
                f"UPDATE customer SET name = 'n{chosen.random()}' WHERE id = {one}",
                f"UPDATE orders SET total = {chosen.randint(1, 999)} WHERE customer = {one}",
                f"DELETE FROM orders WHERE customer = {one}",
                f"INSERT IGNORE INTO orders VALUES ({one}, {one % 3}, 7)",
                f"UPDATE word SET word = IF(BINARY LEFT(word, 1) = 'B', CONCAT('b', {one}), CONCAT('B', {one}))"
                f" WHERE n = {one} AND word LIKE 'b%'",
                f"DELETE FROM word WHERE n = {one}",
                f"INSERT IGNORE INTO word VALUES ('b{one}', {one})",
            )
        )


def _damage(chosen: random.Random) -> str:
    one = chosen.randint(1, 20)
    return chosen.choice(
        (
            f"UPDATE customer SET name = 'damaged' WHERE id = {one}",
            f"DELETE FROM orders WHERE customer = {one}",
            f"UPDATE orders SET total = -1 WHERE customer = {one}",
            f"DELETE FROM word WHERE n = {one}",
            f"INSERT INTO word VALUES ('extra{chosen.random()}', 1)",
        )
    )


def _nothing() -> None:
    pass


def test_a_point_that_does_not_come_into_the_log_ends_the_repair_unasked(
    mariadb_source_server: str, postgres: str, tmp_path: Path
) -> None:
    with (
        source_database(mariadb_source_server) as source,
        binlog_loading(source, postgres, tmp_path, SOURCE, TARGET) as world,
    ):
        world.load()
        with following(world) as follower:
            with follower.living():
                world.in_target(*DAMAGES)
                wanted = to_repair(compared(world))
            with pytest.raises(LogUnavailableError, match="the point has not come into the log"):
                repair_of(world, follower, wait=0.3).run(wanted)
