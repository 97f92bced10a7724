"""Times on the command line."""

from __future__ import annotations

import pytest

from kainite.cli.times import epoch_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1.5", 1.5), ("1970-01-01", 0.0), ("1970-01-01T01:00:00+01:00", 0.0), ("1970-01-01T00:00:10Z", 10.0)],
)
def test_a_time_is_seconds_or_a_date_in_utc(text: str, seconds: float) -> None:
    assert epoch_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "nan", "inf", "-1", "1e300", "1969-12-31"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a time such as|is no time from 1970 on"):
        epoch_seconds(text)
