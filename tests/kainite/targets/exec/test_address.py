from __future__ import annotations

from pathlib import Path

import pytest

from kainite.targets.exec.address import ADDRESS


def test_a_command_stays_as_it_is_written() -> None:
    assert ADDRESS.parse("exec:load 'two words'", Path("/etc")) == "exec:load 'two words'"


@pytest.mark.parametrize(
    ("text", "problem"), [("exec:", "names no program"), ("exec:load 'geheimnis", "cannot be split into words")]
)
def test_a_command_line_that_is_none_is_refused_and_not_quoted(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as refused:
        ADDRESS.parse(text, Path("/etc"))
    assert "geheimnis" not in str(refused.value)


def test_its_secrets_are_hidden_and_known_even_where_it_is_refused() -> None:
    assert ADDRESS.show("exec:load --password geheimnis") == "exec:load --password ***"
    assert list(ADDRESS.secrets("exec:load --password geheimnis")) == ["geheimnis"]
    assert "geheimnis" in set(ADDRESS.secrets("exec:load 'x --password geheimnis"))
