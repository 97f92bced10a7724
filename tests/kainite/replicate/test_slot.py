"""The main slot, as a real server has it."""

from __future__ import annotations

import psycopg
import pytest

from kainite.base.errors import SourceError
from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite.replicate.slot import FoundSlot, check_slot, found_slot, mend_of, problem_of


def test_a_slot_is_told_with_its_place(source: SourceSlot) -> None:
    with pytest.raises(SourceError, match="does not exist: kainite replicate init"):
        check_slot(source)
    with create_slot(source) as made:
        pass
    check_slot(source)
    with psycopg.connect(source.url, autocommit=True) as connection:
        found = found_slot(connection, source.slot)
        assert found_slot(connection, "none") is None
    assert found is not None
    assert (found.plugin, found.here, found.active, found.lost, found.lsn) == ("pgoutput", True, False, False, made.lsn)
    assert found.held >= 0


@pytest.mark.parametrize(
    ("slot", "told", "mend"),
    [
        (FoundSlot("pgoutput", True, False, True, 1, 0, None), "invalidated", "docs/replicate.md, *A lost slot*"),
        (FoundSlot("pgoutput", False, False, False, 1, 0, None), "another database", "another name for --slot"),
        (FoundSlot("wal2json", True, False, False, 1, 0, None), "plugin wal2json", "another name for --slot"),
        (None, "does not exist", "SELECT pg_create_logical_replication_slot('s', 'pgoutput')"),
    ],
)
def test_what_cannot_serve_is_told_with_what_to_do(slot: FoundSlot | None, told: str, mend: str) -> None:
    assert told in str(problem_of(slot, "s"))
    assert mend in mend_of(slot, "s")
