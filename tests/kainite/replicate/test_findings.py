"""Findings."""

from kainite.replicate.findings import fine, is_ready, warning, wrong


def test_a_load_may_begin_unless_something_is_wrong() -> None:
    assert is_ready([])
    assert is_ready([fine("a", "b"), warning("c", "d", "e")])
    assert not is_ready([fine("a", "b"), wrong("c", "d", "e")])
