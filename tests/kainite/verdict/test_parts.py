"""What the processes that were asked tell of the source; the other parts are in the table of test_judging.py."""

from __future__ import annotations

from kainite.extract.offsets.place import SourceLag
from kainite.extract.status import ExtractReport
from kainite.verdict.facts import DaemonFacts, SourceFacts
from kainite.verdict.parts import daemon_checks, source_check, source_of
from support.verdicts import NOW_MS, daemon


def extraction(**fields: object) -> DaemonFacts:
    report = ExtractReport(opened=True, quiet=7.0, quiet_limit=5.0, **fields)  # type: ignore[arg-type]
    return DaemonFacts("h:2", report.as_json())


def test_the_extractions_own_words_are_taken() -> None:
    lag = SourceLag((NOW_MS - 3_000) * 1_000_000)
    found = source_of((daemon(), extraction(lag=lag)), NOW_MS)
    assert (found.newest, found.heard) == (3.0, 7.0)
    assert found.problems == ("the extractor has answered nothing for 7.0 s",)
    assert source_check(found).cause == "the extractor has answered nothing for 7.0 s"


def test_without_an_extraction_nothing_is_known_of_the_source() -> None:
    assert source_of((daemon(), DaemonFacts("h:1", error="refused")), NOW_MS) == SourceFacts()
    assert source_of((extraction(),), NOW_MS).newest is None


def test_an_extraction_is_told_once() -> None:
    assert list(daemon_checks((extraction(),))) == []
