"""The progress line."""

from __future__ import annotations

import pytest

from kainite.extract.offsets.place import Place
from kainite.extract.output.sink import Totals
from kainite.extract.progress import EVERY, ExtractionProgress, Showing


def test_progress_is_shown_from_time_to_time_and_a_long_offset_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    totals = Totals()
    progress = ExtractionProgress(Showing(line=True, events=False), totals, lambda: now[0])
    for moment, records in ((EVERY / 2, 100), (2.0, 4_000)):
        now[0], totals.records = moment, records
        progress.moved(Place("x" * 100))
    _, shown = capsys.readouterr()
    assert shown.count("records") == 1
    assert "4,000 records · 2,000/s · 0 units" in shown
    assert "…" in shown
