"""The driver's connection between its transactions."""

from __future__ import annotations

import pickle
from typing import cast

import psycopg
import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.driver_connection import RESTED_S, DriverConnection
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.opening import open_target


class Connection:
    """Notes what becomes of it."""

    def __init__(self) -> None:
        self.did: list[str] = []

    def commit(self) -> None:
        self.did.append("commit")

    def close(self) -> None:
        self.did.append("close")


class Opened:
    """Opens connections, at a time that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0
        self.all: list[Connection] = []
        self.kept = DriverConnection[psycopg.Connection](lambda: self.now)

    def connect(self) -> psycopg.Connection:
        self.all.append(Connection())
        return cast(psycopg.Connection, self.all[-1])

    def transaction(self, after: float = 0.0) -> None:
        self.now += after
        with self.kept.transaction(self.connect):
            pass

    @property
    def did(self) -> list[list[str]]:
        return [connection.did for connection in self.all]


def test_transactions_that_follow_each_other_share_a_connection() -> None:
    opened = Opened()
    opened.transaction()
    opened.transaction(after=RESTED_S)
    assert opened.did == [["commit", "commit"]]


def test_a_connection_that_has_rested_is_opened_anew() -> None:
    opened = Opened()
    opened.transaction()
    opened.transaction(after=RESTED_S + 0.1)
    assert opened.did == [["commit", "close"], ["commit"]]


def test_an_error_closes_the_connection_without_a_commit() -> None:
    opened = Opened()
    with pytest.raises(ValueError, match="no"), opened.kept.transaction(opened.connect):
        raise ValueError("no")
    opened.transaction()
    assert opened.did == [["close"], ["commit"]]


def test_a_target_that_goes_to_a_task_leaves_its_connection_behind(postgres: str) -> None:
    target = open_target(postgres, Catalogue({}))
    target.prepare("log/0", Catalogue({}))
    assert pickle.loads(pickle.dumps(target)) == target
    target.close()


def test_a_connection_that_was_cut_is_replaced_by_the_next_try(postgres: str) -> None:
    target = open_target(postgres, Catalogue({}))
    target.prepare("log/0", Catalogue({}))
    target.raise_generation("cut", 1)
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'kainite apply' AND pid <> pg_backend_pid() AND datname = current_database()"
        )
    with pytest.raises(TargetUnavailableError):
        target.begin_micro_batch(Fence("cut", 1, 1))
    target.begin_micro_batch(Fence("cut", 1, 1))
    target.close()
