"""Writes the audit trail to a folder: a file a day, ``audit-2026-11-21.jsonl.zst``.

Zstandard frames concatenate, so ``zstdcat`` reads a file whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from kainite.base.errors import LogUnavailableError
from kainite.log.views.unit_table import LogRow
from kainite.owner.audit.trail import frame


class FolderAudit:
    """Implements :class:`~kainite.owner.audit.trail.AuditTrail` by appending to the day's file in ``folder``.

    A missing folder is created.
    """

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
