"""Owns a log, as a daemon does, and brings units to it as long as a benchmark runs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from kainite.base.position import Position
from kainite.peers.sharing.lease_holders import LeaseHolders
from kainite.peers.sharing.shared_log import SharedLog, open_shared_log
from kainite.settings import LogSettings, UowSettings
from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.catalogue.reflection import reflect
from kainite.uow.delta import Delta, Operation, UnitEnd
from kainite.uow.fragment import Fragment
from kainite.uow.packing import pack
from kainite.uow.signature import Signatures
from kainite.uow.touches import Touched

SCHEMA: Final = "CREATE TABLE item (id bigint PRIMARY KEY, v bigint NOT NULL)"
EVERY_S: Final = 0.05
"""Seconds between two units."""

_SHARD: Final = "s0"


@contextmanager
def units_coming(store: DynamoDBStore, table: str, target: str) -> Iterator[None]:
    """Appends units on a thread, each with one new row of ``item``, until the block ends; raises its error then.

    Args:
        store: the log's store.
        table: the log's table.
        target: the database, which has the table ``item``.
    """
    settings = LogSettings(table=table, owner="bench", enabled=True)
    stop, reached = threading.Event(), threading.Event()
    ended: Future[None] = Future()

    def bring() -> None:
        try:
            asyncio.run(_bring(store, settings, Signatures(reflect(target)), stop, reached))
            ended.set_result(None)
        except BaseException as error:
            ended.set_exception(error)
        reached.set()

    threading.Thread(target=bring, name="units", daemon=True).start()
    reached.wait()
    try:
        yield
    finally:
        stop.set()
        ended.result()


async def _bring(
    store: DynamoDBStore,
    settings: LogSettings,
    signatures: Signatures,
    stop: threading.Event,
    reached: threading.Event,
) -> None:
    nobody = LeaseHolders(lambda _: None, time.monotonic)
    async with open_shared_log(store, settings, UowSettings(), "stream", holders=nobody) as (log, _):
        await log.reached()
        reached.set()
        number = 0
        while not stop.is_set():
            number += 1
            await _append(log, number, _unit(number, signatures))
            await asyncio.sleep(EVERY_S)


async def _append(log: SharedLog, number: int, unit: Fragment) -> None:
    await log.append(_SHARD, Position(number), Position(number), [unit], await log.position(_SHARD))


def _unit(number: int, signatures: Signatures) -> Fragment:
    deltas = (Delta("item", Operation.INSERT, {"id": number}, {"id": number, "v": number}, {}),)
    (piece,) = pack([deltas])
    return replace(Fragment(f"T-{number}", deltas, Touched(*signatures.of(deltas)), (UnitEnd(1, number + 1),)),
                   piece=piece)  # fmt: skip
