"""What this host lacks: programs, open files; what its settings say and expose."""

from __future__ import annotations

import os
import subprocess
import sys

from support.doctored import DoctoredFile


def test_a_program_that_is_missing(doctored: DoctoredFile) -> None:
    doctored.write(executableName="/nowhere/processor")
    [finding] = doctored.bad()
    assert (finding.area, finding.state) == ("programs", "wrong")
    assert "there is no program '/nowhere/processor'" in finding.what


def test_a_loader_that_is_missing(doctored: DoctoredFile) -> None:
    doctored.write(target="exec:/nowhere/loader")
    assert any("target: there is no program" in finding.what for finding in doctored.bad(["apply"]))


def test_a_key_that_nobody_knows(doctored: DoctoredFile) -> None:
    doctored.write(failoverTimeMilis="1000")
    [finding] = doctored.bad()
    assert (finding.area, finding.state, finding.remedy) == ("settings", "warning", "say failoverTimeMillis")


def test_a_secret_that_others_may_read(doctored: DoctoredFile) -> None:
    doctored.write(extractorName="echo --password=hunter2", extractorMode="plain")
    found = [finding for finding in doctored.bad() if finding.area == "secrets"]
    assert found
    assert all(finding.state == "warning" and finding.remedy for finding in found)


def test_too_few_open_files(doctored: DoctoredFile) -> None:
    code = "from pathlib import Path; from kainite.settings import load; from kainite.doctor.host import *; import sys;"
    code += "print(*look_at_file_limit(load(Path(sys.argv[1]))))"
    line = f'ulimit -n 200; exec "{sys.executable}" -c "$CODE" "{doctored.path}"'
    shown = subprocess.run(
        ["sh", "-c", line], env={**os.environ, "CODE": code}, capture_output=True, text=True, check=True
    )
    assert "200 files may be open" in shown.stdout
    assert "LimitNOFILE=" in shown.stdout
