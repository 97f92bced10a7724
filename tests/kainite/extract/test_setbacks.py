"""Failures count towards the end of the extraction; the absence of the source counts towards nothing."""

from __future__ import annotations

import pytest

from kainite.base.errors import ChildExitedError, ChildTryLaterError, SourceError
from kainite.base.retry import Backoff
from kainite.extract.output.sink import Totals
from kainite.extract.patience import Patience
from kainite.extract.progress import ExtractionProgress
from kainite.extract.setbacks import Setbacks
from kainite.extract.status import ExtractStatus
from support.extract_bench import SILENT

AWAY, FAILED = ChildTryLaterError("no source"), ChildExitedError("status 1")
WHAT = "extractor failed: it is started again"


@pytest.fixture
def status() -> ExtractStatus:
    return ExtractStatus(Totals())


@pytest.fixture
def setbacks(status: ExtractStatus) -> Setbacks:
    progress = ExtractionProgress(SILENT, Totals())
    return Setbacks(Patience(0.5, 8.0, tries=3), Backoff.doubling(1.0, 4.0), status, progress)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_absences_have_growing_pauses_and_no_end_and_are_told_once_a_minute(
    setbacks: Setbacks, caplog: pytest.LogCaptureFixture
) -> None:
    pauses = [setbacks.pause_after(AWAY, cyclic=False) for _ in range(50)]
    assert pauses[:4] == [1.0, 2.0, 4.0, 4.0]
    assert told(caplog) == ["waiting"]


def test_an_absence_adds_nothing_to_the_failures_and_takes_nothing_from_them(
    setbacks: Setbacks, status: ExtractStatus, caplog: pytest.LogCaptureFixture
) -> None:
    assert [setbacks.pause_after(error, cyclic=False) for error in (FAILED, AWAY, AWAY, FAILED)] == [0.5, 1.0, 2.0, 1.0]
    assert told(caplog) == [WHAT, "waiting", WHAT]
    assert status.report().problems == ("the extractor has failed 2 times in a row: status 1",)
    setbacks.pause_after(AWAY, cyclic=False)
    with pytest.raises(SourceError, match="given up after 3 failures in a row"):
        setbacks.pause_after(FAILED, cyclic=False)


def test_a_success_ends_both_counts(setbacks: Setbacks, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        assert [setbacks.pause_after(error, cyclic=False) for error in (FAILED, FAILED, AWAY)] == [0.5, 1.0, 1.0]
        setbacks.succeeded()
    assert told(caplog) == [WHAT, WHAT, "waiting"] * 2
