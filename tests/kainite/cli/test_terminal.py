"""Every way to a terminal hides secrets and shows control characters as escapes."""

from __future__ import annotations

import json

import pytest

from kainite.base.redaction import learn
from kainite.cli import terminal

SECRET = "geheim/x"


@pytest.fixture(autouse=True)
def _secret() -> None:
    learn([SECRET])


def test_a_line_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.say(f"pass {SECRET} \x1b[2J")
    terminal.say("to stderr \x07", err=True)

    out, err = capsys.readouterr()
    assert SECRET not in out
    assert out.startswith("pass ")
    assert out.count("\n") == 1
    assert "\x1b" not in out
    assert err.startswith("to stderr ")
    assert "\x07" not in err


@pytest.mark.parametrize("indent", [False, True])
def test_json_is_on_one_line_unless_asked_otherwise(indent: bool, capsys: pytest.CaptureFixture[str]) -> None:
    terminal.say_json({"a": [1, "\x1b"], SECRET: SECRET}, indent=indent)

    out = capsys.readouterr().out
    assert SECRET not in out
    assert "\x1b" not in out
    assert (out.count("\n") == 1) is not indent
    assert json.loads(out)["a"] == [1, "\x1b"]
