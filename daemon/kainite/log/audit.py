"""The audit trail: units leave the log for compressed JSON lines on disk (seed 002, *Status*).

A file a day, ``audit-2026-11-21.jsonl.zst``. Each write is a Zstandard frame of its own and is
flushed to disk before the log is truncated; frames concatenate, so ``zstdcat`` reads a file whole.
A crash between the two writes the same units again: a reader takes the last line of an id.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import orjson
import zstandard

from kainite.errors import LogUnavailableError
from kainite.log.store import LogStore
from kainite.log.view import LogRow, read_rows


class AuditTrail:
    """Appends rows to the day's file in ``folder``, which is made where it is missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, rows: Iterable[LogRow]) -> None:
        """Append rows; returns when they are on disk. No rows, no file.

        Raises:
            LogUnavailableError: the disk is full, or the folder is not ours to write; nothing is truncated then.
        """
        lines = b"".join(orjson.dumps(asdict(row), option=orjson.OPT_APPEND_NEWLINE) for row in rows)
        if not lines:
            return
        path = self._folder / f"audit-{datetime.now(UTC):%Y-%m-%d}.jsonl.zst"
        try:
            self._append(path, zstandard.ZstdCompressor().compress(lines))
        except OSError as error:
            raise LogUnavailableError(f"the audit trail {path} cannot be written: {error.strerror}") from error

    def _append(self, path: Path, frame: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(frame)
            file.flush()
            os.fsync(file.fileno())


def audited(store: LogStore, partition: str, low: int, high: int) -> list[LogRow]:
    """The units with ids from ``low`` to ``high`` - 1, as they stand at the log's tail."""
    return [row for row in read_rows(store, partition, low) if row.id is not None and row.id < high]
