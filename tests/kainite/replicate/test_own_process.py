"""A module that is started and told its work answers with a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.replicate.own_process import first_line_of


@pytest.mark.parametrize(("code", "line"), [("print(sys.stdin.read()[::-1])", b"krow\n"), ("sys.exit(1)", b"")])
def test_the_first_line_is_the_answer(code: str, line: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_worker.py").write_text(f"import sys\n{code}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert first_line_of("a_worker", b"work") == line
