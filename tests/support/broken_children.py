"""The programs of ``tests/children/broken``: each breaks its protocol in the way that its argument names."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from kainite.base.markers import Batching
from kainite.conform import CaseResult, ConformOptions, run
from kainite.conform.exchange.child_run import AnswerLimits
from kainite.settings import ChildProtocol, ChildSettings, MarkersSettings

BROKEN = Path(__file__).parents[1] / "children" / "broken"
SILENT = AnswerLimits(timeout=4.0, slow=60.0)
PATIENT = AnswerLimits(timeout=60.0, slow=60.0, hold=20.0)
SILENTLY = {
    "no flush", "no line end", "reads in blocks", "hangs", "ignores the end of its input", "no EOP", "EOB needs EOM",
    "pretty-printed", "byte-order mark", "ignores EOB", "silent to an empty batch", "silent to a bad message",
}  # fmt: skip
"""The faults of children that are only found by a limit, which is short for them."""


def tried(child: ChildSettings, case: str, fault: str = "") -> CaseResult:
    """Takes a child through one case; ``fault`` is what is wrong with the child."""
    limits = SILENT if fault in SILENTLY else PATIENT
    report = run(ConformOptions(child, limits=limits, large=1_000_000, only=(case,)))
    assert [result.name for result in report.results] == [case]
    return report.results[0]


def json_lines_child(fault: str) -> ChildSettings:
    return ChildSettings((sys.executable, "-S", str(BROKEN / "json_lines.py"), fault))


def markers_child(fault: str, batching: str = "single") -> ChildSettings:
    command = (sys.executable, "-S", str(BROKEN / "markers.py"), fault)
    return ChildSettings(
        command, protocol=ChildProtocol.MARKERS, markers=replace(MarkersSettings(), batching=Batching(batching))
    )
