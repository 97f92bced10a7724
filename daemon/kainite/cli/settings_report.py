"""The report of ``kainite run --check``: what a settings file sets, which keys are unknown, and what is wrong.

The table and the JSON are two views of one :class:`SettingsReport`. Passwords are never shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table
from rich.text import Text

from kainite.base.errors import SettingsError
from kainite.child.program_lookup import find
from kainite.cli.terminal import say_json, stdout
from kainite.settings import Examination, examine
from kainite.settings.exposure.finding import Exposure
from kainite.settings.exposure.listing import exposures
from kainite.settings.key import SettingKey
from kainite.settings.keys.table import KEYS, default_text
from kainite.settings.keys.without_effect import why_without_effect

_DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class SettingLine:
    """One key: its value as it would be written, and where the value comes from (the file, elsewhere, the default)."""

    key: str
    value: str
    origin: str
    meaning: str


@dataclass(frozen=True, slots=True)
class SettingsReport:
    """The contents of the report; ``settings`` leaves out the keys that could not be understood.

    ``warnings`` may surprise users of the Java daemon and are logged at the start too; ``notes`` are only shown here.
    ``exposed`` is what the settings expose to others; it is empty while something is wrong.
    """

    file: str
    ok: bool
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    unknown: tuple[tuple[str, str | None], ...]
    ignored: tuple[tuple[str, str], ...]
    settings: tuple[SettingLine, ...]
    exposed: tuple[Exposure, ...] = ()


def show(path: Path | None, options: Sequence[str], *, as_json: bool, everything: bool) -> int:
    """Prints the report on a file, the environment and the command line's settings; returns the exit code.

    Args:
        path: the file, if there is one.
        options: the command line's settings.
        as_json: print JSON, which has all keys.
        everything: show the keys that are not set, too.

    Raises:
        SettingsError: the file cannot be read, or an option is unknown.
    """
    return say(report(examine(path, options=options)), as_json=as_json, everything=everything)


def say(found: SettingsReport, *, as_json: bool, everything: bool) -> int:
    """Prints a report; returns the exit code."""
    if as_json:
        say_json(asdict(found), indent=True)
    else:
        _print(found, everything=everything)
    return 0 if found.ok else 1


def report(found: Examination) -> SettingsReport:
    """Returns the report on an examined file."""
    problems = (*found.problems, *_program_not_found(found))
    return SettingsReport(
        file=found.place,
        ok=not problems,
        problems=problems,
        warnings=found.warnings,
        notes=found.notes,
        unknown=tuple((entry.key, entry.nearest) for entry in found.unknown),
        ignored=tuple((key, why_without_effect(key) or "") for key in found.ignored),
        settings=tuple(_line(found, key) for key in KEYS if key.name not in found.wrong),
        exposed=exposures(found.settings) if found.settings is not None else (),
    )


def _line(found: Examination, key: SettingKey) -> SettingLine:
    place = key.section, key.field
    if place not in found.values:
        return SettingLine(key.name, default_text(key), _DEFAULT, key.meaning)
    return SettingLine(key.name, key.kind.show(found.values[place]), found.origins[key.name], key.meaning)


def _program_not_found(found: Examination) -> tuple[str, ...]:
    """Looks for the child's program on this host, as a start would; returns the problem when there is none."""
    command = found.values.get(("child", "command"))
    try:
        if command is not None:
            find(command, "executableName")
    except SettingsError as error:
        return (str(error),)
    return ()


def _print(found: SettingsReport, *, everything: bool) -> None:
    console = stdout()
    shown = [line for line in found.settings if everything or line.origin != _DEFAULT]
    console.print(_settings_table(shown))
    if left := len(found.settings) - len(shown):
        console.print(Text(f"{left} more keys have their defaults: --all shows them", style="dim"))
    for key, reason in found.ignored:
        console.print(Text(f"without effect: {key}: {reason}", style="dim"), soft_wrap=True)
    for key, nearest in found.unknown:
        hint = f", did you mean {nearest}?" if nearest else ""
        console.print(Text(f"unknown: {key}{hint}", style="yellow"), soft_wrap=True)
    for note in found.notes:
        console.print(Text(f"note: {note}", style="dim"), soft_wrap=True)
    for warning in found.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)
    for exposure in found.exposed:
        console.print(Text(f"exposed: {exposure}", style="yellow"), soft_wrap=True)
    for problem in found.problems:
        console.print(Text(f"wrong: {problem}", style="bold red"), soft_wrap=True)
    verdict = "nothing is wrong" if found.ok else f"{len(found.problems)} to mend"
    console.print(Text(f"{found.file}: {verdict}", style="green" if found.ok else "bold red"))


def _settings_table(shown: Sequence[SettingLine]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("key", "value", "from", "meaning"):
        table.add_column(column, overflow="fold")
    for line in shown:
        style = "dim" if line.origin == _DEFAULT else ""
        table.add_row(*(Text(cell, style=style) for cell in (line.key, line.value, line.origin, line.meaning)))
    return table
