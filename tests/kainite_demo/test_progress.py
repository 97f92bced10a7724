"""The display's texts, on a terminal and as plain lines."""

from __future__ import annotations

import io

from rich.console import Console

from kainite_demo.progress import Display, Figures

FIGURES = Figures(
    seconds=12,
    captured=1200,
    records=5000,
    collected=1000,
    dispatched=999,
    applied=900,
    behind=1.26,
    snapshots=40,
    kills=0,
)


def test_plain_lines_show_every_stage_and_do_not_flood() -> None:
    out = io.StringIO()
    display = Display(Console(file=out, width=200))
    with display.figures():
        for _ in range(100):
            display.show(FIGURES)
    (line,) = out.getvalue().splitlines()
    stages = ["captured 1,200", "records 5,000", "collected 1,000", "dispatched 999", "applied 900"]
    assert all(stage in line for stage in [*stages, "lag 300 (1.3 s)", "snapshots 40"])


def test_a_terminal_gets_a_table_and_is_left_clean() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80)
    display = Display(console)
    with display.figures():
        display.show(FIGURES)
        display.say("killing the daemon")
    assert "1,200" in out.getvalue()
    assert "killing the daemon" in out.getvalue()
    assert out.getvalue().rstrip().endswith(("\x1b[?25h", "\x1b[2K"))
