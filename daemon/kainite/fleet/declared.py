"""The duties that the settings declare: ``fleetDuties`` with their defaults, and a TOML file for all others.

::

    [orders]
    kind = "extract"                    # log, extract, apply, console, verify or program
    properties = "orders.properties"    # that of Kainite's own kinds; without it the worker's own
    affinity = ["source-host"]

    [report]
    kind = "program"
    command = ["python", "report.py"]
    ready = "listening"                 # it runs when a line of its output has this; without it after readyAfter
    restart = "on-failure"              # always, on-failure or never

Times are in seconds: ``readyAfter``, ``startTimeout``, ``stopGrace``, ``backoff``, ``backoffMax``, ``window``;
``tries`` and ``weight`` are numbers.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kainite.base.errors import SettingsError
from kainite.fleet.model.records import Duty, DutyKind, Restart, Work
from kainite.fleet.programs.commands import READY
from kainite.settings import FleetSettings

MOST = 1_000_000_000
MOST_BYTES = 16_000
"""Of a duty's words together: every worker reads them at every look."""
NAME = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
START_TIMEOUT_S = {DutyKind.APPLY: 300.0}
_FIELDS = {
    re.sub(r"_(.)", lambda found: found[1].upper(), field.name): field.name for field in dataclasses.fields(Work)
}
_KEYS = {field: key for key, field in _FIELDS.items()}
RESTARTS = tuple(restart for restart in Restart if restart is not Restart.UNKNOWN)
_NUMBERS = frozenset({"weight", "ready_after", "start_timeout", "stop_grace", "backoff", "backoff_max", "window"})
_LISTS = frozenset({"command", "affinity"})


def declared_duties(fleet: FleetSettings) -> tuple[Duty, ...]:
    """Returns the duties that the settings declare.

    Raises:
        SettingsError: the file cannot be read, or a duty in it is wrong.
    """
    found = {kind: Duty(kind, work_of(kind, {"kind": kind}), declared=True) for kind in fleet.duties}
    if fleet.duties_file is not None:
        found |= {duty.name: duty for duty in _in_file(fleet.duties_file)}
    return tuple(found.values())


def work_of(name: str, given: Mapping[str, Any]) -> Work:
    """Returns the work of a duty.

    Args:
        name: the duty's, for messages.
        given: the duty's fields, as the file has them.

    Raises:
        SettingsError: something is unknown, missing or wrong.
    """
    if not NAME.fullmatch(name):
        raise SettingsError(f"duty {name!r}: a name has up to 100 letters, digits and _ . : -")
    fields = {_FIELDS[key]: value for key, value in given.items() if key in _FIELDS}
    if strangers := sorted(set(given) - set(_FIELDS)):
        raise SettingsError(f"duty {name!r}: there is no {strangers[0]!r}; there are {', '.join(sorted(_FIELDS))}")
    problem = next(filter(None, (_problem(_KEYS[field], field, value) for field, value in fields.items())), None)
    problem = problem or _problem_of_kind(fields.get("kind", DutyKind.PROGRAM), fields)
    if problem is not None:
        raise SettingsError(f"duty {name!r}: {problem}")
    work = Work(**_with_defaults(fields))
    if not work.ready and work.ready_after >= work.start_timeout:
        raise SettingsError(
            f"duty {name!r}: readyAfter, {work.ready_after:g} s, must be less than startTimeout,"
            f" {work.start_timeout:g} s: the program would be killed before it is ready"
        )
    return work


def _with_defaults(fields: dict[str, Any]) -> dict[str, Any]:
    kind = fields.get("kind", DutyKind.PROGRAM)
    defaults: dict[str, Any] = {"ready": READY.get(kind, "")}
    if kind in START_TIMEOUT_S:
        defaults["start_timeout"] = START_TIMEOUT_S[kind]
    taken: dict[str, Any] = {field: tuple(value) if field in _LISTS else value for field, value in fields.items()}
    taken |= {field: float(value) for field, value in taken.items() if field in _NUMBERS}
    if "restart" in taken:
        taken["restart"] = Restart(taken["restart"])
    return defaults | taken


def _in_file(path: Path) -> Iterator[Duty]:
    try:
        declared = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"fleetDutiesFile {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"fleetDutiesFile {path}: {error}") from error
    for name, given in declared.items():
        if not isinstance(given, dict):
            raise SettingsError(f"fleetDutiesFile {path}: {name!r} stands outside of a duty's table, such as [report]")
        yield Duty(name, work_of(name, given), declared=True)


def _problem(key: str, field: str, value: Any) -> str | None:
    """Returns the fault of a value; None for a sound value."""
    if field in _LISTS:
        right = isinstance(value, list) and all(isinstance(word, str) for word in value)
        return _problem_of_words(key, value) if right else f'{key} must be a list of texts, such as ["python", "x.py"]'
    if field in _NUMBERS or field == "tries":
        whole = field == "tries"
        right = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool) and 0 < value <= MOST
        return None if right else f"{key} must be a {'whole ' if whole else ''}number above 0, at most {MOST}"
    if not isinstance(value, str):
        return f"{key} must be a text"
    if (wrong := _problem_of_words(key, [value])) is not None:
        return wrong
    if field == "restart" and value not in RESTARTS:
        return f"restart must be one of {', '.join(RESTARTS)}"
    return f"kind must be one of {', '.join(DutyKind)}" if field == "kind" and value not in list(DutyKind) else None


def _problem_of_kind(kind: str, fields: Mapping[str, Any]) -> str | None:
    if kind == DutyKind.PROGRAM and not fields.get("command"):
        return "command is missing: the words of the program's command line"
    if kind == DutyKind.PROGRAM and fields.get("properties"):
        return "properties are for Kainite's own kinds; a program has its settings in its command"
    return (
        f"a command is for programs; the kind {kind} has its own"
        if kind != DutyKind.PROGRAM and fields.get("command")
        else None
    )


def _problem_of_words(key: str, words: list[str]) -> str | None:
    whole = "".join(words)
    if "\0" in whole or any("\ud800" <= letter <= "\udfff" for letter in whole):
        return f"{key} must be text without null characters"
    return f"{key} must have at most {MOST_BYTES} bytes" if len(whole.encode()) > MOST_BYTES else None
