"""Which number units wait for is told once they have waited for long."""

from __future__ import annotations

import pytest

from kainite.base.position import Position
from kainite.log.collecting.collect import collect
from kainite.log.collecting.watermark import Watermark
from kainite.log.state.folded import FoldedLog
from kainite.owner.turn_lag import LONG_S, TELL_S, TurnLag
from kainite.settings import UowOrder, UowSettings
from support.log_builders import fragment

RULES = UowSettings(order=UowOrder.DENSE)


def test_the_number_and_who_has_it_are_told_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    lag = TurnLag(Watermark(lambda: now[0]), RULES, lambda: now[0])
    state = FoldedLog()
    lag.look(state)
    assert lag.held_by(state) is None
    collect(state, RULES, "s", Position(1), [fragment("T-2", [1], count=1, number=2)], 0)
    lag.look(state)
    now[0] += LONG_S - 1
    lag.look(state)
    assert lag.held_by(state) is None
    now[0] += 1
    lag.look(state)
    assert "1 complete units wait for number 1: no unit with it has come" in str(lag.held_by(state))
    collect(state, RULES, "s", Position(2), [fragment("T-1", [1], count=2, number=1)], 0)
    assert "unit T-1 has it and is not complete" in str(lag.held_by(state))
    assert "kainite log skip 1" in str(lag.held_by(state))
    lag.look(state)
    assert len(caplog.messages) == 1
    now[0] += TELL_S
    lag.look(state)
    assert caplog.messages == ["units wait for a number"] * 2
    collect(state, RULES, "s", Position(3), [fragment("T-1", [2], count=2, number=1)], 0)
    lag.look(state)
    assert lag.held_by(state) is None
