from __future__ import annotations

from kainite.doctor.finding import warned, well, wrong


def test_each_state_has_a_sign() -> None:
    assert [each("a", "b").state.sign for each in (well, warned, wrong)] == ["✓", "!", "✗"]
