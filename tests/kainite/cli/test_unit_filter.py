"""The options that select units; which units they select is in tests/kainite/log/state/test_unit_filter.py."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from kainite.cli.unit_filter import unit_filter
from kainite.log.state.unit_filter import UnitFilter


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


def test_times_are_told_in_seconds_or_as_dates() -> None:
    found = CliRunner().invoke(times, ["--since", "2026-11-23T08:00:00Z", "--until", "1795420801.5", "--like", "T-*"])
    assert found.stdout == "1795420800000 1795420801500 ('T-*',)\n"
    assert "'soon' is not a time such as" in CliRunner().invoke(times, ["--since", "soon"]).stderr


@click.command()
@unit_filter(("failed",))
def times(wanted: UnitFilter) -> None:
    click.echo(f"{wanted.since_ms} {wanted.until_ms} {wanted.names}")
