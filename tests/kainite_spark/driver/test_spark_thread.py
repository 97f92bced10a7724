"""Tests that waiting for a call can end before the call does."""

from __future__ import annotations

import threading

import pytest

from kainite_spark.driver import spark_thread
from kainite_spark.driver.spark_thread import SparkThread

LIMIT = 10.0


class GivenUpError(Exception):
    pass


def never(_: float) -> None:
    raise AssertionError("looked at a call that was over")


@pytest.fixture(autouse=True)
def looking_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_thread, "LOOK_S", 0.01)


def test_results_and_errors_come_back_from_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_thread, "LOOK_S", LIMIT)
    spark = SparkThread()
    threads = {spark.call(threading.current_thread, never) for _ in range(3)}
    assert len(threads) == 1
    assert threading.main_thread() not in threads
    with pytest.raises(ZeroDivisionError):
        spark.call(lambda: 1 / 0, never)
    with pytest.raises(TimeoutError, match="its own"):
        spark.call(lambda: _raise(TimeoutError("its own")), never)


def _raise(error: Exception) -> None:
    raise error


def test_a_call_that_hangs_is_given_up_and_looked_at_with_growing_times() -> None:
    hanging, seen = threading.Event(), list[float]()

    def look(seconds: float) -> None:
        seen.append(seconds)
        if len(seen) == 3:
            raise GivenUpError

    spark = SparkThread()
    with pytest.raises(GivenUpError):
        spark.call(lambda: hanging.wait(LIMIT), look)
    assert seen == sorted(seen)
    assert len(seen) == 3
    hanging.set()
    assert spark.call(lambda: "next", lambda _: None) == "next"
