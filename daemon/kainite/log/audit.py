"""The audit trail: units leave the log for compressed JSON lines, in a folder or on S3 (seed 002, *Status*).

Each write is one Zstandard frame, and durable before the log is truncated. A crash between the two writes
the same units again: a reader takes the last line of an id.

In a folder there is a file a day, ``audit-2026-11-21.jsonl.zst``. Frames concatenate, so ``zstdcat`` reads a
file whole. S3 cannot append: :mod:`kainite.log.audit_s3` makes an object of each write.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import orjson
import zstandard

from kainite.errors import LogUnavailableError
from kainite.log.store import LogStore
from kainite.log.view import LogRow, read_rows
from kainite.settings import AwsSettings, LogSettings


class AuditTrail(Protocol):
    """Where units go before they leave the log."""

    def write(self, rows: Iterable[LogRow], low: int, high: int) -> None:
        """Keep rows; returns when they are durable. No rows, nothing written.

        Args:
            rows: the units whose ids are from ``low`` to ``high`` - 1.

        Raises:
            LogUnavailableError: they cannot be written now; nothing is truncated then.
        """


class FolderAudit:
    """Keeps :class:`AuditTrail` by appending to the day's file in ``folder``, which is made where it is missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, rows: Iterable[LogRow], low: int, high: int) -> None:
        compressed = frame(rows)
        if not compressed:
            return
        path = self._folder / f"audit-{datetime.now(UTC):%Y-%m-%d}.jsonl.zst"
        try:
            self._append(path, compressed)
        except OSError as error:
            raise LogUnavailableError(f"the audit trail {path} cannot be written: {error.strerror}") from error

    def _append(self, path: Path, compressed: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(compressed)
            file.flush()
            os.fsync(file.fileno())


def open_audit(settings: LogSettings, aws: AwsSettings) -> AuditTrail | None:
    """The audit trail that the settings name, if any. Nothing is asked of S3 yet.

    Raises:
        SettingsError: it is on S3, and there is no region or there are no credentials.
    """
    place = settings.audit_trail
    if place is None:
        return None
    if isinstance(place, Path):
        return FolderAudit(place)
    # Imported here, so that a daemon without S3 starts without its client.
    from kainite.aws import client
    from kainite.log.audit_s3 import S3Audit

    return S3Audit(client("s3", aws), place, settings.partition)


def frame(rows: Iterable[LogRow]) -> bytes:
    """A line of JSON for each row, compressed; nothing for no rows."""
    lines = b"".join(orjson.dumps(asdict(row), option=orjson.OPT_APPEND_NEWLINE) for row in rows)
    return zstandard.ZstdCompressor().compress(lines) if lines else b""


def audited(store: LogStore, partition: str, low: int, high: int) -> list[LogRow]:
    """The units with ids from ``low`` to ``high`` - 1, as they stand at the log's tail."""
    return [row for row in read_rows(store, partition, low) if row.id is not None and row.id < high]
