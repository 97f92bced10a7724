"""A transaction that is being made: locks are hashes of a name and a key."""

from __future__ import annotations

from kainite.waltz.context import TransactionBuilder
from kainite.waltz.lock_hash import lock_hash


def test_locks_are_hashes_each_once() -> None:
    builder = TransactionBuilder()
    for _ in range(2):
        builder.write_lock("payment", 1)
        builder.read_lock("account", "ann")
        builder.append_lock("audit")
    assert builder.write_locks == {lock_hash("payment", 1)}
    assert builder.read_locks == {lock_hash("account", "ann")}
    assert builder.append_locks == {lock_hash("audit")}
