from __future__ import annotations

import pytest

from kainite.doctor.clocks import clock_finding, timed
from kainite.doctor.finding import FindingState


@pytest.mark.parametrize(
    ("ours", "refuses", "state", "words"),
    [
        (1000.9, 300.0, FindingState.WELL, "agree"),
        (1060.0, 300.0, FindingState.WARNING, "60 s ahead of AWS"),
        (400.0, 300.0, FindingState.WRONG, "600 s behind AWS, which refuses"),
        (400.0, None, FindingState.WARNING, "600 s behind AWS"),
    ],
)
def test_clocks_that_differ(ours: float, refuses: float | None, state: FindingState, words: str) -> None:
    finding = clock_finding("AWS", 1000.0, ours, refuses)
    assert finding.state is state
    assert words in finding.what
    assert bool(finding.remedy) is (state is not FindingState.WELL)


def test_an_answer_comes_with_the_time_of_its_middle() -> None:
    answer, at = timed(lambda: "x")
    assert answer == "x"
    assert at > 0
