"""Makes one table of the chief figures of several recorded runs, a column a commit. Pure.

Where a benchmark has a baseline, the figure is the ratio to it in the same run, so that runs on different machines can
be compared. Other figures hold for the machine of their run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from runs.figures import figures

NOT_MEASURED: Final = "–"


@dataclass(frozen=True, slots=True)
class Headline:
    """One row of the table.

    Attributes:
        title: what the row tells, with its unit.
        benchmark: the benchmark's name.
        figure: the figure's path in the benchmark's JSON (``runs.figures``).
        baseline: the path of the figure by which it is divided; None where it stands for itself.
    """

    title: str
    benchmark: str
    figure: str
    baseline: str | None = None


_CHILDREN: Final = "runs/kainite run 8"
_BACKLOG: Final = "0/per_second"

HEADLINES: Final = (
    Headline(
        "a million records to 8 children: processor s of the daemon", "child_pipe", f"{_CHILDREN}/cpu_per_million"
    ),
    Headline("the same: times less than boto3 and json", "child_pipe", f"{_CHILDREN}/than_boto3/cpu_per_million"),
    Headline("the same: the daemon's peak MB", "child_pipe", f"{_CHILDREN}/peak_mb"),
    Headline("TPC-B, whole way, units/s", "whole_way", f"Kainite TPC-B {_BACKLOG}"),
    *(
        Headline(f"TPC-B, whole way : {name}", "whole_way", f"Kainite TPC-B {_BACKLOG}", f"{key} TPC-B {_BACKLOG}")
        for name, key in (
            ("`CREATE SUBSCRIPTION`", "CREATE SUBSCRIPTION"),
            ("`foreachBatch`", "foreachBatch, upserts by table"),
        )
    ),
    *(
        Headline(f"TPC-B, µs of processor time a unit: {kind}", "whole_way", f"Kainite TPC-B 0/cpu_us/{kind}")
        for kind in ("daemon", "record processors", "apply driver", "Spark's Python workers", "Spark's JVM")
    ),
    Headline("TPC-B at 100 units/s: median s to the commit", "whole_way", "Kainite TPC-B 100/latency/0"),
    Headline("TPC-B at 100 units/s: 99 % within s", "whole_way", "Kainite TPC-B 100/latency/1"),
    Headline("orders into PostgreSQL : hand-tuned statements", "apply", "ratio_to_A"),
    Headline("`kainite status` with 100,000 units in the log, s", "commands", "status/seconds"),
    Headline("`kainite --help`, s", "commands", "--help/seconds"),
)


def headline_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Returns recorded runs as a table in Markdown, a column each, in the order of their commits.

    Rows that no run has are left out.

    Args:
        runs: the contents of files that ``make bench`` wrote. Of runs of one commit the later one
            counts for the benchmarks that it has.
    """
    columns = _by_commit(runs)
    rows = [(each.title, [_cell(each, found) for found in columns.values()]) for each in HEADLINES]
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    lines += [f"| {title} | {' | '.join(cells)} |" for title, cells in rows if set(cells) != {NOT_MEASURED}]
    return "\n".join(lines)


def _by_commit(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Mapping[str, float]]]:
    """Returns the figures of each benchmark by the commit's title, the oldest commit first."""
    found: dict[str, dict[str, Mapping[str, float]]] = {}
    for run in sorted(runs, key=lambda one: (one["commit"]["date"], one["began"])):
        column = found.setdefault(_title(run), {})
        column.update((name, figures(measured["found"])) for name, measured in run["benchmarks"].items())
    return found


def _title(run: Mapping[str, Any]) -> str:
    commit = run["commit"]
    return f"{commit['date'][:10]} `{commit['revision'][:8]}`{' changed' if commit['changed'] else ''}"


def _cell(headline: Headline, found: Mapping[str, Mapping[str, float]]) -> str:
    measured = found.get(headline.benchmark, {})
    value = measured.get(headline.figure)
    if value is None:
        return NOT_MEASURED
    if headline.baseline is None:
        return _shown(value)
    baseline = measured.get(headline.baseline)
    return _shown(value / baseline) if baseline else NOT_MEASURED


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
