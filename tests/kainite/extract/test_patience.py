"""Failures in a row."""

from __future__ import annotations

import pytest

from kainite.base.errors import SourceError, StreamUnavailableError
from kainite.extract.patience import Patience

ERROR = StreamUnavailableError("stream 's' is slow")


def test_pauses_double_up_to_the_longest_and_begin_anew_after_a_success() -> None:
    patience = Patience(backoff=0.5, backoff_max=3.0, tries=6)
    assert [patience.failed(ERROR) for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    patience.succeeded()
    assert patience.failed(ERROR) == 0.5


def test_one_failure_too_many_is_the_end_and_names_the_last_one() -> None:
    patience = Patience(0, 0, tries=2)
    patience.failed(ERROR)
    with pytest.raises(SourceError, match=r"given up after 2 failures in a row .*: stream 's' is slow"):
        patience.failed(ERROR)
