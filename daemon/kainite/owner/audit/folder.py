"""Writes the audit trail to a folder: a file a day, ``audit-2026-11-21.jsonl.zst``.

Zstandard frames concatenate, so ``zstdcat`` reads a file whole, as long as every frame but the last one is whole. What
leaves half a frame, and what happens to it:

* the disk is full in mid-frame: :func:`append` cuts the file back to its size before the frame;
* a crash or a power cut in mid-frame: the next append finds the end of the last whole frame, moves what is behind it to
  ``….torn``, and writes after the whole frame. The log still has these units: they are truncated only after the frame
  is durable;
* two owners on one host at a time (the former one is a zombie): the file has a lock. Who does not get it at once writes
  nothing, and the next snapshot tries again. Nobody waits, because the holder may be stopped.

Rows of all targets are in the files, so only their owner may read them.
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from kainite.base.compression import end_of_whole_frames
from kainite.base.errors import LogUnavailableError
from kainite.base.logs import event
from kainite.base.whole_write import write_whole
from kainite.log.views.unit_table import LogRow
from kainite.owner.audit.trail import frame

_LOG = logging.getLogger(__name__)


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
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            append(path, compressed)
        except OSError as error:
            raise LogUnavailableError(f"the audit trail {path} cannot be written: {error.strerror}") from error


def append(path: Path, compressed: bytes) -> None:
    """Appends one frame behind the last whole frame of a file; returns when the frame is durable.

    Raises:
        OSError: the frame is not in the file; what was in it before is.
    """
    with open(path, "r+b", opener=_owners_file, buffering=0) as file:
        _lock(file)
        whole = _without_torn_end(path, file)
        try:
            write_whole(file.fileno(), compressed)
            os.fsync(file.fileno())
        except OSError:
            file.truncate(whole)
            raise
    _sync_folder(path.parent)


def _owners_file(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT | os.O_APPEND, 0o600)


def _lock(file: BinaryIO) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise BlockingIOError(error.errno, "another process is writing to it") from error


def _without_torn_end(path: Path, file: BinaryIO) -> int:
    """Returns the size of the file's whole frames; moves bytes behind them to a file beside it."""
    size = os.fstat(file.fileno()).st_size
    if not size:
        return 0
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        whole = end_of_whole_frames(data)
        torn = data[whole:]
    if torn:
        beside = path.with_name(f"{path.name}.torn")
        with open(beside, "ab", opener=_owners_file, buffering=0) as kept:
            write_whole(kept.fileno(), torn)
            os.fsync(kept.fileno())
        file.truncate(whole)
        event(_LOG, logging.WARNING, "audit trail had a torn end", file=path, bytes=len(torn), moved_to=beside)
    return whole


def _sync_folder(folder: Path) -> None:
    """Makes the names of new files durable."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
