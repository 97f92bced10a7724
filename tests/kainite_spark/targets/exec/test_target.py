"""Loaders that die, hang, refuse units and break the protocol: with acknowledgements each unit is loaded once."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from kainite.base.errors import SettingsError, TargetRejectedError, TargetUnavailableError
from kainite.base.markers import Batching
from kainite.settings import ApplySettings, MarkersSettings
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import Delta, Operation
from kainite_spark.executor.apply_options import ApplyOptions, Retry
from kainite_spark.executor.group_commit import apply_units
from kainite_spark.targets.contract import Target, TargetSession, Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.opening import most_units, open_target
from support.loaders import documented_loader, least_loader, loader

FENCE = Fence("log/0", 1, 0)
TROUBLE = str(Path(__file__).parents[3] / "children" / "trouble_loader.py")
OPTIONS = ApplyOptions(retry=Retry(tries=3, first=0.01))


class World:
    """One loader's database, and sessions with loaders in trouble."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "loaded.db"
        self._open: list[TargetSession | Target] = []

    def session(
        self,
        trouble: str = "none",
        victim: int = -1,
        *words: str,
        batching: Batching = Batching.SINGLE,
        batch_size: int = 4,
        timeout: float = 60.0,
        markers: MarkersSettings | None = None,
    ) -> TargetSession:
        apply = ApplySettings(loader_batching=batching, loader_batch_size=batch_size, loader_timeout=timeout)
        url = loader(TROUBLE, str(self.database), trouble, str(victim), *words)
        target = open_target(url, None, apply=apply, markers=markers)
        session = target.connect()
        self._open += [session, target]
        return session

    def query(self, sql: str) -> list[tuple[int]]:
        with closing(sqlite3.connect(self.database)) as connection:
            return connection.execute(sql).fetchall()

    def loaded(self) -> list[int]:
        return [tid for (tid,) in self.query("SELECT transaction_id FROM loaded ORDER BY 1")]

    def runs(self) -> list[int]:
        return [pid for (pid,) in self.query("SELECT pid FROM runs")]

    def close(self) -> None:
        for opened in self._open:
            opened.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    opened = World(tmp_path)
    yield opened
    opened.close()


def unit(tid: int, value: object = 1) -> Unit:
    return Unit(tid, f"T-{tid}", (Delta("t", Operation.INSERT, {"id": tid}, {"id": tid, "v": value}, {}),))


UNITS = [unit(tid) for tid in range(10)]


def statuses(session: TargetSession, units: list[Unit] = UNITS) -> list[str]:
    return [outcome.status.value for outcome in apply_units(session, FENCE, units, OPTIONS)]


@pytest.mark.parametrize("batching", Batching)
@pytest.mark.parametrize("trouble", ["die before commit", "die after commit"])
def test_a_loader_that_is_killed_at_a_unit_loads_each_once(world: World, trouble: str, batching: Batching) -> None:
    assert statuses(world.session(trouble, 5, batching=batching)) == ["committed"] * 10
    assert world.loaded() == list(range(10))
    assert len(world.runs()) == 2


@pytest.mark.parametrize(("trouble", "processes"), [("junk", 2), ("chatter", 2), ("retry", 1), ("noise", 1)])
def test_whatever_a_loader_does_instead_of_answering_each_unit_is_loaded_once(
    world: World, trouble: str, processes: int
) -> None:
    assert statuses(world.session(trouble, 5)) == ["committed"] * 10
    assert world.loaded() == list(range(10))
    assert len(world.runs()) == processes


def test_a_loader_that_hangs_is_killed_in_its_transaction_and_followed_by_another(world: World) -> None:
    session = world.session("hang", 5, timeout=3.0)
    with pytest.raises(TargetUnavailableError, match="was silent for 3 s; see loaderTimeoutMillis"):
        session.apply(FENCE, UNITS)
    assert not psutil.pid_exists(world.runs()[0])
    assert statuses(session) == ["committed"] * 10
    assert world.loaded() == list(range(10))


def test_without_acknowledgements_the_unit_that_its_loader_died_on_comes_twice(world: World) -> None:
    assert statuses(world.session("die after commit", 5, "forgetful")) == ["committed"] * 10
    assert world.loaded() == sorted([*range(10), 5])


@pytest.mark.parametrize("batching", Batching)
@pytest.mark.parametrize("words", [(), ("forgetful",)], ids=["accounting", "forgetful"])
def test_a_refusal_in_the_middle_of_a_group_leaves_each_other_unit_loaded_once(
    world: World, batching: Batching, words: tuple[str, ...]
) -> None:
    session = world.session("refuse", 6, *words, batching=batching)
    outcomes = apply_units(session, FENCE, UNITS, OPTIONS)
    assert [outcome.tid for outcome in outcomes if outcome.status != "committed"] == [6]
    assert outcomes[6].cause == "not this one"
    assert world.loaded() == [tid for tid in range(10) if tid != 6]
    assert len(world.runs()) == 1


