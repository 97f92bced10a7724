"""Sums up a run, for a person and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The figures of a run in which nothing differed.

    Attributes:
        transactions: committed in the source and applied to the target.
        records: change records that were captured for them.
        rows_compared: in all tables, after the load, source against target.
        offered_per_second: transactions that pgbench made, over the time that it ran.
        units_per_second: transactions over the time from the first commit to the last application.
        bottleneck: the part that did not keep up with the rate, because of the machine or of kills.
        latency_p50, latency_p99: seconds from a unit's commit in the source to its commit in the target.
        latency_units: number of units behind the two latencies.
        conflicts: units that touched a row of an earlier one that was still in progress.
        job_instances: of the apply job, that applied something.
        snapshots_checked: of the target, in which TPC-B's invariant held.
        kills: number by process; SIGKILL, each followed by a restart.
        duty_starts: how often each of the fleet's duties was ready; empty without a fleet.
        seconds: of the whole run.
    """

    transactions: int
    records: int
    rows_compared: int
    offered_per_second: float
    units_per_second: float
    bottleneck: str | None
    latency_p50: float | None
    latency_p99: float | None
    latency_units: int
    conflicts: int
    job_instances: int
    snapshots_checked: int
    kills: dict[str, int]
    seconds: float
    duty_starts: dict[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    def as_text(self) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        table.add_column(justify="right", style="bold")
        table.add_column()
        for figure, meaning in self._lines():
            table.add_row(figure, meaning)
        verdict = Text("source and target are equal, row by row", style="bold green")
        return Group(verdict, table)

    def _lines(self) -> list[tuple[str, str]]:
        killed, started = _counted(self.kills), _counted(self.duty_starts)
        return [
            (f"{self.transactions:,}", "transactions, each applied once"),
            (f"{self.records:,}", "change records captured"),
            (f"{self.rows_compared:,}", "rows compared"),
            (f"{self.units_per_second:,.0f}", f"units of work a second, of {self.offered_per_second:,.0f} offered"),
            *([("", self._behind())] if self.bottleneck else []),
            (
                f"{_seconds(self.latency_p50)} / {_seconds(self.latency_p99)}",
                f"end-to-end latency p50 / p99, of {self.latency_units:,} units",
            ),
            (f"{self.conflicts:,}", "conflicts found"),
            (f"{self.job_instances}", "job instances used"),
            (f"{self.snapshots_checked:,}", "snapshots of the target with TPC-B's sums equal"),
            *([(f"{sum(self.kills.values())}", f"kills survived ({killed})")] if self.kills else []),
            *([(f"{sum(self.duty_starts.values())}", f"starts of the fleet's duties ({started})")] if started else []),
            (f"{self.seconds:.0f} s", "in all"),
        ]

    def _behind(self) -> str:
        if self.kills:
            return f"{self.bottleneck} fell behind: the kills, or a rate beyond this machine"
        return f"the rate is beyond this machine: {self.bottleneck} did not keep up"


def _counted(times: dict[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in times.items())


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} s"
