"""The file of users: what a line says, and which files are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import SettingsError
from kainite.base.redaction import forget, redacted
from kainite.peers.connection.introduction import Key
from kainite.peers.users import read_users


def user_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "users"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_users_are_read_in_order_and_their_secrets_are_never_shown(tmp_path: Path) -> None:
    text = "# who may connect\n\nann:daemon,follow:correct horse\n bob: application/3 :battery:staple \n"
    try:
        users = read_users(user_file(tmp_path, text))
        assert list(users.items()) == [
            ("ann", Key("correct horse", frozenset({"daemon", "follow"}))),
            ("bob", Key("battery:staple", frozenset({"application/3"}))),
        ]
        assert redacted("said correct horse") != "said correct horse"
        assert "horse" not in repr(users)
    finally:
        forget()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(SettingsError, match="may be read or changed by others: chmod 600"):
        read_users(user_file(tmp_path, "ann:daemon:one\n", mode))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no line user:rights:secret"),
        ("ann\n", "line 1: is not user:rights:secret"),
        ("ann:one\n", "line 1: is not user:rights:secret"),
        ("a:daemon:b\n:daemon:x\n", "line 2: is not"),
        ("@log:daemon:one\n", "line 1: is not"),
        ("ann:admin:one\n", "'admin' is no right; rights are among daemon"),
        ("ann:daemon/1:one\n", "'daemon/1' is no right"),
        ("ann:daemon,:one\n", "'' is no right"),
        ("ann:daemon:one\nann:follow:two\n", "line 2: user ann has a line before it"),
    ],
)
def test_a_file_with_something_else_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        read_users(user_file(tmp_path, text))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_users(tmp_path / "none")
