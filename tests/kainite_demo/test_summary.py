"""The summary's text and its JSON."""

from __future__ import annotations

import io
from dataclasses import replace

import orjson
from rich.console import Console

from kainite_demo.summary import RunSummary


def test_the_summary_is_the_same_for_people_and_programs() -> None:
    summary = RunSummary(
        transactions=3000,
        records=15000,
        rows_compared=2_003_220,
        offered_per_second=101.4,
        units_per_second=97.6,
        bottleneck="the extractor",
        latency_p50=1.254,
        latency_p99=None,
        latency_units=2990,
        conflicts=17,
        job_instances=2,
        snapshots_checked=500,
        kills={"daemon": 2, "apply job": 1},
        seconds=61.2,
        duty_starts={"log": 3, "apply": 4},
    )
    shown = text(summary)
    said = [
        *("equal, row by row", "3,000", "15,000", "2,003,220", "98", "of 101 offered", "1.25 s / –", "17"),
        *("the extractor fell behind: the kills, or a rate beyond this machine", "3  kills survived", "61 s"),
    ]
    assert [figure for figure in said if figure not in shown] == []
    assert "daemon 2, apply job 1" in shown
    assert "7  starts of the fleet's duties (log 3, apply 4)" in shown
    assert orjson.loads(orjson.dumps(summary.as_json()))["kills"] == {"daemon": 2, "apply job": 1}
    assert "beyond this machine: the extractor did not keep up" in text(replace(summary, kills={}))


def text(summary: RunSummary) -> str:
    out = io.StringIO()
    Console(file=out, width=120).print(summary.as_text())
    return out.getvalue()
