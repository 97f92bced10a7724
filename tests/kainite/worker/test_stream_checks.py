"""The checks on a daemon's streams: only streams in trouble have one, with cause and remedy."""

from __future__ import annotations

import pytest

from kainite.leases.foreign_streams import ForeignStream
from kainite.leases.shard_sync.schedule import UnsyncedStream
from kainite.observe.check import Check, Level
from kainite.worker.stream_checks import FOREIGN_REMEDY, NOT_OPEN_REMEDY, UNSYNCED_REMEDY, stream_checks

LIMIT_S = 300.0


def checks(
    refused: dict[str, str] | None = None,
    unsynced: dict[str, UnsyncedStream] | None = None,
    foreign: dict[str, ForeignStream] | None = None,
    *,
    collected: tuple[str, ...] = (),
) -> list[Check]:
    spelling = "by id {}".format
    return list(
        stream_checks(refused or {}, unsynced or {}, foreign or {}, spelling, 1_000.0, LIMIT_S, collected=collected)
    )


def test_streams_without_trouble_have_no_check() -> None:
    assert checks() == []


@pytest.mark.parametrize(("collected", "more"), [(("pay",), ""), (("orders", "pay"), "; units of work wait")])
def test_a_stream_that_is_not_open_is_broken(collected: tuple[str, ...], more: str) -> None:
    (check,) = checks({"orders": "there is no stream 'orders'"}, collected=collected)

    assert (check.name, check.level, check.remedy) == ("stream orders", Level.BROKEN, NOT_OPEN_REMEDY)
    assert check.cause.startswith(f"it is not read: there is no stream 'orders'{more}")
    assert ("units" in check.cause) is ("orders" in collected)


@pytest.mark.parametrize(
    ("passes", "since", "told"),
    [(False, 1_000.0, True), (True, 1_000.0 - LIMIT_S, True), (True, 1_001.0 - LIMIT_S, False)],
    ids=["somebody has to mend it", "it lasts", "it may pass"],
)
def test_a_stream_whose_shards_are_not_listed_is_told_when_that_lasts(passes: bool, since: float, told: bool) -> None:
    found = checks(unsynced={"1:orders:2": UnsyncedStream("throttled", since, passes)})

    assert [(check.name, check.level, check.remedy) for check in found] == [
        ("stream by id 1:orders:2", Level.DEGRADED, UNSYNCED_REMEDY)
    ] * told
    assert all(check.cause.endswith("s: throttled") for check in found)


@pytest.mark.parametrize(("since", "told"), [(1_000.0 - LIMIT_S, True), (1_001.0 - LIMIT_S, False)])
def test_a_stream_that_another_worker_reads_and_this_file_lacks_is_told_when_that_lasts(
    since: float, told: bool
) -> None:
    found = checks(foreign={"1:pay:2": ForeignStream("other", since)})

    assert [(check.name, check.level, check.remedy) for check in found] == [
        ("stream 1:pay:2", Level.DEGRADED, FOREIGN_REMEDY)
    ] * told
    assert all("worker other reads it" in check.cause for check in found)
