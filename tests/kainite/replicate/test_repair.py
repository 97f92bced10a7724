"""Repairs replicas whose source and target live: rows become what the source has, and newer changes stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any, cast

import pytest

from kainite.base.errors import LogRequestError, LogUnavailableError, StoppedError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.log.format.entry import OperationResult
from kainite.operations.carrying_out import Operations
from kainite.operations.operation import OperationOutcome, RepairRows
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.ends_compared import tables_to_compare
from kainite.replicate.known_rows import Explanation
from kainite.replicate.repair import TRIES, Repair, RepairOutcome
from kainite.replicate.repair_source import PostgresRepairs
from kainite.replicate.repaired_rows import to_repair
from kainite.replicate.row_merge import RowDifference
from kainite.replicate.verify_report import RowReport
from kainite.settings import Settings
from support.comparisons import compared
from support.replica import Replica, replica
from support.replicas import LOG, run, tables_of
from support.waiting import eventually

TABLES = """
    CREATE TABLE customer (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text, vip bool, code text UNIQUE,
                           loud text GENERATED ALWAYS AS (upper(name)) STORED);
    CREATE TABLE orders (customer int REFERENCES customer, number int, total numeric(12, 2), at timestamptz,
                         PRIMARY KEY (customer, number));
    CREATE TABLE journal (what text, n int);
"""
FILL = """
    INSERT INTO customer (name, vip, code) SELECT 'customer ' || n, n % 2 = 0, 'c' || n FROM generate_series(1, 300) n;
    INSERT INTO orders SELECT n, n % 3, n / 4.0, '2026-01-01 12:00Z'::timestamptz + n * interval '1 h'
                       FROM generate_series(1, 300) n;
"""
DAMAGES = (
    "UPDATE customer SET name = 'wrong', vip = NOT vip WHERE id IN (5, 6)",
    "DELETE FROM orders WHERE customer IN (7, 8)",
    "DELETE FROM customer WHERE id = 7",
    "INSERT INTO customer (id, name) OVERRIDING SYSTEM VALUE VALUES (1001, 'nobody')",
    "INSERT INTO orders VALUES (1001, 1, 0, NULL)",
    "UPDATE orders SET total = total + 0.01 WHERE customer = 9",
)


@contextmanager
def living(source: SourceSlot, postgres: str) -> Iterator[tuple[Replica, ReplicaEnds]]:
    """Gives a replica that follows its source."""
    with replica(source, postgres, TABLES) as made:
        run(source.url, FILL)
        made.catch_up(1)
        with made.living():
            yield made, ReplicaEnds(source, postgres, LOG)


def asking(made: Replica) -> Callable[[RepairRows], OperationOutcome]:
    """Returns what asks the log's owner."""
    operations = Operations(cast(Settings, None))
    operations.__dict__["log"] = made.store, "0"
    return lambda asked: operations.carry_out(asked, "a test")


def repaired(
    made: Replica,
    ends: ReplicaEnds,
    before_asking: Callable[[], Any] = lambda: None,
    ask: Callable[[RepairRows], OperationOutcome] | None = None,
) -> RepairOutcome:
    """Compares, and repairs what differs."""
    repair = Repair(
        repairs_of(ends), made.store, "0", tables_of(ends.target), ask or asking(made), 60.0,
        before_asking=before_asking,
    )  # fmt: skip
    return repair.run(to_repair(compared(ends, most_rows=1000)))


def commit(made: Replica, source: SourceSlot, *statements: str) -> None:
    """Commits a transaction in the source, and waits until it is in the log."""
    number = made.number
    run(source.url, f"BEGIN; {'; '.join(statements)}; COMMIT")
    eventually(lambda: made.number > number)


def test_each_damage_is_repaired_while_both_live(source: SourceSlot, postgres: str) -> None:
    with living(source, postgres) as (made, ends):
        run(postgres, *DAMAGES)
        outcome = repaired(made, ends)
        assert (outcome.rows, outcome.status, outcome.left_out) == (8, "committed", ())
        assert compared(ends).verdict == "equal"
    assert made.failed() == {}


def test_a_row_that_changes_behind_the_point_keeps_its_newer_value(source: SourceSlot, postgres: str) -> None:
    changes = iter(["UPDATE customer SET name = 'newer' WHERE id = 5", "DELETE FROM customer WHERE id = 6"])

    def meanwhile() -> None:
        if (change := next(changes, None)) is not None:
            commit(made, source, change)

    with living(source, postgres) as (made, ends):
        commit(made, source, "DELETE FROM orders WHERE customer = 6")
        run(postgres, "UPDATE customer SET name = 'wrong', vip = NOT vip WHERE id IN (5, 6)")
        outcome = repaired(made, ends, meanwhile)
        assert (outcome.rows, outcome.status) == (2, "committed")
        assert compared(ends).verdict == "equal"
    assert made.failed() == {}


def test_a_row_that_always_changes_is_left_out_with_what_depends_on_it(source: SourceSlot, postgres: str) -> None:
    def meanwhile() -> None:
        again = "INSERT INTO customer (id, name) OVERRIDING SYSTEM VALUE VALUES (8, 'again')"
        commit(made, source, "DELETE FROM orders WHERE customer = 8", "DELETE FROM customer WHERE id = 8", again,
               "INSERT INTO orders VALUES (8, 2, 1, now())")  # fmt: skip

    with living(source, postgres) as (made, ends):
        run(postgres, "UPDATE orders SET total = 0 WHERE customer IN (8, 9)",
            "UPDATE customer SET name = 'x' WHERE id = 8")  # fmt: skip
        outcome = repaired(made, ends, meanwhile)
        assert (outcome.rows, outcome.status) == (1, "committed")
        assert [table for table, _ in outcome.left_out] == ["public.customer", "public.orders"]
        assert compared(ends).verdict == "equal"  # the source's own units have set the other rows
    assert made.failed() == {}


