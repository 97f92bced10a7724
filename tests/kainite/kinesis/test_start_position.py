from __future__ import annotations

import pytest

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, TRIM_HORIZON, Checkpoint
from kainite.base.errors import SettingsError
from kainite.base.position import Position
from kainite.kinesis.start_position import StartAt, done_before, start_at


@pytest.mark.parametrize(
    ("start", "cut_at", "done"),
    [
        (Checkpoint("7", 2), None, Position(7, 2)),
        (Checkpoint("7", 2), Position(9), Position(7, 2)),
        (TRIM_HORIZON, Position(9), None),
        (LATEST, Position(9, 1), Position(9, 1)),
        (LATEST, None, None),
    ],
)
def test_the_log_stands_in_for_the_checkpoint_at_latest_only(
    start: Checkpoint, cut_at: Position | None, done: Position | None
) -> None:
    assert done_before(start, cut_at) == done


@pytest.mark.parametrize(
    ("start", "fetched", "cut_at", "opened_at", "wanted"),
    [
        (TRIM_HORIZON, None, None, None, StartAt("TRIM_HORIZON")),
        (TRIM_HORIZON, Position(8, 3), None, 5.0, StartAt("AT_SEQUENCE_NUMBER", "8")),
        (Checkpoint("7", 2), None, None, None, StartAt("AT_SEQUENCE_NUMBER", "7")),
        (Checkpoint("7", 2), Position(8), None, None, StartAt("AT_SEQUENCE_NUMBER", "8")),
        (LATEST, None, None, None, StartAt("LATEST")),
        (LATEST, None, None, 5.0, StartAt("AT_TIMESTAMP", timestamp=5.0)),
        (LATEST, None, Position(9, 1), 5.0, StartAt("AT_SEQUENCE_NUMBER", "9")),
        (AT_TIMESTAMP, None, None, None, StartAt("AT_TIMESTAMP", timestamp=3.0)),
        (AT_TIMESTAMP, Position(8), None, None, StartAt("AT_SEQUENCE_NUMBER", "8")),
    ],
)
def test_the_start_of_an_iterator(
    start: Checkpoint, fetched: Position | None, cut_at: Position | None, opened_at: float | None, wanted: StartAt
) -> None:
    assert start_at(start, fetched, cut_at, opened_at, timestamp=3.0) == wanted


def test_at_timestamp_needs_a_time() -> None:
    with pytest.raises(SettingsError, match="initialPositionInStreamExtended"):
        start_at(AT_TIMESTAMP, None, None, None, None)
    assert start_at(AT_TIMESTAMP, Position(8), None, None, None).kind == "AT_SEQUENCE_NUMBER"
