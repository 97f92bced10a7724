"""Prints the list of what a look at a source and a target has found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.table import Table
from rich.text import Text

from kainite.cli.terminal import stdout
from kainite.replicate.findings import CheckFinding, CheckVerdict

_MARKS: Final = {
    CheckVerdict.OK: ("✓", "green"),
    CheckVerdict.WARNING: ("!", "yellow"),
    CheckVerdict.WRONG: ("✗", "bold red"),
}


def print_findings(findings: Iterable[CheckFinding]) -> None:
    """Prints findings as a table, each with what mends it."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for finding in findings:
        mark, style = _MARKS[finding.verdict]
        mend = f"\n→ {finding.mend}" if finding.mend else ""
        table.add_row(Text(mark, style), Text(finding.about), Text(f"{finding.found}{mend}"))
    stdout().print(table)