def test_a_batch_is_refused_as_a_whole(world: World) -> None:
    session = world.session("refuse", 6, batching=Batching.SUPERVISOR, batch_size=4)
    with pytest.raises(TargetRejectedError):
        session.apply(FENCE, UNITS)
    assert world.loaded() == [0, 1, 2, 3]
    assert session.applied("log/0", range(10)) == {0, 1, 2, 3}


def test_one_loader_serves_many_calls_and_none_is_left_in_the_end(world: World) -> None:
    session = world.session()
    assert statuses(session) == ["committed"] * 10
    session.apply(Fence("log/0", 1, 1), [unit(10)])
    (pid,) = world.runs()
    session.close()
    assert not psutil.pid_exists(pid)


def test_a_loader_that_dies_while_nothing_is_asked_of_it_is_replaced_unnoticed(world: World) -> None:
    session = world.session()
    session.apply(FENCE, [unit(0)])
    (pid,) = world.runs()
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    session.apply(FENCE, [unit(1)])
    assert world.loaded() == [0, 1]


ASKER = """
import sys
from kainite_spark.targets.opening import open_target
session = open_target(sys.argv[1], None).connect()
session.applied("log/0", [])
print("asked", flush=True)
sys.stdin.read()
"""


def test_a_loader_ends_with_the_process_that_asks_it_however_that_ends(world: World) -> None:
    command = [sys.executable, "-c", ASKER, loader(TROUBLE, str(world.database), "none", "-1")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"asked\n"
        child = psutil.Process(world.runs()[0])
        process.kill()
    child.wait(timeout=60)


def test_large_units_and_a_loader_that_writes_much_do_not_lock_up(world: World) -> None:
    large = unit(5, "x" * 5 * 2**20)
    assert statuses(world.session("noise", 5), [unit(4), large]) == ["committed"] * 2
    assert world.loaded() == [4, 5]


def test_a_unit_that_holds_a_marker_is_refused_alone(world: World) -> None:
    session = world.session(markers=MarkersSettings(eom=b"EOM", eop=b"EOP"))
    outcomes = apply_units(session, FENCE, [unit(0), unit(1, "the GEOMETRY of it"), unit(2)], OPTIONS)
    assert [outcome.status.value for outcome in outcomes] == ["committed", "failed", "committed"]
    assert "holds the marker EOM" in (outcomes[1].cause or "")


def test_the_least_loader_loads(tmp_path: Path) -> None:
    book = tmp_path / "book.txt"
    with closing(open_target(least_loader(tmp_path, book), None)) as target:
        target.prepare("log/0", Catalogue({}))
        target.raise_generation("log/0", 1)
        target.begin_micro_batch(FENCE)
        with closing(target.connect()) as session:
            assert statuses(session, UNITS[:3]) == ["committed"] * 3
        assert target.trim(Fence("log/0", 1, 1), 3) == 0
    assert [json.loads(line)["uow"] for line in book.read_text().splitlines()] == ["T-0", "T-1", "T-2"]


def test_values_arrive_with_all_their_digits(world: World) -> None:
    value = [2**63 - 1, 0.1, "12345678901234567.89", "ü\u2028\U0001f600", None, True, {"a": []}]
    world.session().apply(FENCE, [unit(0, value)])
    ((text,),) = world.query("SELECT deltas FROM loaded")
    assert json.loads(str(text))[0]["row"]["v"] == value


def test_how_a_loader_ended_and_its_last_words_are_told(tmp_path: Path) -> None:
    program = tmp_path / "broken.py"
    program.write_text("import a_driver_that_is_not_installed")
    with (
        closing(open_target(loader(str(program)), None)) as target,
        pytest.raises(TargetUnavailableError, match=r"ended with status 1: ModuleNotFoundError: .*a_driver") as raised,
    ):
        target.raise_generation("log/0", 1)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("no-such-program-anywhere x", "target: there is no program 'no-such-program-anywhere' on the PATH"),
        ("./nowhere/loader", "target: there is no program './nowhere/loader', seen from "),
        (__file__, "is not executable: chmod"),
    ],
)
def test_a_program_that_cannot_be_run_is_a_wrong_setting(command: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        open_target(f"exec:{command}", None)


def test_a_target_travels_to_tasks_and_leaves_its_loader_behind(tmp_path: Path) -> None:
    database = tmp_path / "t.db"
    with closing(open_target(documented_loader(tmp_path, database), None)) as target:
        target.prepare("log/0", Catalogue({}))
        travelled = pickle.loads(pickle.dumps(target))
        with closing(travelled.connect()) as session:
            assert session.applied("log/0", [1]) == set()


@pytest.mark.parametrize(
    ("settings", "units"),
    [
        ({"target": "sqlite:///x", "group_units": 50}, 50),
        ({"target": "exec:x", "group_units": 50}, 1),
        ({"target": "exec:x", "group_units": 50, "loader_batching": Batching.WORKER}, 50),
        ({"target": "exec:x", "loader_batching": Batching.SUPERVISOR, "loader_batch_size": 7}, 7),
    ],
)
def test_no_more_units_go_together_than_are_loaded_together(settings: dict[str, str | int], units: int) -> None:
    make: Callable[..., ApplySettings] = ApplySettings
    assert most_units(make(**settings)) == units
