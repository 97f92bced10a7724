"""The console that tables are printed on hides secrets before it wraps them, and is plain where nobody looks."""

from __future__ import annotations

import pytest
from rich.table import Table
from rich.text import Text

from kainite.base.redaction import learn
from kainite.cli import terminal

SECRET = "geheim/x"


@pytest.fixture(autouse=True)
def _secret() -> None:
    learn([SECRET])


def test_a_secret_that_would_be_wrapped_is_hidden_in_a_table_too(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("long " + "x" * 300)
    table.add_row(Text(f"{'y ' * 95}{SECRET}"))
    console = terminal.stdout()
    console.print(table)

    out = capsys.readouterr().out
    assert console.width == terminal.WIDTH_OF_A_FILE
    assert SECRET not in out
    assert SECRET[:6] not in out


def test_colours_are_for_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.stdout().print(Text("red", "red"))

    assert capsys.readouterr().out == "red\n"
