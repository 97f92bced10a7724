"""Who waits for locks in a target: what is shown of statements, kinds that cannot be asked, the command."""

from __future__ import annotations

import pytest

from kainite.base.errors import SettingsError
from kainite.targets import lock_waits
from kainite.targets.lock_waits import first_words, read_lock_waits


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("UPDATE item SET v = 'it''s a secret', w = 17 WHERE id = 4", "UPDATE item SET v = …, w = … WHERE id = …"),
        ("SELECT $1, col2 FROM t\n  WHERE a = E'x\\'y' AND b=1.5e3", "SELECT $…, col2 FROM t WHERE a = E… AND b=…"),
        ("SELECT $tag$ secret $tag$ FROM t", "SELECT … FROM t"),
        ("INSERT INTO t VALUES ('cut off in the mid", "INSERT INTO t VALUES (…"),
        ("SELECT $$ cut off", "SELECT …"),
        ("", ""),
    ],
)
def test_a_statement_is_shown_without_its_values(statement: str, shown: str) -> None:
    assert first_words(statement) == shown


def test_a_long_statement_is_cut() -> None:
    assert len(first_words("SELECT a, " * 100)) == lock_waits.MOST_WORDS


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("sqlite:///x.db", "a sqlite target has no locks on rows: one connection writes at a time"),
        ("exec:load", "a exec target cannot be asked who waits for locks"),
    ],
)
def test_a_kind_that_cannot_be_asked_says_so(target: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        read_lock_waits(target)
