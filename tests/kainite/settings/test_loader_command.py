"""The command of ``target=exec:COMMAND``."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.settings.loader_command import EXEC, command_words, loader_command


@given(st.lists(st.text(min_size=1), min_size=1))
def test_quoted_words_come_back_as_they_were(words: list[str]) -> None:
    assert loader_command(EXEC + shlex.join(words)) == tuple(words)


def test_a_database_is_no_command() -> None:
    assert loader_command("sqlite:///exec:load") is None


@pytest.mark.parametrize(("line", "says"), [("load 'it", "cannot be split"), ("  ", "names no program")])
def test_a_line_without_words_is_refused_and_not_repeated(line: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as raised:
        command_words(line)
    assert "load" not in str(raised.value)
