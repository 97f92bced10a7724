"""A module that is started and told its work answers with a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.replicate.own_process import OwnProcess
from support.waiting import eventually


@pytest.mark.parametrize(("code", "line"), [("print(sys.stdin.read()[::-1])", b"krow\n"), ("sys.exit(1)", b"")])
def test_the_first_line_is_the_answer(code: str, line: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = OwnProcess(module(tmp_path, monkeypatch, code))
    assert [process.first_line(b"work") for _ in range(2)] == [line] * 2


def test_a_process_that_was_begun_is_the_one_that_works_and_one_without_work_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = f"open({str(tmp_path / 'loaded')!r}, 'a').write('x')\n"
    process = OwnProcess(module(tmp_path, monkeypatch, f"{loaded}print(sys.stdin.read())"))
    process.begin()
    process.begin()
    eventually((tmp_path / "loaded").exists)
    assert process.first_line(b"work") == b"work\n"
    assert (tmp_path / "loaded").read_text() == "x"
    process.begin()
    process.close()
    assert (tmp_path / "loaded").read_text() == "xx"
    process.close()


def module(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> str:
    (folder / "a_worker.py").write_text(f"import sys\n{code}\n")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return "a_worker"
