"""The apply job's side of a log: reports outcomes of units, which the log's owner copies."""

from __future__ import annotations

from kainite.log.contract import LogStore
from kainite.log.format.entry import Batch, Entry, EntryKind, Outcome, StatusMeta
from kainite.log.state.outcomes import outcomes_partition
from kainite.owner.mount import mount

LIMIT = 30.0


class OutcomesLog:
    """Owns the outcomes partition, in place of the apply job."""

    def __init__(self, store: LogStore, partition: str = "0", target: str = "") -> None:
        self._store = store
        self._partition = outcomes_partition(partition, target)
        self._mount = mount(store, self._partition, "apply", 5.0)
        self._next = self._mount.first_id

    @property
    def last_id(self) -> int:
        return self._next - 1

    def report(self, *outcomes: Outcome) -> None:
        entry = Entry(EntryKind.STATUS, StatusMeta(outcomes))
        batch = Batch(self._next, self._mount.generation, 0, (entry,))
        assert self._store.put_batch(self._partition, batch, f"n{self._next}") is None
        self._next += 1

    def truncate(self, below: int) -> None:
        """Removes the entries below an id, as the log's owner does once it has copied them."""
        self._mount.renew(low_water_mark=below)
        self._store.truncate(self._partition, below)
