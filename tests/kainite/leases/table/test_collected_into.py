"""The note on a lease that says into which log its owner collects."""

from __future__ import annotations

import pytest

from kainite.leases.table.collected_into import LogNote, log_note_of


def test_a_note_is_read_as_it_was_written() -> None:
    note = LogNote('w "1"', "orders-log/0")
    assert log_note_of(note.as_text()) == note


@pytest.mark.parametrize("text", [None, "", "orders-log/0", "[1]", '{"worker": "w"}', "\udc80"])
def test_what_is_no_note_counts_as_none(text: str | None) -> None:
    assert log_note_of(text) is None
