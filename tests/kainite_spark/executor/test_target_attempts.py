"""One target transaction, tried until the target answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kainite.base.errors import TargetBusyError, TargetInterruptedError, TargetRejectedError, TargetUnavailableError
from kainite_spark.executor.apply_options import Retry
from kainite_spark.executor.target_attempts import TargetAttempts, Trouble
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence, already_applied
from support.scripted_session import Scripted

FENCE = Fence("0", 1, 1)
UNITS = [Unit(tid, f"T-{tid}", (), frozenset({tid})) for tid in range(3)]


class Tried:
    """A target, and attempts at it; ``pauses`` lists the waits."""

    def __init__(self, target: Scripted, tries: int = 3) -> None:
        self.target = target
        self.pauses: list[float] = []
        self.attempts = TargetAttempts(target, FENCE, Retry(tries, first=1.0, limit=4.0), self.pauses.append)

    def commit(self, units: Sequence[Unit] = UNITS) -> Trouble | None:
        return self.attempts.commit(units, lambda rest: self.target.apply(FENCE, rest))


def test_what_the_target_takes_is_committed() -> None:
    tried = Tried(Scripted())
    assert tried.commit() is None
    assert tried.attempts.committed.keys() == {0, 1, 2}
    assert tried.target.groups == [[0, 1, 2]]


def test_what_the_target_has_is_not_tried() -> None:
    tried = Tried(Scripted(committed=[1]))
    tried.attempts.acknowledge(UNITS)
    assert tried.commit() is None
    assert tried.target.groups == [[0, 2]]


def test_a_target_that_is_away_is_tried_again_and_asked_first() -> None:
    tried = Tried(Scripted(lost_answers=[1]))
    assert tried.commit() is None
    assert tried.target.groups == [[0, 1, 2]], "the first try had committed"
    assert tried.pauses == [1.0]


def test_a_target_that_stays_away_raises() -> None:
    tried = Tried(Scripted(away=range(1, 9)))
    with pytest.raises(TargetUnavailableError):
        tried.commit()
    assert tried.pauses == [1.0, 2.0]
    assert not tried.attempts.committed


@pytest.mark.parametrize(
    ("target", "trouble"), [(Scripted(refused={1}), TargetRejectedError), (Scripted(locked={1}), TargetBusyError)]
)
def test_what_the_target_does_not_take_is_told_at_once(target: Scripted, trouble: type[Exception]) -> None:
    tried = Tried(target)
    assert isinstance(tried.commit(), trouble)
    assert tried.pauses == []
    assert not tried.attempts.committed


def test_units_that_break_the_connection_each_time_are_busy_and_their_parts_have_fewer_tries() -> None:
    tried = Tried(Scripted(deadly={1}), tries=4)
    assert isinstance(tried.commit(), TargetBusyError)
    assert len(tried.target.groups) == 4
    assert isinstance(tried.commit(UNITS[1:]), TargetBusyError)
    assert len(tried.target.groups) == 4 + 2


def test_a_connection_that_breaks_while_the_target_does_not_answer_is_no_unit_s_fault() -> None:
    tried = Tried(Scripted(deadly={1}, away={3}), tries=1)
    assert isinstance(tried.commit(), TargetBusyError)
    with pytest.raises(TargetInterruptedError):
        Tried(Scripted(deadly={1}, away={2}), tries=1).commit()


def test_no_target_is_given_deltas_that_cannot_be_read() -> None:
    tried = Tried(Scripted())
    trouble = tried.commit([UNITS[0], replace(UNITS[1], fault="no JSON")])
    assert (type(trouble), str(trouble)) == (TargetRejectedError, "no JSON")
    assert tried.target.calls == 0


def test_a_target_that_answers_is_not_said_to_be_unavailable(caplog: pytest.LogCaptureFixture) -> None:
    """Has another task acknowledge a unit meanwhile: the target answers, and the rest is tried again."""
    session = Scripted()
    attempts = TargetAttempts(session, Fence("0", 1, 0), Retry(tries=3, first=0.01), lambda _: None)

    def overtaken_once(rest: Sequence[Unit]) -> None:
        if not session.committed:
            session.committed.append(rest[0].tid)
            raise already_applied(Fence("0", 1, 0))
        session.apply(Fence("0", 1, 0), rest)

    assert attempts.commit([Unit(1, "T-1", ()), Unit(2, "T-2", ())], overtaken_once) is None
    assert session.committed == [1, 2]
    assert caplog.messages == ["target transaction to be tried again"]
