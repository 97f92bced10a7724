"""Extractors, sound and broken, under ``kainite conform --stage extract``."""

from __future__ import annotations

import pytest

from kainite.conform import CaseVerdict, ConformOptions, ConformReport, run
from kainite.conform.cases.case import Stage
from kainite.conform.exchange.child_run import AnswerLimits
from kainite.settings import ChildProtocol, ChildSettings, ExtractMode, ExtractOffsets, ExtractSettings

CYCLES = r"""while read -r request; do printf '{"uow":"T"}\n%s\0' "$1"; done"""


def tried(
    script: str, offsets: ExtractOffsets | None = None, *, argument: str = "", timeout: float = 20.0
) -> ConformReport:
    mode = ExtractMode.PLAIN if offsets is None else ExtractMode.CYCLIC
    extract = ExtractSettings(mode=mode, offsets=offsets or ExtractOffsets.EXTRACTOR)
    child = ChildSettings(("sh", "-c", script, "sh", argument), protocol=ChildProtocol.MARKERS)
    limits = AnswerLimits(timeout=timeout, slow=60.0)
    return run(ConformOptions(child, limits=limits, stage=Stage.EXTRACT, extract=extract))


def noted(report: ConformReport) -> dict[str, tuple[CaseVerdict, str]]:
    """Returns verdict and text of each case above PASS."""
    return {one.name: (one.verdict, one.text) for one in report.results if one.verdict > CaseVerdict.PASS}


@pytest.mark.parametrize(
    ("script", "offsets", "argument"),
    [
        ("printf 'a\\nb\\n'", None, ""),
        (CYCLES, ExtractOffsets.EXTRACTOR, ""),
        (CYCLES, ExtractOffsets.TIME, ""),
        (CYCLES, ExtractOffsets.KAINITE, '{"offset":1}\n'),
    ],
)
def test_a_sound_extractor_passes(script: str, offsets: ExtractOffsets | None, argument: str) -> None:
    report = tried(script, offsets, argument=argument)
    assert noted(report) == {}
    assert len(report.results) == (1 if offsets is None else 4)


@pytest.mark.parametrize(
    ("script", "offsets", "case", "verdict", "said"),
    [
        ("printf a", None, "run", CaseVerdict.NOTE, "ended within a message: 1 bytes"),
        ("echo a; echo no such table >&2; exit 3", None, "run", CaseVerdict.FAIL, "ended with status 3 in its run"),
        ("echo a; exec sleep 100", None, "run", CaseVerdict.FAIL, "had not ended, and was silent for 2 s"),
        (CYCLES, ExtractOffsets.KAINITE, "one-cycle", CaseVerdict.FAIL, 'without a new {"offset":X}'),
        ("while read -r x; do echo a; done", ExtractOffsets.TIME, "one-cycle", CaseVerdict.FAIL, "no EOP in 2 s"),
        (
            "read -r x; printf '\\0\\0'; cat",
            ExtractOffsets.TIME,
            "one-cycle",
            CaseVerdict.FAIL,
            "no cycle was requested",
        ),
        ("exit 4", ExtractOffsets.TIME, "one-cycle", CaseVerdict.FAIL, "ended with status 4 in a cycle"),
        ("exit 75", ExtractOffsets.TIME, "one-cycle", CaseVerdict.FAIL, "status 75 says that the source is away"),
        ("exit 75", None, "run", CaseVerdict.FAIL, "status 75 says that the source is away"),
    ],
)
def test_a_fault_of_an_extractor_is_found(
    script: str, offsets: ExtractOffsets | None, case: str, verdict: CaseVerdict, said: str
) -> None:
    found = noted(tried(script, offsets, timeout=2.0))
    assert found[case][0] is verdict
    assert said in found[case][1]
