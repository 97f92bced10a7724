"""The consequences of a child's failure: the pause, and whether records are left out or reported."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kainite.base.errors import ChildExitedError, LogRequestError, StreamError
from kainite.base.position import Position
from kainite.child.events import Span
from kainite.settings import ChildProtocol, ChildSettings, MarkersSettings, OnDeath
from kainite.worker.child_failures import ChildFailures, Consequence
from kainite.worker.consumer_states import ConsumerState

DIED = ChildExitedError("it died")
BATCH, PART = Span(Position(1), Position(9)), Span(Position(4), Position(5))
PROCESSING, SHARD_ENDED = ConsumerState.PROCESSING, ConsumerState.SHARD_ENDED


def settings(on_death: OnDeath = OnDeath.RETRY) -> ChildSettings:
    return ChildSettings(
        ("child",), restart_backoff=1, restart_backoff_max=60, poison_tries=3, protocol=ChildProtocol.MARKERS,
        markers=MarkersSettings(on_death=on_death),
    )  # fmt: skip


def failures(
    state: ConsumerState, count: int, on_death: OnDeath = OnDeath.RETRY, **on_what: Span | None
) -> list[Consequence]:
    failing = ChildFailures("s", settings(on_death))
    return [failing.failed(DIED, state, settings(on_death), answered=True, **on_what) for _ in range(count)]


def events(caplog: pytest.LogCaptureFixture, name: str) -> list[dict[str, Any]]:
    return [record.kainite_fields for record in caplog.records if record.getMessage() == name]  # type: ignore[attr-defined]


CASES = {
    "a batch that kills every child is poison, once, and paused for the longest": (
        failures, PROCESSING, OnDeath.RETRY, {"batch": BATCH},
        [(1, False, False), (2, False, False), (60, False, True), (60, False, False)],
    ),
    "a failure without a batch is never poison": (
        failures, PROCESSING, OnDeath.RETRY, {},
        [(1, False, False), (2, False, False), (4, False, False), (8, False, False)],
    ),
    "the request in flight is left out after the second death, and the pause stays short": (
        failures, PROCESSING, OnDeath.ONCE, {"batch": BATCH, "in_flight": PART},
        [(1, False, False), (1, True, False)],
    ),
    "at the shard's end there is nothing to leave out": (
        failures, SHARD_ENDED, OnDeath.SKIP, {},
        [(1, False, False), (2, False, False)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("play", "state", "on_death", "on_what", "expected"), CASES.values(), ids=CASES.keys())
def test_what_follows_from_failures_in_a_row(
    play: Any, state: ConsumerState, on_death: OnDeath, on_what: dict[str, Span], expected: list[Any]
) -> None:
    happened = play(state, len(expected), on_death, **on_what)
    assert [(failure.pause, failure.left_out, failure.poison) for failure in happened] == expected
    assert [failure.tries for failure in happened] == list(range(1, len(expected) + 1))


def test_the_part_in_flight_is_the_culprit() -> None:
    (failure,) = failures(PROCESSING, 1, batch=BATCH, in_flight=PART)
    assert failure.culprit == PART


@pytest.mark.parametrize(
    ("left_out", "poison", "name"), [(True, False, "records left out"), (False, True, "poison batch")]
)
def test_records_are_reported_with_the_last_words_of_the_child(
    left_out: bool, poison: bool, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    failure = Consequence(DIED, PROCESSING, 1, 3, BATCH, left_out, poison)
    ChildFailures("s", settings()).report(failure, ["one", "two"])
    assert events(caplog, name) == [{"shard": "s", "first": 1, "last": 9, "tries": 3, "stderr": "one\ntwo"}]


def test_a_failure_that_is_neither_poison_nor_left_out_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    failing = ChildFailures("s", settings())
    failing.report(failing.failed(StreamError("gone"), PROCESSING, settings()), ["not of this failure"])
    assert [record.getMessage() for record in caplog.records] == ["shard failed"]
    assert "stderr" not in events(caplog, "shard failed")[0]


def test_the_first_failure_of_a_child_is_told_with_its_last_words(caplog: pytest.LogCaptureFixture) -> None:
    failing = ChildFailures("s", settings())
    failing.report(failing.failed(DIED, PROCESSING, settings(), batch=BATCH), ["Traceback", "KeyError: 'x'"])
    (told,) = events(caplog, "shard failed")
    assert (told["error"], told["stderr"], told["tries"]) == (DIED, "KeyError: 'x'", 1)


def test_a_lease_that_was_handed_over_is_an_error_only_when_reading_anew_does_not_help(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    failing, refused = ChildFailures("s", settings()), LogRequestError("read on behind its position")
    for _ in range(2):
        failing.report(failing.failed(refused, PROCESSING, settings()))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "shard read anew"),
        ("ERROR", "shard failed"),
    ]
