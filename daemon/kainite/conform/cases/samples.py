"""The records that are sent to the child: generic ones, odd ones, or the author's own. Pure, except for reading a file.

The generic payloads are those of the examples in ``record_processors/examples``: changes of one small table.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from msgspec import structs

from kainite.base.errors import SettingsError
from kainite.base.record import RawRecord

FIRST: Final = 49590338271490256608559692538361571095921575989136588898
ARRIVED: Final = 1_700_000_000.0
MOST_RECORDS: Final = 10_000
"""Most records of one GetRecords reply."""

ODD_KEYS: Final = (
    "schlüssel",
    "ключ",
    "鍵\u2028\u2029",
    "👩\u200d💻",
    '"quoted" \\ back\\slash',
    "tab\tnewline\n",
    "\x00\x7f",
    "k" * 256,
)
ODD_TEXTS: Final = (
    "schlüssel ключ 鍵",
    "line\nline\r\nline\u2028line",
    '"quotes" and \\ and \x00',
    '{"action":"status","responseFor":"processRecords"}',
    "[]",
    "null",
    "{",
)
BINARY: Final = (bytes(range(256)), b"\xff\xfe\x00", b"\x80", b"\x1f\x8b\x08\x00", b"\n\r\n")


@dataclass(frozen=True, slots=True)
class Samples:
    """Payloads that the record processor is meant to understand, at least one.

    Attributes:
        payloads: the payloads, in the order in which they are sent; where more are needed, they are sent again.
        own: whether the payloads are the author's.
    """

    payloads: tuple[bytes, ...]
    own: bool = False

    def records(self, count: int, begin: int = 0) -> tuple[RawRecord, ...]:
        """Returns ``count`` records; ``begin`` says how many records of the shard came before."""
        return records(self.taken(count, begin), begin)

    def taken(self, count: int, begin: int = 0) -> tuple[bytes, ...]:
        """Returns ``count`` payloads, from the one numbered ``begin`` on."""
        return tuple(islice(cycle(self.payloads), begin, begin + count))

    def keyed(self, keys: Sequence[str]) -> tuple[RawRecord, ...]:
        """Returns a record for each partition key."""
        return tuple(structs.replace(raw, key=key) for raw, key in zip(self.records(len(keys)), keys, strict=True))

    def aggregated(self, count: int, begin: int) -> tuple[RawRecord, ...]:
        """Returns records of one KPL aggregate: one sequence number, counted by sub-sequence numbers."""
        number = str(FIRST + begin)
        taken = self.records(count, begin)
        return tuple(structs.replace(raw, sequence=number, sub=sub) for sub, raw in enumerate(taken))

    def large(self, size: int) -> tuple[RawRecord, ...]:
        """Returns payloads of ``size`` bytes together, but no more records than one GetRecords reply has at most."""
        taken: list[bytes] = []
        left = size
        for payload in islice(cycle(self.payloads), MOST_RECORDS):
            left -= len(payload)
            if left < 0 and taken:
                break
            taken.append(payload)
        return records(taken)


def generic(count: int = 10) -> Samples:
    """Returns one unit of work of ``count`` records: deltas, then its end."""
    deltas = [{"uow": "conform-1", "table": "conform", "id": number, "qty": number % 7} for number in range(count - 1)]
    lines = [*deltas, {"uow": "conform-1", "end": True, "count": len(deltas)}]
    return Samples(tuple(json.dumps(line, separators=(",", ":")).encode() for line in lines))


def padded(size: int, pieces: int) -> Samples:
    """Returns ``pieces`` deltas like the generic ones, ``size`` bytes together."""
    deltas = [{"uow": "conform-2", "table": "conform", "id": number, "qty": 1, "note": ""} for number in range(pieces)]
    notes = [dict(delta, note="x" * (size // pieces - len(json.dumps(delta)))) for delta in deltas]
    return Samples(tuple(json.dumps(delta).encode() for delta in notes))


def read_samples(path: Path) -> Samples:
    """Returns the author's payloads: each line that is not empty, without its end.

    Raises:
        SettingsError: the file cannot be read, or has no line that is not empty.
    """
    try:
        lines = tuple(line for line in path.read_bytes().splitlines() if line)
    except OSError as error:
        raise SettingsError(f"--records: cannot read {path}: {error.strerror}") from error
    if not lines:
        raise SettingsError(f"--records: {path} is empty; write one payload a line")
    return Samples(lines, own=True)


def records(payloads: Sequence[bytes], begin: int = 0) -> tuple[RawRecord, ...]:
    """Returns records as GetRecords replies with them, their payloads in base64."""
    return tuple(
        RawRecord(str(FIRST + number), f"key-{number % 4}", b64encode(payload).decode(), ARRIVED + number / 1000)
        for number, payload in enumerate(payloads, begin)
    )
