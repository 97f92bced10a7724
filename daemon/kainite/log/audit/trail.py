"""The audit trail: units leave the log for compressed JSON lines, in a folder or on S3.

Each write is one Zstandard frame, and durable before the log is truncated. A crash between the two writes
the same units again: a reader takes the last line of an id.

A folder holds a file a day (:mod:`kainite.log.audit.folder`). S3 cannot append, so :mod:`kainite.log.audit.s3` makes
an object of each write.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Protocol

import orjson
import zstandard

from kainite.log.store.contract import LogStore
from kainite.log.views.unit_table import LogRow, read_rows


class AuditTrail(Protocol):
    """Where units go before they leave the log."""

    def write(self, rows: Iterable[LogRow], low: int, high: int) -> None:
        """Keep rows; returns when they are durable. No rows, nothing written.

        Args:
            rows: the units whose ids are from ``low`` to ``high`` - 1.

        Raises:
            LogUnavailableError: they cannot be written now; nothing is truncated then.
        """


def frame(rows: Iterable[LogRow]) -> bytes:
    """A line of JSON for each row, compressed; nothing for no rows."""
    lines = b"".join(orjson.dumps(asdict(row), option=orjson.OPT_APPEND_NEWLINE) for row in rows)
    return zstandard.ZstdCompressor().compress(lines) if lines else b""


def audited(store: LogStore, partition: str, low: int, high: int) -> list[LogRow]:
    """The units with ids from ``low`` to ``high`` - 1, as they stand at the log's tail."""
    return [row for row in read_rows(store, partition, low) if row.id is not None and row.id < high]
