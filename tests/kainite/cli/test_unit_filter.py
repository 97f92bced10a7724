"""Units that the options select: of each kind one that is given must fit."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from kainite.cli.unit_filter import UnitFilter, unit_filter
from kainite.log.views.unit_table import LogRow

ROW = LogRow("T", status="failed", signature=["orders(1)", "sales.line(1, 2)"], cause="violates check Positive")


@pytest.mark.parametrize(
    ("wanted", "taken"),
    [
        (UnitFilter(), True),
        (UnitFilter(statuses=("failed",)), True),
        (UnitFilter(statuses=("committed", "blocked")), False),
        (UnitFilter(tables=("sales.line",)), True),
        (UnitFilter(tables=("line",)), False),
        (UnitFilter(causes=("positive",)), True),
        (UnitFilter(causes=("negative", "POSITIVE")), True),
        (UnitFilter(causes=("negative",)), False),
        (UnitFilter(("failed",), ("orders",), ("check",)), True),
        (UnitFilter(("failed",), ("customers",), ("check",)), False),
    ],
)
def test_each_kind_that_is_given_must_fit(wanted: UnitFilter, taken: bool) -> None:
    assert wanted.takes(ROW) is taken


def test_a_unit_without_a_cause_has_no_piece_of_one() -> None:
    assert not UnitFilter(causes=("x",)).takes(LogRow("T"))


@click.command()
@unit_filter(("failed", "blocked"))
@click.argument("rest", nargs=-1)
def command(wanted: UnitFilter, rest: tuple[str, ...]) -> None:
    click.echo(repr((wanted.statuses, wanted.tables, wanted.causes, bool(wanted), rest)))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "((), (), (), False, ())"),
        (
            ["--status", "failed", "--table", "a", "--table", "b", "--cause", "c", "x"],
            "(('failed',), ('a', 'b'), ('c',), True, ('x',))",
        ),
    ],
)
def test_the_options_make_a_filter(words: list[str], said: str) -> None:
    assert CliRunner().invoke(command, words).stdout == said + "\n"


def test_a_status_that_there_is_not_is_refused() -> None:
    assert "'lost' is not one of 'failed', 'blocked'" in CliRunner().invoke(command, ["--status", "lost"]).stderr
