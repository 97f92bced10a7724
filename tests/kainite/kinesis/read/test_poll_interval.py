from __future__ import annotations

import pytest

from kainite.kinesis.read.poll_interval import CATCH_UP_INTERVAL_S, interval
from kainite.settings import StreamSettings

PLAIN = StreamSettings("orders", idle_between_reads=1.5)
REDUCED = StreamSettings("orders", idle_between_reads=1.5, reduced_tps_behind=20.0)
REDUCED_LITTLE = StreamSettings("orders", idle_between_reads=1.5, reduced_tps_behind=1.0)
FAST = StreamSettings("orders", idle_between_reads=0.05)


@pytest.mark.parametrize(
    ("settings", "behind_ms", "throttled", "seconds"),
    [
        pytest.param(PLAIN, None, False, 1.5, id="nothing is known"),
        pytest.param(PLAIN, 0, False, 1.5, id="at the end"),
        pytest.param(PLAIN, 1, False, CATCH_UP_INTERVAL_S, id="behind"),
        pytest.param(FAST, 1, False, 0.05, id="behind, and less than the limit is asked for"),
        pytest.param(PLAIN, 1, True, 5.0, id="behind and throttled: two megabytes a second"),
        pytest.param(PLAIN, 0, True, 1.5, id="at the end and throttled"),
        pytest.param(REDUCED, 0, False, 20.0, id="reduced: at the end"),
        pytest.param(REDUCED, 19_999, False, 20.0, id="reduced: a little behind"),
        pytest.param(REDUCED, 20_000, False, CATCH_UP_INTERVAL_S, id="reduced: behind"),
        pytest.param(REDUCED, None, False, 1.5, id="reduced: nothing is known"),
        pytest.param(REDUCED_LITTLE, 0, False, 1.5, id="reduced: the idle time is longer"),
    ],
)
def test_the_time_between_two_reads(
    settings: StreamSettings, behind_ms: int | None, throttled: bool, seconds: float
) -> None:
    assert interval(settings, behind_ms, 10_000_000, throttled=throttled) == seconds


def test_a_small_reply_does_not_shorten_the_idle_time_of_one_that_was_throttled() -> None:
    assert interval(PLAIN, 1, 100, throttled=True) == 1.5
