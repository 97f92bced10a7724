from __future__ import annotations

from rich.console import Console

from kainite.uow.precedence.levels import Reference, TableGraph, levels
from kainite.uow.precedence.rendering import as_mermaid, as_table

GRAPH = TableGraph(
    ("boss", "country", 'cust"omer', "[red]odd[/red]"),
    (
        Reference("country", 'cust"omer'),
        Reference("boss", "boss"),
        Reference("country", "boss", deferrable=True),
        Reference("country", "boss", deferrable=True, name="twice"),
    ),
)


def test_mermaid_has_a_box_a_level_and_dots_what_can_be_deferred() -> None:
    assert as_mermaid(GRAPH, levels(GRAPH)).splitlines() == [
        "flowchart TD",
        '  subgraph level1["precedence 1"]',
        '    t0["[red]odd[/red]"]',
        '    t1["country"]',
        "  end",
        '  subgraph level2["precedence 2"]',
        '    t2["boss"]',
        '    t3["cust&quot;omer"]',
        "  end",
        "  t2 --> t2",
        "  t1 -.-> t2",
        "  t1 --> t3",
    ]


def test_the_table_shows_parents_and_children_by_level() -> None:
    console = Console(width=120, color_system=None)
    with console.capture() as captured:
        console.print(as_table(GRAPH, levels(GRAPH)))
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in captured.get().splitlines() if "│" in line]
    assert cells == [
        ["1", "[red]odd[/red]", "", ""],
        ["1", "country", "", 'boss, cust"omer'],
        ["2", "boss", "boss, country", "boss"],
        ["2", 'cust"omer', "country", ""],
    ]
