"""Time, not the number of pieces of work, decides when others get the loop."""

from __future__ import annotations

from kainite.child.breather import LONGEST_S, Breather


def test_it_is_due_after_the_longest_time_and_not_again_before_the_next() -> None:
    now = 5.0
    breather = Breather(lambda: now)
    assert not breather.due
    now += LONGEST_S / 2
    assert not breather.due
    now += LONGEST_S
    assert breather.due
    assert breather.due, "until it is taken"
    breather.taken()
    assert not breather.due
