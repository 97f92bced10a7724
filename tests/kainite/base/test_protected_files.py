"""Files that only their owner may read."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import SettingsError
from kainite.base.protected_files import read_protected, read_user_lines


def file_of(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "file"
    path.write_bytes(text.encode("latin-1"))
    path.chmod(mode)
    return path


def pair(where: str, line: str) -> tuple[str, str]:
    user, _, rest = line.partition("=")
    return user, f"{rest} at {where.rpartition(' ')[2]}"


def test_lines_are_read_in_order_without_comments(tmp_path: Path) -> None:
    path = file_of(tmp_path, "# who\n\n b=1 \n  # more\na=2")
    assert read_protected("key", path).startswith("# who")
    assert list(read_user_lines("key", path, pair).items()) == [("b", "1 at 3"), ("a", "2 at 5")]


def test_a_second_line_of_one_user_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"key .*file, line 3: user a has a line before it"):
        read_user_lines("key", file_of(tmp_path, "a=1\nb=2\na=3\n"), pair)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(SettingsError, match=r"key .* may be read or changed by others: chmod 600"):
        read_protected("key", file_of(tmp_path, "x", mode))


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none", file_of(tmp_path, "ÿ")):
        with pytest.raises(SettingsError, match=r"key .* cannot be read"):
            read_protected("key", path)
