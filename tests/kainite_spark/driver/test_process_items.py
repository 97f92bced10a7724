"""A function on items, in processes of this host."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

import support
from kainite.base.errors import SparkUnavailableError
from kainite_spark.driver.process_items import ProcessItems
from support.item_functions import held, quotients
from support.waiting import eventually


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the processes import what the tests give them."""
    monkeypatch.setenv("PYTHONPATH", str(Path(support.__path__[0]).parent))


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


def _nothing() -> None:
    return


def children() -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if "kainite_spark.driver.item_process" in one.cmdline()]


def after(seen: Callable[[], bool], act: Callable[[], None]) -> Callable[[], None]:
    """Returns a look that acts once, as soon as something is seen."""
    done: list[bool] = []

    def look() -> None:
        if not done and seen():
            done.append(True)
            act()

    return look


def test_items_are_spread_over_processes_which_stay_for_the_next_call(stop: threading.Event) -> None:
    with closing(ProcessItems[int, int, float](2, stop, 10.0, quotients)) as items:
        items.begin()
        found = sorted(one.pid for one in children())
        assert len(found) == items.parallelism == 2
        for _ in range(2):
            assert sorted(items.run(60, range(1, 61), _nothing)) == sorted(60 / divisor for divisor in range(1, 61))
        assert sorted(one.pid for one in children()) == found
        assert items.run(60, [], _nothing) == []
    assert children() == []


def test_an_error_of_the_function_is_told_and_the_next_call_has_processes_again(stop: threading.Event) -> None:
    with closing(ProcessItems[int, int, float](2, stop, 10.0, quotients)) as items:
        with pytest.raises(SparkUnavailableError, match="a task failed: ZeroDivisionError"):
            items.run(1, [0], _nothing)
        assert items.run(1, [1], _nothing) == [1.0]


def test_an_error_of_the_look_ends_what_runs(stop: threading.Event, tmp_path: Path) -> None:
    def ended() -> None:
        raise ValueError("ended")

    with closing(ProcessItems[Any, int, int](1, stop, 10.0, held)) as items:
        with pytest.raises(ValueError, match="ended"):
            items.run(str(tmp_path), [1], ended)
        assert children() == []


def test_the_item_of_a_killed_process_has_no_result_and_others_do_what_is_left(
    stop: threading.Event, tmp_path: Path
) -> None:
    with closing(ProcessItems[Any, int, int](2, stop, 10.0, held)) as items:

        def kill() -> None:
            psutil.Process(int((tmp_path / "begun-1").read_text())).kill()
            for item in range(2, 6):
                (tmp_path / f"go-{item}").touch()

        look = after(lambda: (tmp_path / "begun-1").exists() and (tmp_path / "begun-2").exists(), kill)
        assert sorted(items.run(str(tmp_path), range(1, 6), look)) == [2, 3, 4, 5]
        assert len(children()) == 1
        (tmp_path / "go-1").touch()
        assert items.run(str(tmp_path), [1], _nothing) == [1]
        assert len(children()) == 2


def test_a_process_that_was_killed_while_it_waited_gets_no_item(stop: threading.Event) -> None:
    with closing(ProcessItems[int, int, float](2, stop, 10.0, quotients)) as items:
        assert items.run(6, [1, 2, 3], _nothing)
        one = children()[0]
        one.kill()
        one.wait()
        assert sorted(items.run(6, [1, 2, 3], _nothing)) == [2.0, 3.0, 6.0]


@pytest.mark.parametrize(("grace", "results"), [(600.0, [1]), (0.0, [])])
def test_a_stop_begins_no_item_and_kills_what_runs_after_its_grace(
    stop: threading.Event, tmp_path: Path, grace: float, results: list[int]
) -> None:
    def end() -> None:
        stop.set()
        if grace:
            threading.Timer(0.0, (tmp_path / "go-1").touch).start()

    with closing(ProcessItems[Any, int, int](1, stop, grace, held)) as items:
        look = after(lambda: (tmp_path / "begun-1").exists(), end)
        assert items.run(str(tmp_path), [1, 2], look) == results
        assert not (tmp_path / "begun-2").exists()


_DRIVER = """
import sys, threading
from kainite_spark.driver.process_items import ProcessItems
from support.item_functions import held
ProcessItems(1, threading.Event(), 10.0, held).run(sys.argv[1], [1], lambda: None)
"""


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", _DRIVER, str(tmp_path)]) as process:
        yield process
        process.kill()


def test_processes_end_with_their_driver_in_the_middle_of_an_item(
    driver: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    eventually((tmp_path / "begun-1").exists, 60)
    worker = psutil.Process(int((tmp_path / "begun-1").read_text()))
    driver.kill()
    driver.wait()
    eventually(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE, 60)
