"""The units in the ledger's row are read back as they were written."""

from __future__ import annotations

from kainite.replicate.stop_ledger import UnresolvedUnit, decoded, encoded


def test_units_are_read_back_as_they_were_written() -> None:
    units = (
        UnresolvedUnit(7, "pg-1-0/10", "failed", "a cause", ("a", "b"), ("b",), frozenset({2**64 - 1, 0}), "s", True),
        UnresolvedUnit(8, "missing:9", "failed", None, (), (), frozenset(), None, False),
    )
    assert decoded(encoded(units)) == units
    assert decoded(encoded(())) == ()
