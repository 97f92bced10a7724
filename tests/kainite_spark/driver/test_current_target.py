"""The target is opened anew when its catalogue has changed, and only then."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kainite.base.errors import CatalogueError, TargetUnavailableError
from kainite.base.retry import Backoff
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.driver import patience
from kainite_spark.driver.current_target import TRIES, CurrentTarget
from kainite_spark.targets.contract import Target
from kainite_spark.targets.opening import open_target
from support.stores import Database


class World:
    """A database whose tables change, and what has been opened on it."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/target.db"
        self.database = Database(self.url, None)
        self.database.run("CREATE TABLE item (id bigint PRIMARY KEY)")
        self.reads = 0
        self.error: Exception | None = None
        self.told: list[Target] = []
        self.now = 0.0
        self.current = CurrentTarget(self.load, self.open, reflect(self.url), interval=0.0, clock=lambda: self.now)
        self.current.tell(self.told.append)

    def load(self) -> Catalogue | None:
        self.reads += 1
        if self.error is not None:
            raise self.error
        return reflect(self.url)

    def open(self, catalogue: Catalogue | None) -> Target:
        return open_target(self.database.target, catalogue)


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "BACKOFF", Backoff.doubling(0.001, 10.0))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


STOP = threading.Event()


def test_the_same_catalogue_opens_nothing(world: World) -> None:
    assert world.current.read_again(STOP) is None
    assert (world.reads, world.told) == (1, [])


def test_another_catalogue_opens_a_target_that_is_told_before_it_is_used(world: World) -> None:
    world.database.run("ALTER TABLE item ADD COLUMN v bigint")
    target = world.current.read_again(STOP)
    assert world.told == [target]
    assert world.current.read_again(STOP) is None, "the new catalogue is the one that counts now"


def test_a_read_that_fails_changes_nothing_and_the_next_one_finds_the_change(world: World) -> None:
    world.database.run("ALTER TABLE item ADD COLUMN v bigint")
    world.error = TargetUnavailableError("away")
    assert world.current.read_again(STOP) is None
    assert world.reads == TRIES
    world.error = CatalogueError("a table is of another log")
    assert world.current.read_again(STOP) is None
    assert world.reads == TRIES + 1
    world.error = None
    assert world.current.read_again(STOP) is not None


def test_a_foreign_key_that_acts_and_has_come_is_warned_of(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.database.run("CREATE TABLE line (id bigint PRIMARY KEY, item bigint)")
    assert world.current.read_again(STOP) is not None
    for action in ("", "ON DELETE CASCADE"):
        world.database.run("DROP TABLE line")
        world.database.run(f"CREATE TABLE line (id bigint PRIMARY KEY, item bigint REFERENCES item {action})")
        assert world.current.read_again(STOP) is not None
    warned = [record for record in caplog.records if record.message == "foreign key that acts has come"]
    assert [record.kainite_fields["table"] for record in warned] == ["line"]  # type: ignore[attr-defined]


def test_a_stop_ends_the_wait_for_the_next_read(world: World) -> None:
    stopped = threading.Event()
    stopped.set()
    patient = CurrentTarget(world.load, world.open, None, interval=3_600.0)
    assert patient.read_again(stopped) is None
    assert world.reads == 0
