"""The rows that a person sees of the log."""

from __future__ import annotations

from kainite.log.store.contract import LogStore
from kainite.log.views.unit_table import read_rows
from support.log_builders import batch


def test_what_is_truncated_is_not_shown_though_its_batch_still_is_there(store: LogStore) -> None:
    assert store.put_batch("p", batch(0, count=3), "n") is None
    assert [row.uow for row in read_rows(store, "p", 2)] == ["T-2"]
