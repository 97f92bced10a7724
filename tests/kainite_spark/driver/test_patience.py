from __future__ import annotations

import logging
import threading

import pytest

from kainite.base.errors import LogCorruptError, LogUnavailableError, StoppedError
from kainite.base.retry import Backoff
from kainite_spark.driver import patience
from kainite_spark.driver.patience import at_the_start, patiently, unless_stopped


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "BACKOFF", Backoff((0.001,)))


class Away:
    """A store that does not answer the first calls."""

    def __init__(self, failures: int, error: type[Exception] = LogUnavailableError) -> None:
        self.calls = 0
        self._failures = failures
        self._error = error

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self._failures:
            raise self._error(f"attempt {self.calls}")
        return "answered"


@pytest.mark.parametrize("failures", [0, 1, 7])
def test_a_store_that_is_away_is_waited_for(failures: int, caplog: pytest.LogCaptureFixture) -> None:
    store = Away(failures)
    with caplog.at_level(logging.WARNING):
        assert patiently(store, threading.Event()) == "answered"
    assert store.calls == failures + 1
    assert [record.getMessage() for record in caplog.records] == ["waiting"] * bool(failures)


def test_an_error_that_waiting_does_not_mend_is_raised_at_once() -> None:
    store = Away(9, LogCorruptError)
    with pytest.raises(LogCorruptError, match="attempt 1"):
        patiently(store, threading.Event())
    assert store.calls == 1


def test_a_wish_to_stop_ends_the_wait_with_the_latest_error() -> None:
    stop = threading.Event()
    stop.set()
    store = Away(9)
    with pytest.raises(LogUnavailableError, match="attempt 1"):
        patiently(store, stop)
    assert patiently(Away(0), stop) == "answered"


def test_at_the_start_a_stop_does_not_wait_for_an_answer() -> None:
    stop, called, answered = threading.Event(), threading.Event(), threading.Event()

    def silent() -> None:
        called.set()
        answered.wait(60)

    def end() -> None:
        called.wait(60)
        stop.set()

    ending = threading.Thread(target=end)
    ending.start()
    with pytest.raises(StoppedError, match="stopped while waiting for the store"):
        at_the_start(silent, stop, "the store")
    assert not answered.is_set()
    answered.set()
    ending.join()


def test_at_the_start_it_waits_and_raises_as_later_on() -> None:
    stop, store = threading.Event(), Away(3)
    assert at_the_start(store, stop, "the store") == "answered"
    assert store.calls == 4
    with pytest.raises(LogCorruptError, match="attempt 1"):
        at_the_start(Away(9, LogCorruptError), stop, "the store")
    stop.set()
    with pytest.raises(StoppedError):
        at_the_start(Away(9), stop, "the store")


def test_a_stop_during_a_wait_may_be_no_failure() -> None:
    stop = threading.Event()
    assert unless_stopped(Away(3), stop, "the target") == "answered"
    with pytest.raises(LogCorruptError, match="attempt 1"):
        unless_stopped(Away(9, LogCorruptError), stop, "the target")
    stop.set()
    with pytest.raises(StoppedError, match="stopped while waiting for the target"):
        unless_stopped(Away(9), stop, "the target")
