"""The list of findings as it is printed."""

from __future__ import annotations

import pytest

from kainite.replicate.findings import fine, warning, wrong
from kainite_spark.load.findings_table import print_findings


def test_each_finding_has_its_mark_and_what_mends_it(capsys: pytest.CaptureFixture[str]) -> None:
    print_findings([fine("slot", "is there"), warning("WAL", "no limit"), wrong("role", "may not", "ALTER ROLE")])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["✓", "slot", "is", "there"], ["!", "WAL", "no", "limit"], ["✗", "role", "may", "not"],
                     ["→", "ALTER", "ROLE"]]  # fmt: skip