def test_what_one_unit_cannot_repair_is_refused_before_anything_is_asked(source: SourceSlot, postgres: str) -> None:
    with living(source, postgres) as (made, ends):
        run(postgres, "INSERT INTO journal VALUES ('b', 1)")
        with pytest.raises(LogRequestError, match="journal: nothing tells the rows of a table without a primary key"):
            to_repair(compared(ends))
        run(postgres, "DELETE FROM journal WHERE what = 'b'", "UPDATE orders SET total = -1")
        with pytest.raises(LogRequestError, match="300 rows differ, and at most 10,000 are repaired"):
            to_repair(compared(ends, most_rows=100))
        assert list(made.store.read_requests("0")) == []


def test_a_request_that_comes_late_is_refused_where_the_rows_have_moved_on(source: SourceSlot, postgres: str) -> None:
    class KilledError(Exception):
        pass

    def killed(request: RepairRows) -> OperationOutcome:
        left.append(request)
        raise KilledError

    left: list[RepairRows] = []
    with living(source, postgres) as (made, ends):
        run(postgres, *DAMAGES)
        with pytest.raises(KilledError):
            repaired(made, ends, ask=killed)
        assert compared(ends).verdict == "different"
        outcome = repaired(made, ends)
        assert outcome.status == "committed"
        answer = asking(made)(left[0])
        assert (answer.result, answer.sentence.split(",")[0]) == ("refused", f"unit {outcome.unit}")
        assert compared(ends).verdict == "equal"


def test_a_unit_that_fails_keeps_its_rows_from_the_repair(source: SourceSlot, postgres: str) -> None:
    with living(source, postgres) as (made, ends):
        run(postgres, "ALTER TABLE orders ADD CHECK (total < 1000)", "UPDATE orders SET total = 0 WHERE customer < 5")
        commit(made, source, "UPDATE orders SET total = 2000 WHERE customer = 3")
        eventually(lambda: any("failed" in why for why in made.failed().values()))
        outcome = repaired(made, ends)
        assert (outcome.rows, outcome.status) == (3, "committed")
        assert compared(ends).verdict == "known"


def test_a_repair_of_which_every_row_always_changes_repairs_nothing(source: SourceSlot, postgres: str) -> None:
    def meanwhile() -> None:
        commit(made, source, "UPDATE customer SET vip = NOT vip WHERE id = 5")

    with living(source, postgres) as (made, ends):
        run(postgres, "UPDATE customer SET name = 'wrong' WHERE id = 5")
        outcome = repaired(made, ends, meanwhile)
        assert outcome == RepairOutcome("", 0, (("public.customer", {"id": 5}),))
        assert outcome.applied
        assert outcome.sentence == "nothing was repaired: other units change the rows all the time"


def test_a_repair_that_the_owner_refuses_is_tried_again_only_where_units_are_in_the_way(
    source: SourceSlot, postgres: str
) -> None:
    asked: list[RepairRows] = []
    answers: list[frozenset[int] | None] = [frozenset()] * TRIES

    def refusing(request: RepairRows) -> OperationOutcome:
        asked.append(request)
        return OperationOutcome(OperationResult.REFUSED, "the log is closed", met=answers[len(asked) - 1])

    with living(source, postgres) as (made, ends):
        run(postgres, "UPDATE customer SET name = 'wrong' WHERE id = 5")
        with pytest.raises(LogRequestError, match=f"no repair after {TRIES} tries: the log is closed"):
            repaired(made, ends, ask=refusing)
        assert (len(asked), len({request.name for request in asked})) == (TRIES, TRIES)
        asked.clear()
        answers[0] = None
        with pytest.raises(LogRequestError, match="the repair was refused: the log is closed"):
            repaired(made, ends, ask=refusing)
        assert len(asked) == 1


def test_a_point_that_does_not_come_into_the_log_ends_the_repair_unasked(source: SourceSlot, postgres: str) -> None:
    """Waits in vain, then until it is stopped: nobody extracts what the source commits."""
    stop = Event()
    with replica(source, postgres, TABLES) as made:
        run(source.url, FILL)
        made.catch_up(1)
        with pytest.raises(LogUnavailableError, match="the point has not come into the log"):
            idle_repair(made, ReplicaEnds(source, postgres, LOG), wait=0.3).run([CUSTOMER])
        stopped = idle_repair(made, ReplicaEnds(source, postgres, LOG), stop=stop, before_asking=stop.set)
        with pytest.raises(StoppedError):
            stopped.run([CUSTOMER])
        assert list(made.store.read_requests("0")) == []


CUSTOMER = RowReport("public.customer", {"id": "5"}, RowDifference.CHANGED, Explanation.NONE, 1, (), (), ())


def idle_repair(made: Replica, ends: ReplicaEnds, wait: float = 60.0, **more: Any) -> Repair:
    return Repair(repairs_of(ends), made.store, "0", tables_of(ends.target), asking(made), wait, **more)


def repairs_of(ends: ReplicaEnds) -> PostgresRepairs:
    return PostgresRepairs(ends, {table.name: table for table in tables_to_compare(ends, ())[0]})


@pytest.mark.parametrize(("status", "applied"), [("committed", True), ("failed: no room", False), ("", False)])
def test_a_repair_is_applied_when_its_unit_is_committed(status: str, applied: bool) -> None:
    outcome = RepairOutcome("repair-1", 1_234, status=status)
    assert outcome.applied is applied
    assert outcome.sentence == f"unit repair-1 of the log sets 1,234 rows to what the source has: {status}"
