"""A source database and its replica: slot, extractor, record processor, log and apply job between two PostgreSQLs.

All parts are the real ones. They run one after the other in this process: Kinesis and Spark are left out, and so is the
daemon around the record processor and the log. What the parts hand on to each other are the bytes that they would.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import orjson
import psycopg

from kainite.base.errors import TargetFencedError
from kainite.capture.postgresql.extractor import PostgresExtractor, Reading
from kainite.capture.postgresql.offset import Offset
from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite.capture.truncate import OnTruncate
from kainite.settings import ApplySettings
from kainite.store.memory import MemoryStore
from kainite_spark.targets.opening import open_stops
from support.apply_world import World
from support.carried_records import CarriedRecords
from support.postgresql_source import drop_slot

_READABLE: Final = (
    "-c datestyle=ISO -c intervalstyle=postgres -c timezone=UTC -c extra_float_digits=3 -c bytea_output=hex"
    " -c lc_monetary=C -c quote_all_identifiers=off -c search_path=public"
)
"""Both databases are read with the same settings, by which no two values have the same text."""
_ANSWERS: Final = 200
"""Most answers of the extractor without a transaction that is waited for."""


class Replica:
    """A source whose transactions are applied to a target when a test says so.

    Args:
        source: the source, whose slot there is not yet.
        target: the target's URL; it has the source's tables.
        begin: where a slot begins that is there already; None to make one.
        apply: settings with which the target is opened.
        ledger: the log's name in the target.
        on_truncate: what TRUNCATE does.

    Attributes:
        records: what the extractor has given, in order.
    """

    def __init__(
        self,
        source: SourceSlot,
        target: str,
        begin: dict[str, Any] | None = None,
        apply: ApplySettings | None = None,
        ledger: str = "log/0",
        on_truncate: OnTruncate = OnTruncate.FAIL,
    ) -> None:
        self._offset = made(source) if begin is None else begin
        self.records: list[bytes] = []
        self._source = source
        self._reading = Reading(source, on_truncate=on_truncate)
        self._extractor = PostgresExtractor(self._reading)
        self.store = MemoryStore()
        self._world = World(self.store, target, ledger=ledger, create=False, apply=apply)
        self._log = CarriedRecords(self._world).log
        self._world.stops = open_stops(target, self._world.ledger)
        self._readers = [psycopg.connect(url, options=_READABLE, autocommit=True) for url in (source.url, target)]

    def catch_up(self, transactions: int) -> None:
        """Brings the source's next transactions to the target.

        Args:
            transactions: how many have committed on the source since the last call.
        """
        goal, left = self._offset["number"] + transactions, _ANSWERS
        while self._offset["number"] < goal:
            self._log(self._extracted())
            left -= 1
            assert left > 0, f"the source has sent {self._offset['number']} transactions of {goal}"
        self._world.apply()

    @contextmanager
    def living(self, *, until_cut_over: bool = False) -> Iterator[None]:
        """Lets the extractor, the log's owner and an apply job run on threads meanwhile, as they do for good.

        Args:
            until_cut_over: the target is cut over at the end, whose fence may end the apply job.
        """
        expected = [TargetFencedError] if until_cut_over else []
        with self._world.living(self.answer_once, *expected):
            yield

    def begin_at_a_new_slot(self, lose: Callable[[], object]) -> None:
        """Drops the slot, lets ``lose`` commit what nobody will send, and goes on behind it under the next number."""
        self._extractor.close()
        with psycopg.connect(self._source.url, autocommit=True) as connection:
            drop_slot(connection, self._source.slot)
        lose()
        self._offset = made(self._source) | {"number": self.number}
        self._extractor = PostgresExtractor(self._reading)

    def go_on(self) -> None:
        """Goes on as a fresh process of the extractor, with whichever server its URL leads to now."""
        self._extractor.close()
        self._extractor = PostgresExtractor(self._reading)

    def answer_once(self) -> None:
        """Takes one answer of the extractor, which may have nothing in it."""
        self._log(self._extracted())

    def follow(self, over: threading.Event) -> None:
        """Brings what commits on the source to the target, until ``over`` is set."""
        while not over.is_set():
            self._log(self._extracted())
            with suppress(TargetFencedError):  # a load fences the job; whoever watches it starts another one
                self._world.apply()

    @property
    def number(self) -> int:
        """Returns the number of the source's last transaction that was extracted."""
        return int(self._offset["number"])

    def failed(self) -> dict[str, str]:
        """Returns the units that are not committed, with their causes."""
        units = self._world.log.state.units.values()
        return {unit.uow: f"{unit.status.value}: {unit.cause}" for unit in units}

    def values(self, table: str, column: str | None = None) -> tuple[list[str], list[str]]:
        """Returns the rows of a table, or a column's values, in the source and in the target."""
        shown = f"row(id, {column})" if column else "t"
        query = f"SELECT {shown}::text FROM {table} AS t ORDER BY 1"
        source, target = ([row for (row,) in one.execute(query.encode())] for one in self._readers)
        return source, target

    def close(self) -> None:
        for reader in self._readers:
            reader.close()
        self._extractor.close()
        self._world.target.close()
        if self._world.stops is not None:
            self._world.stops.close()

    def _extracted(self) -> list[bytes]:
        """Returns the records of the extractor's next answer."""
        said = list(self._extractor.answer(orjson.dumps({"start": self._offset, "end": None})))
        if said:
            self._offset = orjson.loads(said.pop())["offset"]
        self.records += said
        return said


def made(source: SourceSlot) -> dict[str, Any]:
    """Makes the slot; returns the offset to begin with."""
    with create_slot(source) as slot:
        return Offset(slot.lsn, 0).as_json()


@contextmanager
def replica(
    source: SourceSlot,
    target: str,
    *scripts: str,
    at_source: Sequence[str] = (),
    at_target: Sequence[str] = (),
    apply: ApplySettings | None = None,
    on_truncate: OnTruncate = OnTruncate.FAIL,
) -> Iterator[Replica]:
    """Makes the same tables in both databases, and a replica of the one in the other.

    The source's tables that were there before are dropped.

    Args:
        source, target: the databases.
        scripts: what makes the tables.
        at_source, at_target: what is done in one of them alone afterwards.
        apply: settings with which the target is opened.
        on_truncate: what TRUNCATE does.
    """
    for url, own in ((source.url, at_source), (target, at_target)):
        with psycopg.connect(url, autocommit=True) as connection:
            for script in ("DROP TABLE IF EXISTS item, note", *scripts, *own):
                connection.execute(script)
    made = Replica(source, target, apply=apply, on_truncate=on_truncate)
    try:
        yield made
    finally:
        made.close()
