"""Writes the table of ``docs/metrics.md`` from the code's metrics; a test compares the page with :func:`render`."""

from __future__ import annotations

from pathlib import Path

from kainite.observe.metric import METRICS, Metric, MetricKind

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"
BEGIN = "<!-- Written by `make docs` from daemon/kainite/observe/metric.py; do not edit this table. -->\n"
END = "<!-- Here ends what is written by `make docs`. -->\n"

_KINDS = {MetricKind.COUNTER: "counter", MetricKind.GAUGE: "gauge", MetricKind.TIMING: "histogram"}


def render(page: str) -> str:
    """Returns the page with a fresh table."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{_table()}{END}{after}"


def _table() -> str:
    head = ["| Prometheus | | CloudWatch | operation | dimensions | level | meaning |", "|---|---|---|---|---|---|---|"]
    return "\n".join(["", *head, *map(_row, METRICS), "", ""])


def _row(metric: Metric) -> str:
    carried = "ShardId" if metric.per_shard else "WorkerIdentifier" if metric.per_worker else ""
    kind = _KINDS[metric.kind] + (", by shard" if metric.per_shard else "")
    cells = (
        f"`{metric.series}`", kind, f"`{metric.name}`", f"`{metric.operation}`", carried, metric.level.value,
        metric.help,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
