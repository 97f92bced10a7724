"""Who waits for locks is asked while somebody looks, and rarely."""

from __future__ import annotations

from kainite.base.errors import KainiteError, TargetUnavailableError
from kainite.console.lock_watch import ASKED_S, AWAY_S, LockWatch
from kainite.targets.lock_waits import LockHolder, LockWait

WAIT = LockWait(7, 1.5, "UPDATE item", (LockHolder(8, "ann", "idle in transaction", 60.0, None),))


class AskedTarget:
    """A target that answers as it is told to, on a clock of its own."""

    def __init__(self) -> None:
        self.now, self.asked = 0.0, 0
        self.answer: KainiteError | None = None

    def read(self, target: str) -> tuple[LockWait, ...]:
        self.asked += 1
        if self.answer is not None:
            raise self.answer
        return (WAIT,)

    def watch(self, address: str = "postgresql://h/d") -> LockWatch:
        return LockWatch(address, self.read, lambda: self.now)


def test_all_who_look_share_an_answer_for_some_seconds() -> None:
    target = AskedTarget()
    watch = target.watch()
    assert target.asked == 0
    assert [watch.latest().waits for _ in range(3)] == [(WAIT,)] * 3
    assert target.asked == 1
    target.now = ASKED_S
    watch.latest()
    assert target.asked == 2


def test_a_target_that_is_away_is_asked_again_and_one_that_cannot_be_asked_is_not() -> None:
    target = AskedTarget()
    watch = target.watch()
    target.answer = TargetUnavailableError("it is away")
    assert (watch.latest().problem, watch.latest().waits) == ("it is away", ())
    target.now = AWAY_S - 1
    watch.latest()
    assert target.asked == 1
    target.now, target.answer = AWAY_S, KainiteError("a sqlite target cannot be asked")
    assert "cannot be asked" in watch.latest().problem
    target.now = 1e9
    watch.latest()
    assert target.asked == 2


def test_without_a_target_nothing_is_asked() -> None:
    target = AskedTarget()
    assert (target.watch("").latest().problem, target.asked) == ("no target is set", 0)
