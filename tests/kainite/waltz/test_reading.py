"""What is durable of an application's partition: from memory while it is recent, else from the store."""

from __future__ import annotations

import pytest

from kainite.base.errors import LogCorruptError
from kainite.log.format.entry import Entry, EntryKind, PositionMeta, TransactionMeta
from kainite.store.memory import MemoryStore
from kainite.waltz import reading
from kainite.waltz.reading import Transactions, header_of
from support.application_world import raw_client, world


async def test_old_transactions_are_read_from_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "RECENT_BYTES", 1)
    async with world() as found, raw_client(found) as raw:
        for number in range(4):
            raw.append(-1, data=b"%d" % number, header=number)
        await raw.flush()
        there = found.owned.transactions
        assert [(one.id, one.header) for one in await there.fed(1, 3)] == [(1, 1), (2, 2), (3, 3)]
        assert [await there.data(number) for number in range(4)] == [b"0", b"1", b"2", b"3"]


async def test_a_transaction_that_the_log_lacks_is_told() -> None:
    with pytest.raises(LogCorruptError, match="has no transaction 3"):
        await Transactions(MemoryStore(), "0", 10).fed(3, 5)


def test_an_entry_of_another_kind_is_no_transaction() -> None:
    assert header_of(Entry(EntryKind.TRANSACTION, TransactionMeta(9))) == 9
    with pytest.raises(LogCorruptError, match="entry of kind POSITION"):
        header_of(Entry(EntryKind.POSITION, PositionMeta("s", "1")))
