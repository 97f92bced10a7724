"""The search for a child's program before it is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import SettingsError
from kainite.child.program_lookup import find_program
from kainite.settings import ChildSettings


def test_a_program_on_the_path_and_one_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "processor"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert find_program(ChildSettings(("./bin/processor", "x"))).resolve() == program
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_program(ChildSettings(("processor",))) == program


def test_a_missing_program_is_told_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=r"executableName: there is no program 'no-such-program' on the PATH"):
        find_program(ChildSettings(("no-such-program",)))
    with pytest.raises(SettingsError, match=rf"no program './processor', seen from {tmp_path}"):
        find_program(ChildSettings(("./processor",)))
    with pytest.raises(SettingsError, match=rf"there is no file 'processor.py' to run, seen from {tmp_path}"):
        find_program(ChildSettings(("sh", "processor.py", "--verbose")))
    (tmp_path / "processor").write_text("print()")
    with pytest.raises(SettingsError, match=r"'./processor' is not executable: chmod \+x"):
        find_program(ChildSettings(("./processor",)))
