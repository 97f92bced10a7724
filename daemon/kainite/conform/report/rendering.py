"""Renders the report of ``kainite conform``: rows on the terminal, JSON, and JUnit's XML."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kainite.base.redaction import redacted_words, shown_command
from kainite.base.words import counted
from kainite.conform.exchange.transcript import printable
from kainite.conform.report.findings import CaseResult, CaseVerdict, ConformReport

_STYLES: Final = {
    CaseVerdict.SKIPPED: "dim",
    CaseVerdict.PASS: "green",
    CaseVerdict.NOTE: "cyan",
    CaseVerdict.SLOW: "yellow",
    CaseVerdict.FAIL: "bold red",
}
_NAME_WIDTH: Final = 24


def row(result: CaseResult) -> Table:
    """Returns the row of one case."""
    table = Table.grid(padding=(0, 2), expand=False)
    table.add_column(width=len(CaseVerdict.SKIPPED.name))
    table.add_column(width=_NAME_WIDTH, no_wrap=True)
    table.add_column(width=8, justify="right")
    table.add_column(overflow="fold")
    verdict = Text(result.verdict.name, _STYLES[result.verdict])
    seconds = "" if result.slowest is None else f"{result.slowest:.3f} s"
    table.add_row(verdict, result.name, seconds, _said(result))
    return table


def print_exchange(console: Console, result: CaseResult) -> None:
    """Prints what was said in a case that failed."""
    for line in result.exchange:
        console.print(Text(f"          {line}", "dim"), soft_wrap=True)


def summary(report: ConformReport) -> str:
    """Returns the last line: the command, and how many cases have each verdict."""
    counts = [f"{number} {verdict.name}" for verdict in reversed(CaseVerdict) if (number := report.count(verdict))]
    return f"{_command(report)}: {report.dialect}, {counted(len(report.results), 'case')}: {', '.join(counts)}"


def _command(report: ConformReport) -> str:
    return shown_command(report.command)


def as_json(report: ConformReport, *, strict: bool) -> dict[str, Any]:
    """Returns the whole report as JSON; times are in seconds."""
    return {
        "command": list(redacted_words(report.command)),
        "dialect": report.dialect.value,
        "ok": report.ok(strict=strict),
        "cases": [_json_case(result) for result in report.results],
    }


def write_junit(report: ConformReport, path: Path, *, strict: bool) -> None:
    """Writes JUnit's XML, which every CI server shows, with one test case for each case.

    A case that fails has the exchange in its ``failure``; notes and slow answers are failures only when ``strict``.
    """
    suite = ElementTree.Element("testsuite", {"name": f"kainite conform: {printable(_command(report))}"})
    for result in report.results:
        _add_case(suite, report, result, strict=strict)
    suite.set("tests", str(len(report.results)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", "0")
    suite.set("skipped", str(report.count(CaseVerdict.SKIPPED)))
    suite.set("time", f"{sum(result.took for result in report.results):.3f}")
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _add_case(suite: ElementTree.Element, report: ConformReport, result: CaseResult, *, strict: bool) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        {"classname": f"kainite.conform.{report.dialect.value}", "name": result.name, "time": f"{result.took:.3f}"},
    )
    if result.verdict is CaseVerdict.SKIPPED:
        ElementTree.SubElement(case, "skipped", {"message": result.text})
    elif result.verdict > (CaseVerdict.PASS if strict else CaseVerdict.SLOW):
        failure = ElementTree.SubElement(case, "failure", {"type": result.verdict.name, "message": result.text})
        failure.text = "\n".join((result.title, result.text, *result.exchange))
    elif result.text:
        ElementTree.SubElement(case, "system-out").text = f"{result.verdict.name}: {result.text}"


def _json_case(result: CaseResult) -> dict[str, Any]:
    return {
        "name": result.name,
        "title": result.title,
        "verdict": result.verdict.name,
        "findings": [{"verdict": finding.verdict.name, "text": finding.text} for finding in result.findings],
        "slowest": result.slowest,
        "took": result.took,
        "exchange": list(result.exchange),
    }


def _said(result: CaseResult) -> Text:
    return Text(result.title) if not result.text else Text(f"{result.title} — ").append(result.text)
