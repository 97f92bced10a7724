"""The file of the console's users."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import SettingsError
from kainite.console.secrets import NOBODYS, line_of, read_hashed_secrets

SECRET = "correct horse battery"


def file_of(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "users"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_secret_is_compared_and_stands_nowhere(tmp_path: Path) -> None:
    line = line_of("ada", SECRET)
    users = read_hashed_secrets(file_of(tmp_path, f"# who looks\n\n{line}\n"))
    assert SECRET not in line
    assert users["ada"].matches(SECRET)
    assert not users["ada"].matches(SECRET + " ")
    assert not NOBODYS.matches("")
    assert line_of("ada", SECRET) != line, "each line has a salt of its own"


@pytest.mark.parametrize("name", ["", "a:b", "a b", "ada\n", "x" * 101])
def test_a_name_that_would_break_the_file_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="is no name of a user"):
        line_of(name, SECRET)


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(SettingsError, match="fewer than 12 characters"):
        line_of("ada", "short")


@pytest.mark.parametrize("text", ["", "# nobody\n", "ada:secret\n", "ada:scrypt:AA==:!\n", "a b:scrypt:AA==:AA==\n"])
def test_a_file_without_users_or_with_another_line_lets_nobody_in(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError, match="consoleUsersFile"):
        read_hashed_secrets(file_of(tmp_path, text))


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="chmod 600"):
        read_hashed_secrets(file_of(tmp_path, line_of("ada", SECRET), 0o640))
    with pytest.raises(SettingsError, match="cannot be read"):
        read_hashed_secrets(tmp_path / "missing")


def test_two_lines_of_one_user_are_refused(tmp_path: Path) -> None:
    two = f"{line_of('ada', SECRET)}\n{line_of('ada', SECRET)}\n"
    with pytest.raises(SettingsError, match="line 2: user ada has a line before it"):
        read_hashed_secrets(file_of(tmp_path, two))
