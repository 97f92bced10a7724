"""Shows a run's progress: a table that is redrawn on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table

_LINE_EVERY = 5.0


@dataclass(frozen=True, slots=True)
class Figures:
    """Units of work by stage; a stage's number is never above that of the stage before it.

    ``records`` counts the records that the daemon has brought to the log. ``behind`` is the age of the
    oldest unit that is not applied, in seconds. ``snapshots`` counts looks at the target without a torn transaction.
    """

    seconds: float
    captured: int
    records: int
    collected: int
    dispatched: int
    applied: int
    behind: float
    snapshots: int
    kills: int

    def stages(self) -> list[tuple[str, str]]:
        return [
            ("captured", f"{self.captured:,}"),
            ("records", f"{self.records:,}"),
            ("collected", f"{self.collected:,}"),
            ("dispatched", f"{self.dispatched:,}"),
            ("applied", f"{self.applied:,}"),
            ("lag", f"{self.captured - self.applied:,} ({self.behind:.1f} s)"),
            ("snapshots", f"{self.snapshots:,}"),
        ]


class Display:
    """Prints each step of the run, and the figures while the load runs."""

    def __init__(self, console: Console, target: str = "PostgreSQL") -> None:
        self._console = console
        self._target = target
        self._live: Live | None = None
        self._next_line = 0.0

    def say(self, text: str) -> None:
        self._console.print(text, highlight=False)

    @contextmanager
    def figures(self) -> Iterator[None]:
        """Prepares the display for :meth:`show`, which may be called inside the ``with``."""
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def show(self, figures: Figures) -> None:
        if self._live is not None:
            self._live.update(_table(figures, self._target), refresh=True)
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _LINE_EVERY
            self.say(f"{figures.seconds:4.0f} s  " + "  ".join(f"{name} {value}" for name, value in figures.stages()))


def _table(figures: Figures, target: str) -> Panel:
    table = Table.grid(padding=(0, 2))
    for _ in figures.stages():
        table.add_column(justify="right")
    table.add_row(*(f"[dim]{name}[/dim]" for name, _ in figures.stages()))
    table.add_row(*(f"[bold]{value}[/bold]" for _, value in figures.stages()))
    killed = f" · {figures.kills} kills" if figures.kills else ""
    return Panel(
        table, title=f"pgbench → Kinesis → log → Spark → {target} · {figures.seconds:.0f} s{killed}", expand=False
    )
