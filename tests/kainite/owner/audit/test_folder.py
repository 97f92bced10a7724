"""The audit trail in a folder: a day's file grows by whole frames; what fails names the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.compression import decompressed
from kainite.base.errors import LogUnavailableError
from kainite.log.format.entry import UnitStatus
from kainite.log.views.unit_table import LogRow
from kainite.owner.audit.folder import FolderAudit


def row(tid: int) -> LogRow:
    return LogRow(f"T-{tid}", id=tid, status=UnitStatus.COMMITTED)


def test_a_missing_folder_is_created_and_its_file_grows(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    trail = FolderAudit(folder)
    trail.write([row(0)], 0, 1)
    [path] = folder.iterdir()
    assert path.match("audit-????-??-??.jsonl.zst")
    first = path.read_bytes()
    assert b'"T-0"' in decompressed(first, 1 << 20)
    trail.write([row(1)], 1, 2)
    assert path.read_bytes().startswith(first)
    assert len(path.read_bytes()) > len(first)


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    FolderAudit(tmp_path / "audit").write([], 0, 10)
    assert not (tmp_path / "audit").exists()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(LogUnavailableError, match=r"file/audit-\d.*cannot be written: (Not a directory|File exists)"):
        FolderAudit(tmp_path / "file").write([row(0)], 0, 1)
