"""The forks that a store has met, and where the items of a log partition stand by them.

A fork never changes (:mod:`kainite.store.striping`), so a store remembers those that it has read. A writer that does
not know of one writes into the spine, and finds the fork in its way.
"""

from __future__ import annotations

from kainite.aws.dynamodb import Value
from kainite.log.contract import Fork, Slot
from kainite.store.dynamodb_items import chunk_key, chunks_key, id_key, key, slots_key
from kainite.store.striping import passes, place


class KnownForks:
    """Remembers the forks of log partitions; forgets one of another table that had the same name."""

    def __init__(self) -> None:
        self._forks: dict[str, Slot] = {}

    def of(self, partition: str) -> Fork | None:
        """Returns the partition's fork, if it is known."""
        known = self._forks.get(partition)
        return known.fork if known else None

    def learn(self, partition: str, slot: Slot | None) -> Fork | None:
        """Remembers a slot if it is a fork, which stays for good; returns the fork."""
        if slot is None or slot.fork is None:
            return None
        self._forks[partition] = slot
        return slot.fork

    def learn_last(self, partition: str, slot: Slot | None) -> None:
        """Learns from the last slot of the spine whether the partition has a fork."""
        if self.learn(partition, slot) is None:
            self._forks.pop(partition, None)

    def in_way(self, partition: str, first_id: int, generation: int) -> Slot | None:
        """Returns the fork that a slot at ``first_id`` would bypass, because its writer has mounted before the fork."""
        known = self._forks.get(partition)
        return known if passes(first_id, generation, known) else None

    def slot_key(self, partition: str, first_id: int) -> dict[str, Value]:
        """Returns the key of the slot that begins at ``first_id``."""
        return key(slots_key(partition, place(first_id, self.of(partition))), id_key(first_id))

    def chunk_key(self, partition: str, first_id: int, nonce: str, chunk_number: int) -> dict[str, Value]:
        """Returns the key of a chunk of the batch that begins at ``first_id``."""
        fork = self.of(partition)
        stripe = place(first_id, fork)
        if fork is not None and stripe is not None:
            stripe = (stripe + chunk_number) % fork.stripes
        return key(chunks_key(partition, stripe), chunk_key(first_id, nonce, chunk_number))
