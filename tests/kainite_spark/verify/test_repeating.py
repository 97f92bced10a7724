"""Comparisons that are made again and again: when the next one is made, and what is kept of one without a result."""

from __future__ import annotations

from dataclasses import dataclass, field

from kainite.base.errors import KainiteError, StoppedError, TargetUnavailableError
from kainite.replicate.verify_report import VerifyReport
from kainite_spark.verify.repeating import AGAIN_S, Repeating

DAY = 86_400.0


@dataclass
class Comparisons:
    """Comparisons of which each ends as the test says, on a clock that ``wait`` turns."""

    ends: list[KainiteError | None]
    result_at: float | None = None
    now: float = 0.0
    made: list[float] = field(default_factory=list)
    noted: list[tuple[float, str | None]] = field(default_factory=list)

    def age(self) -> float | None:
        return None if self.result_at is None else self.now - self.result_at

    def compare(self) -> VerifyReport:
        self.made.append(self.now)
        if (error := self.ends.pop(0)) is not None:
            raise error
        self.result_at = self.now
        return VerifyReport("2026-11-23T10:00:00+00:00", "0/1", (), ())

    def note(self, every: float, trouble: str | None) -> None:
        self.noted.append((every, trouble))

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return not self.ends

    def run(self, every: float = DAY) -> list[float]:
        Repeating(self, every, self.wait).run()
        return self.made


def test_the_latest_result_says_when_the_next_comparison_is_made() -> None:
    assert Comparisons([None, None]).run() == [0.0, DAY]
    assert Comparisons([None, None], result_at=-DAY / 3).run() == [DAY * 2 / 3, DAY * 5 / 3]
    assert Comparisons([None], result_at=-3 * DAY).run() == [0.0]


def test_a_comparison_without_a_result_is_made_again_soon_and_says_why() -> None:
    away = Comparisons([TargetUnavailableError("the target is away"), None, None])
    assert away.run() == [0.0, AGAIN_S, AGAIN_S + DAY]
    assert away.noted == [(DAY, None), (DAY, "the target is away"), (DAY, None), (DAY, None)]
    assert Comparisons([TargetUnavailableError("away"), None]).run(60.0) == [0.0, 60.0]


def test_a_comparison_that_is_stopped_has_no_trouble() -> None:
    stopped = Comparisons([StoppedError("stopped")])
    stopped.run()
    assert stopped.noted == [(DAY, None)]


def test_a_target_that_does_not_answer_at_the_start_ends_nothing() -> None:
    class Away(Comparisons):
        def note(self, every: float, trouble: str | None) -> None:
            raise TargetUnavailableError("away")

    assert Away([None, TargetUnavailableError("away")]).run() == [0.0, DAY]
