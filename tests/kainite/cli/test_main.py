"""The command line's own words, called as from a shell."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kainite import __version__
from kainite.cli.main import main

SLOW_TO_IMPORT = ("boto3", "botocore", "rich", "pyspark", "psycopg", "moto")


def leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for inner in command.list_commands(context):
        found = command.get_command(context, inner)
        assert found is not None
        yield from leaves(found, f"{name} {inner}")


def groups(command: click.Command, name: str) -> Iterator[tuple[str, click.Group]]:
    if isinstance(command, click.Group):
        yield name, command
        context = click.Context(command)
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from groups(found, f"{name} {inner}")


def kainite(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kainite", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def test_help_imports_nothing_slow() -> None:
    script = f"""
import sys
from kainite.cli.main import main
main(["--help"], standalone_mode=False)
sys.exit(" ".join(name for name in {SLOW_TO_IMPORT!r} if name in sys.modules))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)

    assert ended.stderr == "\n"
    assert "precedence" in ended.stdout


def test_every_command_shows_examples() -> None:
    without = [name for name, command in leaves(main, "kainite") if "kainite " not in (command.help or "")]

    assert without == []


def test_no_group_cuts_the_line_of_a_command() -> None:
    for name, group in groups(main, "kainite"):
        assert "..." not in group.get_help(click.Context(group)).partition("Commands:")[2], name


def test_a_misspelled_command_is_told_the_nearest_one() -> None:
    for arguments in (["replicat", "load"], ["replicate", "laod"], ["log", "sttus"], ["fleet", "dutys"]):
        result = CliRunner().invoke(main, arguments)

        assert result.exit_code == 2
        assert "Did you mean " in result.stderr
    assert "Did you mean" not in CliRunner().invoke(main, ["xyz"]).stderr


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["log", "--help"], ["new-processor", "--list"]])
def test_a_full_disk_behind_standard_output_is_one_line(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "kainite", *arguments],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip

    assert ended.returncode == 1
    assert ended.stderr.startswith("kainite: standard output, or a file, cannot be written: No space left on device")
    assert ended.stderr.count("\n") == 1


def test_all_commands_name_the_settings_file_alike() -> None:
    spellings = {
        tuple(option.opts)
        for _, command in leaves(main, "kainite")
        for option in command.params
        if isinstance(option, click.Option) and "-p" in option.opts
    }

    assert spellings == {("-p", "--properties-file")}


def test_every_entry_point_has_a_help_line_of_its_own() -> None:
    lines = CliRunner().invoke(main, ["--help"]).stdout

    for entry in entry_points(group="kainite.commands"):
        assert entry.name in lines
        assert entry.value not in lines


def test_version() -> None:
    assert kainite("--version").stdout.strip() == f"kainite, version {__version__}"
