"""A MariaDB source and its replica: extractor, record processor, log and apply job, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kainite.store.memory import MemoryStore
from support.apply_world import World
from support.carried_records import CarriedRecords
from support.mariadb_source import Extraction, execute


class MysqlReplica:
    """A source whose transactions are applied to a target when a test says so.

    Args:
        source: the source's address.
        target: the target's address; it has the source's tables.
        options: how the source is read.
    """

    def __init__(self, source: str, target: str, **options: Any) -> None:
        self._extraction = Extraction(source, **options)
        self._world = World(MemoryStore(), target, create=False)
        self._records = CarriedRecords(self._world)

    def catch_up(self, transactions: int) -> None:
        """Brings the source's next transactions to the target."""
        self._records.log(self._extraction.until(self._extraction.offset["number"] + transactions))
        self._world.apply()

    def failed(self) -> dict[str, str]:
        """Returns the units that are not committed, with their causes."""
        units = self._world.log.state.units.values()
        return {unit.uow: f"{unit.status.value}: {unit.cause}" for unit in units}

    def close(self) -> None:
        self._extraction.close()
        self._world.target.close()


@contextmanager
def mysql_replica(source: str, target: str, at_source: Sequence[str], **options: Any) -> Iterator[MysqlReplica]:
    """Makes the source's tables, and a replica of them in a target that has them already."""
    execute(source, *at_source)
    made = MysqlReplica(source, target, **options)
    try:
        yield made
    finally:
        made.close()
