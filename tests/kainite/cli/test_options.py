"""The settings file and single settings, as each command takes them from its command line."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kainite.cli.options import file_and_options, properties_option, settings_anywhere

FILE = Path("app.properties")


@pytest.mark.parametrize(
    ("option", "rest", "expected"),
    [
        (FILE, (), (FILE, ())),
        (None, ("app.properties",), (FILE, ())),
        (FILE, ("--stream-name", "orders"), (FILE, ("--streamName=orders",))),
        (None, ("app.properties", "--stream-name=orders"), (FILE, ("--streamName=orders",))),
        (None, ("--stream-name", "orders"), (None, ("--streamName=orders",))),
    ],
)
def test_a_file_stands_behind_its_option_or_alone(
    option: Path | None, rest: tuple[str, ...], expected: tuple[Path | None, tuple[str, ...]]
) -> None:
    assert file_and_options(option, rest) == expected


@pytest.mark.parametrize(
    ("option", "rest", "complaint"),
    [
        (FILE, ("other.properties",), "two settings files are named"),
        (None, ("a", "b"), "two settings files are named"),
        (None, (), "name one settings file: -p FILE"),
        (FILE, ("--stream-nam", "orders"), "stream-nam"),
        (FILE, ("--stream-name",), "--stream-name"),
    ],
)
def test_wrong_usage_is_said(
    option: Path | None, rest: tuple[str, ...], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STREAM_NAME", "KAINITE_STREAM_NAME"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(click.UsageError, match=complaint):
        file_and_options(option, rest)


def test_the_environment_stands_in_for_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAINITE_STREAM_NAME", "orders")

    assert file_and_options(None, ()) == (None, ())


def test_the_decorators_hand_over_what_was_written() -> None:
    @click.command(context_settings={"ignore_unknown_options": True})
    @settings_anywhere
    def anywhere(option: Path | None, rest: tuple[str, ...]) -> None:
        click.echo(f"{option} {rest}")

    @click.command()
    @properties_option
    def one(properties: Path) -> None:
        click.echo(f"{properties}")

    run = CliRunner().invoke
    assert run(anywhere, ["-p", "x", "--key", "value"]).stdout == "x ('--key', 'value')\n"
    assert run(one, ["--properties-file", "x"]).stdout == "x\n"
    assert "Missing option '-p'" in run(one, []).stderr
