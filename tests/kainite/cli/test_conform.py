"""``kainite conform`` as a command: rows, JSON, JUnit, exit codes, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import psutil
import pytest
from click.testing import CliRunner, Result

from kainite.cli.main import main

BROKEN = Path(__file__).parents[2] / "children" / "broken" / "json_lines.py"
LIMIT = 60.0
CASES = ("--case", "initialize", "--case", "one-record", "--case", "many-records")
PATIENT = ("--timeout", "60", "--slow", "60")


def child(fault: str) -> tuple[str, ...]:
    return ("--", sys.executable, "-S", str(BROKEN), fault)


def conform(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["conform", *PATIENT, *arguments])


def test_all_well_is_0_with_a_row_a_case() -> None:
    ended = conform(*CASES, *child("none"))

    assert ended.exit_code == 0
    rows = [line.split()[:2] for line in ended.output.splitlines() if line.startswith("PASS")]
    assert rows == [["PASS", "initialize"], ["PASS", "one-record"], ["PASS", "many-records"]]
    assert ended.output.splitlines()[-1].endswith("none: json-lines, 3 cases: 3 PASS")


def test_a_failure_is_1_with_the_exchange() -> None:
    ended = conform(*CASES, *child("wrong action"))

    assert ended.exit_code == 1
    assert '← {"action": "status", "responseFor": "process"}' in ended.output
    assert "1 FAIL, 1 PASS, 1 SKIPPED" in ended.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "say which COMMAND to try"),
        (("--case", "nonsense", *child("none")), "there is no case 'nonsense'"),
        (("--", "no-such-program-anywhere"), "there is no program 'no-such-program-anywhere'"),
        (("--records", "/nonexistent/samples", *child("none")), "cannot read /nonexistent/samples"),
        (("--junit", "/nonexistent/report.xml", *child("none")), "there is no folder /nonexistent"),
        (("--dialect", "morse", *child("none")), "'morse' is not one of"),
    ],
)
def test_wrong_usage_is_2(arguments: tuple[str, ...], said: str) -> None:
    ended = conform(*arguments)

    assert ended.exit_code == 2
    assert said in ended.output


def test_strict_takes_a_note_for_a_failure() -> None:
    arguments = ("--case", "end-of-input", *child("ends badly"))

    assert conform(*arguments).exit_code == 0
    assert conform("--strict", *arguments).exit_code == 1


def test_json_and_junit_tell_the_same(tmp_path: Path) -> None:
    junit = tmp_path / "report.xml"

    ended = conform("--json", "--junit", str(junit), *CASES, *child("dies"))

    report = json.loads(ended.output)
    assert (ended.exit_code, report["ok"]) == (1, False)
    assert [case["verdict"] for case in report["cases"]] == ["PASS", "FAIL", "SKIPPED"]
    suite = ElementTree.parse(junit).getroot().find("testsuite")
    assert suite is not None
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["3", "1", "0", "1"]
    failure = suite.find("testcase[@name='one-record']/failure")
    assert failure is not None
    assert "no such table: orders" in failure.attrib["message"]
    assert all(line in (failure.text or "") for line in report["cases"][1]["exchange"])
    assert suite.find("testcase[@name='many-records']/skipped") is not None


def test_the_command_and_the_dialect_may_come_from_a_settings_file(tmp_path: Path) -> None:
    settings = tmp_path / "app.properties"
    settings.write_text(
        f"executableName = {sys.executable} -S {BROKEN.parent / 'markers.py'} none\n"
        "childProtocol = markers\nstreamName = orders\napplicationName = orders\n"
        "AwsCredentialsProvider = DefaultCredentialsProvider\n"
    )

    ended = conform("-p", str(settings), "--batching", "supervisor", "--case", "two-batches")

    assert ended.exit_code == 0, ended.output
    assert "none: markers, 1 case: 1 PASS" in ended.output


def _heed_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_and_its_kin_end_the_child_too(tmp_path: Path, number: signal.Signals) -> None:
    told = tmp_path / "told"
    os.mkfifo(told)
    command = [sys.executable, "-m", "kainite", "conform", "--timeout", "600"]
    hanging = ["--", "bash", "-c", f"echo $$ > {told}; exec sleep 600"]
    # A test run in the background ignores SIGINT, and so would its children.
    with subprocess.Popen([*command, *hanging], stdout=subprocess.DEVNULL, preexec_fn=_heed_signals) as process:
        try:
            child_pid = int(told.read_text())
            process.send_signal(number)
            assert process.wait(LIMIT) == 130
            assert not psutil.pid_exists(child_pid)
        finally:
            process.kill()


def test_a_transform_for_the_next_stage_may_answer_with_any_bytes(tmp_path: Path) -> None:
    settings = tmp_path / "stage.properties"
    program = f"{sys.executable} -S {BROKEN.with_name('markers.py')} reverses"
    settings.write_text(f"childProtocol = markers\noutput = stream:next\nexecutableName = {program}\n")

    result = conform("-p", str(settings), "--case", "one-message", "--case", "several-messages")

    assert result.exit_code == 0, result.output
