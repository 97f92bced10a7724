"""What a comparison says of what it has found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.replicate.known_rows import Explanation
from kainite.replicate.row_merge import RowDifference
from kainite.replicate.stop_ledger import UnresolvedUnit
from kainite.replicate.verify_report import RowReport, ShownValues, TableReport, VerifyReport

TABLE = TableReport("public.t", 10, 10)
ROW = RowReport(
    "public.t", {"id": "5"}, RowDifference.CHANGED, Explanation.NONE, 1, ("a", "b"), ("secret", None), ("other", "x")
)
UNIT = UnresolvedUnit(4, "pg-1-0/10", "failed", None, ("t",), (), frozenset(), None, False)


def report(*tables: TableReport, left_out: dict[str, str] | None = None) -> VerifyReport:
    return VerifyReport("2026-11-23T10:00:00+00:00", "0/50", tables, (ROW,), left_out or {}, (UNIT,), 2.0, 12, 900)


@pytest.mark.parametrize(
    ("found", "verdict", "passed"),
    [
        (report(TABLE), "equal", True),
        (report(TABLE, replace(TABLE, known=2)), "known", True),
        (report(replace(TABLE, known=2, unsure=1)), "unsure", False),
        (report(replace(TABLE, unsure=1), left_out={"public.u": "why"}), "incomplete", False),
        (report(replace(TABLE, missing=1), left_out={"public.u": "why"}), "different", False),
    ],
)
def test_the_worst_that_holds_is_the_verdict(found: VerifyReport, verdict: str, passed: bool) -> None:
    assert (found.verdict, found.passed) == (verdict, passed)


def test_values_are_shown_as_they_are_wanted() -> None:
    found = report(replace(TABLE, changed=1))
    full, masked, none = ("\n".join(found.lines(values)) for values in ShownValues)
    assert "not applied: unit pg-1-0/10 (failed), of t" in full
    assert "changed: public.t id=5\n    a: source 'secret' | target 'other'\n    b: source NULL | target 'x'\n" in full
    assert full.endswith("different: 1 table, 10 rows as of 0/50, 1 differ, in 2.0 s")
    assert "secret" not in masked
    assert "a: source '6 characters, sha256 2bb80d53' | target '5 characters" in masked
    assert "a: source '…' | target '…'" in none
    assert found.as_json(ShownValues.NONE)["rows"][0]["target"] == ("…", "…")
