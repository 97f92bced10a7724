"""Errors, exit codes and lazy imports of a command group."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kainite.base.errors import SettingsError
from kainite.cli.lazy_group import LazyCommand, LazyGroup, extra_of
from kainite.cli.main import main


def kainite(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kainite", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def test_an_error_is_one_line_and_exit_code_one(tmp_path: Path) -> None:
    ended = kainite("run", str(tmp_path / "nowhere.properties"))

    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.startswith("kainite: settings file ")
    assert ended.stderr.count("\n") == 1


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    ended = kainite("--debug", "run", str(tmp_path / "nowhere.properties"))

    assert ended.returncode == 1
    assert "Traceback" in ended.stderr
    assert "SettingsError" in ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [("run",), ("run", "a.properties", "-p", "b.properties"), ("run", "a.properties", "--json"), ("rnu",), ("--nope",)],
)
def test_wrong_usage_is_exit_code_two(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, list(arguments))

    assert result.exit_code == 2
    assert "Usage: " in result.stderr


@pytest.mark.parametrize("command", ["run", "apply", "extract"])
@pytest.mark.parametrize("option", ["--log-format=json", "--debug"])
def test_an_option_that_goes_before_the_command_says_so_behind_it(command: str, option: str) -> None:
    result = CliRunner().invoke(main, [command, "-p", "a.properties", option])

    assert result.exit_code == 2
    assert f"{option.partition('=')[0]} goes before the command" in result.stderr


def ending(command: click.Command, *options: str) -> tuple[int, str]:
    @click.group(cls=LazyGroup, lazy={})
    @click.option("--debug", is_flag=True)
    def group(debug: bool) -> None:
        pass

    group.add_command(command, "it")
    result = CliRunner().invoke(group, [*options, "it"])
    return result.exit_code, result.stderr


def raising(error: BaseException) -> click.Command:
    @click.command()
    def command() -> None:
        raise error

    return command


def test_ctrl_c_is_exit_code_130_and_says_nothing() -> None:
    assert ending(raising(KeyboardInterrupt())) == (130, "")


def test_a_question_that_no_terminal_answers_says_how_to_go_without() -> None:
    @click.command()
    def command() -> None:
        click.confirm("Go on?", abort=True)

    code, said = ending(command)

    assert code == 1
    assert "kainite: nothing was done" in said
    assert "--yes" in said
    assert "Aborted" not in said


def test_a_message_of_several_lines_becomes_one() -> None:
    assert ending(raising(SettingsError("a\n  b"))) == (1, "kainite: a b\n")


def test_a_defect_is_one_line_with_its_type() -> None:
    code, line = ending(raising(RuntimeError("boom")))

    assert code == 1
    assert line.startswith("kainite: RuntimeError: boom")


def test_what_a_command_returns_is_its_exit_code() -> None:
    @click.command()
    def command() -> int:
        return 7

    assert ending(command) == (7, "")


@pytest.mark.parametrize("module", ["pyspark.sql", "pyarrow", "psycopg", "amazon_kclpy.v3", "moto"])
def test_a_missing_package_names_the_extra_that_brings_it(module: str) -> None:
    error = ModuleNotFoundError(f"No module named {module!r}", name=module)

    assert ending(raising(error)) == (
        1,
        f"kainite: {module} is not installed: pip install 'kainite[{extra_of(module)}]'\n",
    )


def test_a_command_is_imported_only_when_it_is_called() -> None:
    broken = {"broken": LazyCommand("no_such_module:command", "Its line.")}

    @click.group(cls=LazyGroup, lazy=broken)
    def group() -> None:
        pass

    assert "Its line." in CliRunner().invoke(group, ["--help"]).stdout
    assert CliRunner().invoke(group, ["broken"]).exit_code == 1


def test_further_commands_are_looked_for_only_where_the_first_ones_lack_the_name() -> None:
    looked: list[str] = []

    def more() -> dict[str, LazyCommand]:
        looked.append("more")
        return {"later": LazyCommand("kainite.cli.status:status", "later")}

    group = LazyGroup("g", lazy={"first": LazyCommand("kainite.cli.log:log", "first")}, more=more)
    context = click.Context(group)
    assert group.get_command(context, "first") is not None
    assert looked == []
    assert group.get_command(context, "later") is not None
    assert group.list_commands(context) == ["first", "later"]
    assert looked == ["more"]
