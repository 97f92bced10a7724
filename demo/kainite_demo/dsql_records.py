"""Aurora DSQL's change records of a transaction, as its documentation has them. Pure.

A record is a JSON object. A record that is too large becomes a main record and fragments, each a record of the stream.
A NULL is written or left out, at random: a reader must take both.
"""

from __future__ import annotations

import base64
import hashlib
import random
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kainite.processors.crc32c import crc32c
from kainite_demo.dsql_changes import NetChange, Row

CLUSTER: Final = "kmabugltfmjdaj2siqr2qbxgju"


@dataclass(frozen=True, slots=True)
class Committed:
    """A transaction.

    Attributes:
        tx: the transaction's id.
        time_ns: when it committed, nanoseconds since the epoch; no two transactions have the same time.
        changes: its net changes, one for each row.
    """

    tx: str
    time_ns: int
    changes: tuple[NetChange, ...]


def name_of(what: str) -> str:
    """Returns an id that looks like DSQL's, 26 characters of base 32; the same text gives the same id."""
    digest = hashlib.blake2b(what.encode(), digest_size=16).digest()
    return base64.b32encode(digest).decode().rstrip("=").lower()


class Recorder:
    """Makes the records of transactions.

    Args:
        choice: decides which rows come in pieces and which NULLs are left out.
        split: the part of all changes that come in pieces, from 0 to 1, however short they are.
        most_pieces: a row comes in so many pieces at most.
    """

    def __init__(self, choice: random.Random, *, split: float = 0.0, most_pieces: int = 4) -> None:
        self._choice = choice
        self._split = split
        self._most_pieces = most_pieces

    def records_of(self, committed: Committed, made_ns: int) -> list[bytes]:
        """Returns the records of a transaction, made at a time in nanoseconds since the epoch.

        A row in pieces becomes several records.
        """
        return [record for change in committed.changes for record in self._records(committed, change, made_ns)]

    def _records(self, committed: Committed, change: NetChange, made_ns: int) -> list[bytes]:
        record = _envelope(committed, change, made_ns)
        after = self._thinned(change.after) if change.after else change.after
        images: dict[str, Row | None] = {"before": change.before, "after": after}
        if self._choice.random() >= self._split:
            return [orjson.dumps({"type": "full", **record, **images})]
        which = "after" if after is not None else "before"
        text = orjson.dumps(images[which]).decode()
        chunk = name_of(f"{committed.tx} {change.schema}.{change.table} {text}")
        parts = self._parts(text)
        split = {"chunk_id": chunk, "total_fragments": len(parts), "crc32c": str(crc32c(text.encode()))}
        main = {"type": "chunked", **record, **images, which: None, "chunked": {which: split}}
        pieces = [
            {"type": "fragment", "chunk_id": chunk, "index": index, "data": part} for index, part in enumerate(parts)
        ]
        return [orjson.dumps(one) for one in (main, *pieces)]

    def _thinned(self, row: Row) -> Row:
        if self._choice.random() < 0.5:
            return row
        return {name: value for name, value in row.items() if value is not None}

    def _parts(self, text: str) -> list[str]:
        """Returns the text in pieces, each of at least one character."""
        most = min(self._most_pieces, len(text))
        cuts = sorted(self._choice.sample(range(1, len(text)), self._choice.randint(1, most) - 1))
        return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def _envelope(committed: Committed, change: NetChange, made_ns: int) -> dict[str, Any]:
    source = {
        "version": "1.0",
        "ts_ms": committed.time_ns // 1_000_000,
        "ts_ns": committed.time_ns,
        "txId": committed.tx,
        "schema": change.schema,
        "table": change.table,
        "db": "postgres",
        "cluster": CLUSTER,
    }
    return {"op": change.op, "source": source, "ts_ms": made_ns // 1_000_000, "ts_ns": made_ns}
