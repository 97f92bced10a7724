"""The audit trail: units that leave the log, as compressed JSON lines in a folder or on S3.

Each write is one Zstandard frame, and durable before the log is truncated. After a crash between the write and the
truncation the same units are written again: a reader takes the last line of an id.

A folder holds a file for each day (:mod:`kainite.owner.audit.folder`). S3 cannot append, so
:mod:`kainite.owner.audit.s3` writes an object each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import orjson

from kainite.base.compression import compressed
from kainite.log.contract import LogStore
from kainite.log.views.unit_table import LogRow, read_rows_between


class AuditTrail(Protocol):
    """The place that units are written to before they are truncated from the log."""

    def write(self, rows: Iterable[LogRow], low: int, high: int) -> None:
        """Writes rows; returns when they are durable. Without rows it writes nothing.

        Args:
            rows: the units whose ids are from ``low`` to ``high`` - 1.

        Raises:
            LogUnavailableError: the rows cannot be written now; the caller truncates nothing.
        """


def frame(rows: Iterable[LogRow]) -> bytes:
    """Returns a line of JSON for each row, compressed; no bytes for no rows."""
    lines = b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
    return compressed(lines) if lines else b""


def audited(store: LogStore, partition: str, low: int, high: int) -> list[LogRow]:
    """Returns the units with ids from ``low`` to ``high`` - 1, with their status at the log's tail."""
    return read_rows_between(store, partition, low, high) if low < high else []
