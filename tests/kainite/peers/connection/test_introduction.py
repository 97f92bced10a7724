"""Users and secrets: what a Hello carries, who is let in, which files are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import LogProtocolError, SettingsError
from kainite.base.redaction import forget, redacted
from kainite.peers.connection.hello import Hello
from kainite.peers.connection.introduction import Introduction, Secrets, introduction_in, read_secrets


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (None, Introduction("")),
        ("Waltz Client", Introduction("Waltz Client")),
        ("k\0ann\0s\0cret", Introduction("k", "ann", "s\0cret")),
    ],
)
def test_an_introduction_is_the_hellos_message(message: str | None, said: Introduction) -> None:
    assert introduction_in(Hello((4,), message)) == said
    assert introduction_in(Hello((4,), said.as_message())) == said
    assert "cret" not in repr(said)


@pytest.mark.parametrize("said", [Introduction("k", "ann", "one"), Introduction("other", "bob", "two: three")])
def test_a_user_with_its_secret_is_let_in(said: Introduction) -> None:
    Secrets({"ann": "one", "bob": "two: three"}).judge(Hello((4,), said.as_message()))


@pytest.mark.parametrize(
    "message", [None, "", "k", "k\0ann", "k\0ann\0two", "k\0ann\0", "k\0eve\0one", "k\0\0", "ann\0one"]
)
def test_nobody_else_is_let_in(message: str | None) -> None:
    with pytest.raises(LogProtocolError, match="the peer's user or secret is wrong"):
        Secrets({"ann": "one", "bob": "two"}).judge(Hello((4,), message))


def test_without_secrets_everybody_is_let_in() -> None:
    Secrets().judge(Hello((4,), None))


def secret_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "secrets"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_file_of_secrets_is_read_and_its_secrets_are_never_shown(tmp_path: Path) -> None:
    path = secret_file(tmp_path, "# who may connect\n\nann:correct horse\n bob:battery:staple \n")
    try:
        assert read_secrets(path) == {"ann": "correct horse", "bob": "battery:staple"}
        assert redacted("said correct horse") != "said correct horse"
    finally:
        forget()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(SettingsError, match="may be read or changed by others: chmod 600"):
        read_secrets(secret_file(tmp_path, "ann:one\n", mode))


@pytest.mark.parametrize(
    ("text", "said"), [("", "no line user:secret"), ("ann\n", "line 1: is not"), ("a:b\n:x\n", "line 2: is not")]
)
def test_a_file_with_something_else_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        read_secrets(secret_file(tmp_path, text))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_secrets(tmp_path / "none")
