"""Kinds of values: what each takes, refuses and shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kainite.base.redaction import redacted_words
from kainite.settings.kinds.values import (
    ValueKind,
    command_line,
    flag,
    http_url,
    millis,
    names,
    show_target,
    target,
    whole,
)

FOLDER = Path("/etc/kainite")


@pytest.mark.parametrize("text", ["true", "TRUE", "yes", "on", "1"])
def test_a_flag_is_true_in_every_spelling_of_kcl(text: str) -> None:
    assert flag().parse(text, FOLDER) is True


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (flag(), "treu"),
        (whole(1, 10), "0"),
        (whole(1, 10), "11"),
        (whole(1), "1.5"),
        (whole(1), "1_000"),
        (whole(1), "١"),
        (whole(1), "9" * 30),
        (millis(50), "-1"),
        (command_line(), "''' x"),
        (http_url(), "localhost:4566"),
        (http_url(), "http://"),
        (http_url(), "ftp://host"),
        (target(), "warehouse"),
        (target(), "oracle://host/db"),
        (target(), "exec:load 'it"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(kind: ValueKind, text: str) -> None:
    with pytest.raises(ValueError) as raised:
        kind.parse(text, FOLDER)
    assert kind.allowed in str(raised.value) or "split" in str(raised.value)


@given(st.integers(0, 10**9))
def test_milliseconds_survive_being_seconds(number: int) -> None:
    assert millis(0).show(millis(0).parse(str(number), FOLDER)) == str(number)


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5))
def test_a_command_reads_back_as_it_is_shown(words: list[str]) -> None:
    assume(redacted_words(words) == tuple(words))
    assert command_line().parse(command_line().show(words), FOLDER) == tuple(words)


def test_names_lose_their_surrounding_space() -> None:
    assert names().parse(" sales , billing,", FOLDER) == ("sales", "billing")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:secret@h:5432/d", "postgresql://u:***@h:5432/d"),
        ("postgresql://u@h:5432/d", "postgresql://u@h:5432/d"),
        ("postgresql://u:a/b@c:d@h/d", "postgresql://u:***@h/d"),
        ("postgresql://h/d?user=u&password=secret", "postgresql://h/d?user=u&password=***"),
        ("sqlite:////x/y.db", "sqlite:////x/y.db"),
        ("exec:load.pl postgresql://u:secret@h/d", "exec:load.pl postgresql://u:***@h/d"),
    ],
)
def test_a_password_is_hidden_wherever_it_stands(url: str, shown: str) -> None:
    assert show_target(url) == shown


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_every_spelling_of_postgresql_reads_as_the_one_that_all_libraries_know(scheme: str) -> None:
    assert target().parse(f"{scheme}://u@h/d", FOLDER) == "postgresql://u@h/d"


@pytest.mark.parametrize("url", ["postgresql+asyncpg://h/d", "oracle://h/d", "sqlite+pysqlite:///x", "sqlite://", "x"])
def test_a_target_that_nothing_here_can_open_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"must be postgresql://"):
        target().parse(url, FOLDER)
