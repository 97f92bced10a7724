"""``kainite doctor``, as a person and as a script call it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kainite.cli.main import main
from support.doctored import DoctoredFile


@pytest.fixture
def doctored(moto_endpoint: str, dynamodb: Any, kinesis: Any, tmp_path: Path) -> DoctoredFile:
    file = DoctoredFile(moto_endpoint, dynamodb, kinesis, tmp_path)
    file.make()
    return file


def doctor(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["doctor", "-p", str(path), *arguments])


def test_all_is_well(doctored: DoctoredFile) -> None:
    shown = doctor(doctored.path, "--limit", "60")
    assert shown.exit_code == 0, shown.output
    assert "✗" not in shown.stdout
    assert shown.stdout.splitlines()[0] == "settings"
    assert "nothing is wrong, 0 warnings" in shown.stdout.splitlines()[-1]


def test_one_thing_is_wrong(doctored: DoctoredFile) -> None:
    doctored.write(executableName="/nowhere/processor")
    shown = doctor(doctored.path, "--limit", "60")
    assert shown.exit_code == 1
    [line] = [line for line in shown.stdout.splitlines() if "✗" in line]
    assert line.startswith("  ✗ executableName: there is no program")
    assert " → " in line


def test_json(doctored: DoctoredFile) -> None:
    doctored.write(metricsPort="9400", metricsHost="192.0.2.1")
    shown = doctor(doctored.path, "--for", "run", "--limit", "60", "--json")
    answer = json.loads(shown.stdout)
    assert (shown.exit_code, answer["ok"], answer["file"]) == (1, False, str(doctored.path))
    [bad] = [finding for finding in answer["findings"] if finding["state"] == "wrong"]
    assert bad["area"] == "ports"
    assert set(bad) == {"area", "what", "state", "remedy"}


def test_an_endpoint_that_hangs_is_one_of_the_findings(doctored: DoctoredFile) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and never answers
        doctored.write(kinesisEndpoint=f"http://127.0.0.1:{silent.getsockname()[1]}")
        command = [sys.executable, "-m", "kainite", "doctor", "-p", str(doctored.path), "--for", "run", "--limit", "3"]
        shown = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=100, check=False)
    assert shown.returncode == 1
    found = {finding["what"]: finding["state"] for finding in json.loads(shown.stdout)["findings"]}
    assert found[f"stream {doctored.name}: no answer within 3 s"] == "wrong"
    assert any(what.endswith("can be used") and state == "well" for what, state in found.items())


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    shown = doctor(tmp_path / "no.properties")
    assert shown.exit_code == 1
    assert shown.stdout == ""
    assert "no.properties" in shown.stderr


def test_an_empty_file_lacks_keys_and_is_not_asked_about_further(tmp_path: Path) -> None:
    empty = tmp_path / "empty.properties"
    empty.touch()
    shown = doctor(empty)
    assert shown.exit_code == 1
    assert "✗ applicationName is missing" in shown.stdout
    assert "✗ streamName is missing" in shown.stdout
    assert "can be used" not in shown.stdout
    assert "ParamValidationError" not in shown.stdout


def test_what_a_command_needs_must_be_set(doctored: DoctoredFile) -> None:
    doctored.write(executableName="", extractorName="echo one", target="")
    shown = doctor(doctored.path, "--for", "apply")
    assert shown.exit_code == 1
    assert "target is missing" in shown.stdout
