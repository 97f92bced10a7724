"""The audit trail in a folder: a day's file grows by whole frames, whatever broke an append before."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kainite.base.compression import compressed, decompressed, end_of_whole_frames
from kainite.base.errors import LogUnavailableError
from kainite.log.format.entry import UnitStatus
from kainite.log.views.unit_table import LogRow
from kainite.owner.audit.folder import FolderAudit, append


def row(tid: int) -> LogRow:
    return LogRow(f"T-{tid}", id=tid, status=UnitStatus.COMMITTED)


def frames(path: Path) -> list[bytes]:
    """Returns what each frame of a file holds; fails where bytes are behind the last whole frame."""
    data, found = path.read_bytes(), []
    assert end_of_whole_frames(data) == len(data)
    while data:
        found.append(decompressed(data, 1 << 20))
        data = data[len(compressed(found[-1])) :]
    return found


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


def test_other_users_cannot_read_the_rows(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        FolderAudit(tmp_path / "audit").write([row(0)], 0, 1)
    finally:
        os.umask(before)
    [path] = (tmp_path / "audit").iterdir()
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    FolderAudit(tmp_path / "audit").write([], 0, 10)
    assert not (tmp_path / "audit").exists()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(LogUnavailableError, match=r"file/audit-\d.*cannot be written: (Not a directory|File exists)"):
        FolderAudit(tmp_path / "file").write([row(0)], 0, 1)


FULL_DISK = """
import os, resource, signal, sys
from pathlib import Path
from kainite.base.compression import compressed
from kainite.owner.audit.folder import append
path = Path(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write up to the limit is short then, and the next one fails
limit = path.stat().st_size + 10
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    append(path, compressed(os.urandom(1000)))
except OSError as error:
    print(error.strerror)
"""

OWNER = """
import sys
from contextlib import suppress
from pathlib import Path
from kainite.base.compression import compressed
from kainite.owner.audit.folder import append
for _ in range(50):
    while True:
        with suppress(BlockingIOError):
            append(Path(sys.argv[1]), compressed(sys.argv[2].encode() * 5000))
            break
"""


def program(text: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", text, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


def test_a_disk_that_is_full_in_mid_frame_leaves_the_frames_before_it(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    append(path, compressed(b"one"))
    # In a process of its own: the limit holds for all files of a process.
    with program(FULL_DISK, path) as filling:
        assert filling.communicate(timeout=60)[0] == "File too large\n"
    append(path, compressed(b"two"))
    assert frames(path) == [b"one", b"two"]
    assert [each.name for each in tmp_path.iterdir()] == ["audit"]


@pytest.mark.parametrize("end", [1, 5, -1])
def test_half_a_frame_after_a_crash_is_moved_aside(tmp_path: Path, end: int, caplog: pytest.LogCaptureFixture) -> None:
    path, torn = tmp_path / "audit", compressed(os.urandom(1000))[:end]
    append(path, compressed(b"one"))
    with path.open("ab") as file:
        file.write(torn)
    append(path, compressed(b"two"))
    assert frames(path) == [b"one", b"two"]
    assert (tmp_path / "audit.torn").read_bytes() == torn
    assert "audit trail had a torn end" in caplog.text


def test_a_file_that_ends_in_zeros_after_a_power_cut_goes_on_behind_its_whole_frames(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    append(path, compressed(b"one"))
    os.truncate(path, path.stat().st_size + 4096)
    append(path, compressed(b"two"))
    assert frames(path) == [b"one", b"two"]


def test_a_lock_that_a_stopped_process_holds_is_not_waited_for(tmp_path: Path) -> None:
    FolderAudit(tmp_path).write([row(0)], 0, 1)
    [path] = tmp_path.iterdir()
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(LogUnavailableError, match="another process is writing to it"):
            FolderAudit(tmp_path).write([row(1)], 1, 2)


def test_two_owners_at_a_time_append_whole_frames(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    with program(OWNER, path, "a") as one, program(OWNER, path, "b") as other:
        assert (one.wait(60), other.wait(60)) == (0, 0)
    assert sorted(frames(path)) == [b"a" * 5000] * 50 + [b"b" * 5000] * 50
