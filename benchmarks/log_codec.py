"""Measures what collecting, encoding, decoding, folding and a snapshot cost a unit of work, in processor time.

Nothing waits, so the figures hold on a busy machine too: each is the best of some rounds, in microseconds of processor
time a unit of 5 deltas and 15 signatures, 100 units a batch. *snapshot* is of all units, none of them applied. The
deltas' JSON is packed beforehand, as the holder of a shard does it.

    python benchmarks/log_codec.py [--units N] [--rounds N] [--json]
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import struct
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from runs.machine import warn_unless_quiet

from kainite.base.position import Position
from kainite.log.collecting.collect import collect
from kainite.log.format.batch_codec import decode, encode
from kainite.log.format.entry import Batch
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.settings import UowSettings
from kainite.uow.delta import Delta, Operation, UnitEnd
from kainite.uow.fragment import Fragment
from kainite.uow.packing import Piece, pack
from kainite.uow.touches import Touched

T = TypeVar("T")

UNITS_PER_BATCH = 100
TABLES = ("sales.account", "sales.order_line", "sales.orders")


def units(count: int) -> list[Fragment]:
    """Returns whole units, as they come to the log's owner."""
    chance = random.Random(17)
    deltas = [Delta("sales.orders", Operation.INSERT, {"id": key}, {"id": key, "qty": 2}, {}, key) for key in range(5)]
    [piece] = pack([deltas])
    return [_unit(number, piece, chance) for number in range(count)]


def _unit(number: int, piece: Piece | None, chance: random.Random) -> Fragment:
    written, read = (frozenset(chance.getrandbits(64) for _ in range(size)) for size in (9, 6))
    return Fragment(
        f"T-{number}",
        touched=Touched(written, read, TABLES, (), "0123456789abcdef"),
        ends=(UnitEnd(5, number + 1),),
        identities=tuple(range(5)),
        time=1_700_000_000_000_000_000 + number,
        arrived_ms=1_700_000_000_000 + number,
        piece=piece,
        signed=struct.pack(">15Q", *written, *read),
    )


def measure(fragments: Sequence[Fragment]) -> dict[str, float]:
    """Returns the seconds that each step takes for all units."""
    took: dict[str, float] = {}

    def timed(name: str, step: Callable[[], T]) -> T:
        began = time.process_time()
        result = step()
        took[name] = time.process_time() - began
        return result

    state = FoldedLog()
    batches = timed("collect", lambda: _collected(state, fragments))
    encoded = timed("encode", lambda: [encode(batch) for batch in batches])
    decoded = timed("decode", lambda: [decode(*each) for each in encoded])
    timed("fold", lambda: _folded(decoded))
    dumped = timed("snapshot written", lambda: snapshot.dump(state))
    timed("snapshot read", lambda: snapshot.load(dumped))
    return took


def _collected(state: FoldedLog, fragments: Sequence[Fragment]) -> list[Batch]:
    batches = []
    for start in range(0, len(fragments), UNITS_PER_BATCH):
        some, first = fragments[start : start + UNITS_PER_BATCH], state.next_id
        entries = collect(state, UowSettings(), "shard-0", Position(start + 1), some, 0)
        batches.append(Batch(first, 1, 0, tuple(entries)))
    return batches


def _folded(batches: Sequence[Batch]) -> None:
    state = FoldedLog()
    for batch in batches:
        for tid, entry in batch.entries_from(0):
            state.apply(tid, entry, batch.time_ms)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=6_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warn_unless_quiet()
    gc.disable()
    fragments = units(options.units)
    rounds = [measure(fragments) for _ in range(options.rounds)]
    best = {name: min(each[name] for each in rounds) * 1e6 / options.units for name in rounds[0]}
    if options.json:
        print(json.dumps({name: round(value, 2) for name, value in best.items()}))
        return
    for name, value in best.items():
        print(f"{name:18}{value:8.1f} µs a unit")


if __name__ == "__main__":
    main()
