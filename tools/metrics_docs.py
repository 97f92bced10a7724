"""Writes the tables of ``docs/metrics.md`` from the code's metrics and from the alert rules.

A test compares the page with :func:`render`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from kainite.observe.metric import METRICS, Metric, MetricKind

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"
RULES = PAGE.parent / "monitoring" / "prometheus-alerts.yaml"
BEGIN = "<!-- Written by `make docs` from daemon/kainite/observe/metric.py; do not edit this table. -->\n"
BEGIN_ALERTS = "<!-- Written by `make docs` from docs/monitoring/prometheus-alerts.yaml; do not edit this table. -->\n"
END = "<!-- Here ends what is written by `make docs`. -->\n"

_KINDS = {MetricKind.COUNTER: "counter", MetricKind.GAUGE: "gauge", MetricKind.TIMING: "histogram"}


def render(page: str) -> str:
    """Returns the page with fresh tables."""
    return _with(_with(page, BEGIN, _table()), BEGIN_ALERTS, _alerts())


def _with(page: str, begin: str, table: str) -> str:
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(END)
    return f"{before}{begin}{table}{END}{after}"


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


def _alerts() -> str:
    head = ["| alert | severity | after | says |", "|---|---|---|---|"]
    return "\n".join(["", *head, *_alert_rows(), "", ""])


def _alert_rows() -> Iterator[str]:
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]:
        for rule in group["rules"]:
            yield _alert_row(rule)


def _alert_row(rule: Mapping[str, Any]) -> str:
    """Returns the row of a rule; labels stand as their names in capitals, and the value as N."""
    says = re.sub(r"{{ \$labels\.(\w+) }}", lambda label: label[1].upper(), rule["annotations"]["summary"])
    cells = (
        f"`{rule['alert']}`", rule["labels"]["severity"], rule.get("for", ""), re.sub(r"{{ \$value.*? }}B?", "N", says)
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
