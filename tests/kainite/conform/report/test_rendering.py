"""A report as rows, JSON and JUnit: each verdict is shown, and whatever a child said stays readable."""

from __future__ import annotations

import tempfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from kainite.conform import CaseResult, CaseVerdict, ConformReport, Finding
from kainite.conform.exchange.transcript import shown
from kainite.conform.report.rendering import as_json, print_exchange, row, summary, write_junit
from kainite.settings import ChildProtocol

PASSED = CaseResult("one-record", "one record", (), slowest=0.25, took=0.5)
NOTED = CaseResult("odd-text", "odd text", (Finding(CaseVerdict.NOTE, "refused it"),))
FAILED = CaseResult("large", "a large call", (Finding(CaseVerdict.FAIL, "died"),), exchange=("→ {}", "· ended"))
REPORT = ConformReport(("perl", "x.pl"), ChildProtocol.JSON_LINES, (PASSED, NOTED, FAILED))


def test_the_summary_counts_the_verdicts_the_worst_first() -> None:
    assert summary(REPORT) == "perl x.pl: json-lines, 3 cases: 1 FAIL, 1 NOTE, 1 PASS"


def test_a_row_has_verdict_name_slowest_answer_and_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(width=120)
    for result in REPORT.results:
        console.print(row(result))
    print_exchange(console, FAILED)

    passed, noted, failed, *exchange = (" ".join(line.split()) for line in capsys.readouterr().out.splitlines())
    assert passed == "PASS one-record 0.250 s one record"
    assert noted == "NOTE odd-text odd text — refused it"
    assert failed == "FAIL large a large call — died"
    assert exchange == ["→ {}", "· ended"]


def test_json_has_every_case_with_its_findings() -> None:
    document = as_json(REPORT, strict=False)

    assert (document["command"], document["dialect"], document["ok"]) == (["perl", "x.pl"], "json-lines", False)
    assert [(case["name"], case["verdict"], case["slowest"]) for case in document["cases"]] == [
        ("one-record", "PASS", 0.25),
        ("odd-text", "NOTE", None),
        ("large", "FAIL", None),
    ]
    assert document["cases"][2]["findings"] == [{"verdict": "FAIL", "text": "died"}]
    assert document["cases"][2]["exchange"] == ["→ {}", "· ended"]


@pytest.mark.parametrize(("strict", "failures"), [(False, ["large"]), (True, ["odd-text", "large"])])
def test_in_junit_a_note_is_a_failure_only_when_strict(strict: bool, failures: list[str], tmp_path: Path) -> None:
    write_junit(REPORT, tmp_path / "report.xml", strict=strict)

    suite = ElementTree.parse(tmp_path / "report.xml").getroot()[0]
    assert [case.get("name") for case in suite if case.find("failure") is not None] == failures
    assert (suite.get("tests"), suite.get("time")) == ("3", "0.500")


@given(st.text(max_size=200), st.sampled_from(CaseVerdict))
def test_junit_is_xml_whatever_a_child_said(said: str, verdict: CaseVerdict) -> None:
    result = CaseResult(
        "one-record", "one record", (Finding(verdict, said),), exchange=(shown(said.encode("utf-8", "replace")),)
    )
    report = ConformReport(("python", said), ChildProtocol.JSON_LINES, (result,))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.xml"
        write_junit(report, path, strict=True)

        suite = ElementTree.parse(path).getroot()[0]

    assert suite.get("failures") == str(int(verdict > CaseVerdict.PASS))
    assert suite.get("skipped") == str(int(verdict is CaseVerdict.SKIPPED))
