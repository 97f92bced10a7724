"""Several targets in one application: which there are, and the settings of each.

``target.NAME = ADDRESS`` names a target in place of ``target``. ``target.NAME.KEY = …`` sets one of
:data:`OF_A_TARGET` for it. What is not set so, holds for all targets. Such keys are read from the file only: neither
the environment nor the command line has a spelling for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from kainite.base.errors import SettingsError
from kainite.settings.assignment import NO_TARGETS, TableAssignment
from kainite.settings.keys.table import DEFAULTS, Values
from kainite.settings.kinds.target_kinds import TARGET_KINDS, address_of, kind_of
from kainite.settings.kinds.values import ValueKind, names, path, target
from kainite.settings.sections.apply import TargetCommit
from kainite.settings.sections.uow import Isolation
from kainite.settings.settings import Settings

PREFIX: Final = "target."
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")
_PATTERN: Final = re.compile(r"[^*]+\*?")


class TargetKey(NamedTuple):
    """A key of one target: what may be written, and the place in the settings that it fills for that target."""

    kind: ValueKind
    section: str
    field: str


OF_A_TARGET: Final[Mapping[str, TargetKey]] = {
    "": TargetKey(target(), "apply", "target"),
    "tables": TargetKey(names(), "", "tables"),
    "schemas": TargetKey(names(), "apply", "schemas"),
    "catalogueFile": TargetKey(path(), "uow", "catalogue_file"),
}
"""The keys of a target by name; the empty name is its address."""

NEEDS: Final = "the settings file has several targets"


def target_key(spelling: str) -> tuple[str, str] | None:
    """Returns a target's name and the key, of ``target.NAME`` or ``target.NAME.KEY``; None for no such key."""
    if not spelling.startswith(PREFIX):
        return None
    name, _, key = spelling.removeprefix(PREFIX).partition(".")
    return (name, key) if _NAME.fullmatch(name) and key in OF_A_TARGET else None


def parsed_of_targets(texts: Mapping[str, str], folder: Path) -> tuple[dict[str, Values], list[str]]:
    """Returns what a file sets for single targets, by the target's name, and what is wrong with it.

    Args:
        texts: the file's keys and texts; what is no key of a target is passed over.
        folder: the file's folder.
    """
    found: dict[str, Values] = {}
    wrong: list[str] = []
    for spelling, text in texts.items():
        if (named := target_key(spelling)) is None:
            continue
        name, key = named
        entry = OF_A_TARGET[key]
        try:
            found.setdefault(name, {})[entry.section, entry.field] = entry.kind.parse(text, folder)
        except ValueError as error:
            wrong.append(f"{spelling}: {error}")
    return found, wrong


def problems(of_targets: Mapping[str, Values], values: Values) -> Iterator[str]:
    """Yields what contradicts itself.

    Args:
        of_targets: what is set for single targets.
        values: what is set for all.
    """
    yield from _wrong_patterns("targetTables", values.get(("apply", "tables"), ()))
    commit = (DEFAULTS | values)["apply", "commit"]
    if not of_targets:
        if commit is not TargetCommit.EACH:
            yield f"targetCommit={commit} is about several targets, and the settings file has no target.NAME"
        return
    if commit is not TargetCommit.EACH:
        yield from _unable(of_targets, commit)
    if commit is TargetCommit.TOGETHER:
        yield from _same(of_targets)
    for place, key, own_key in (
        (("apply", "target"), "target", "target.NAME"),
        (("uow", "catalogue_file"), "catalogueFile", "target.NAME.catalogueFile"),
        (("apply", "tables"), "targetTables", "target.NAME.tables"),
    ):
        if place in values:
            yield f"{key} and target.NAME: of several targets each has its own, {own_key}"
    if (DEFAULTS | values)["uow", "isolation"] is not Isolation.SERIALIZE:
        yield "target.NAME needs uowIsolation=serialize: only then the log notes which tables a unit touches"
    owners: dict[str, str] = {}
    for name, own in of_targets.items():
        if ("apply", "target") not in own:
            yield f"target.{name}.…: target.{name} is not set"
        elif kind_of(own["apply", "target"]).catalogue is None and ("uow", "catalogue_file") not in own:
            yield f"target.{name} cannot be asked for its tables: set target.{name}.catalogueFile"
        patterns: tuple[str, ...] = own.get(("", "tables"), ())
        yield from _wrong_patterns(f"target.{name}.tables", patterns)
        for pattern in patterns or ("",):
            if (other := owners.setdefault(pattern, name)) != name:
                what = f"{pattern} is of target.{other}, too" if pattern else f"target.{other} has no tables either"
                yield f"target.{name}.tables: {what}; one target at most takes all other tables"


def _wrong_patterns(key: str, patterns: Iterable[str]) -> Iterator[str]:
    """Yields what is wrong with patterns of tables."""
    for pattern in patterns:
        if not _PATTERN.fullmatch(pattern):
            yield f"{key}: {pattern!r} is neither a table's name nor the beginning of names and *"


def _unable(of_targets: Mapping[str, Values], commit: TargetCommit) -> Iterator[str]:
    """Yields the targets that cannot commit so."""
    atomic = commit is TargetCommit.ATOMIC
    able = [kind for kind in TARGET_KINDS if (kind.prepares if atomic else kind.holds)]
    lacks = "in which Kainite prepares no transaction" if atomic else "which commits when it answers, and cannot wait"
    for name, own in of_targets.items():
        address = own.get(("apply", "target"))
        if address is not None and (kind := kind_of(address)) not in able:
            yield (
                f"target.{name} is of the kind {kind.name}, {lacks}: targetCommit={commit} needs targets of the kind"
                f" {', '.join(each.name for each in able)}; with targetCommit=each every kind takes part"
            )


def _same(of_targets: Mapping[str, Values]) -> Iterator[str]:
    """Yields the targets that are one database: of SQLite, one of two open transactions would wait for the other."""
    places: dict[str, str] = {}
    for name, own in of_targets.items():
        address = own.get(("apply", "target"))
        if address is None or (written := address_of(address)) is None:
            continue
        if (other := places.setdefault(written.place(address), name)) != name:
            yield f"target.{other} and target.{name} are one database: name it as one target, which commits as a whole"


def assignment_of(of_targets: Mapping[str, Mapping[tuple[str, str], Any]]) -> TableAssignment:
    """Returns which target each table belongs to."""
    if not of_targets:
        return NO_TARGETS
    return TableAssignment(tuple((name, tuple(own.get(("", "tables"), ()))) for name, own in of_targets.items()))


def of_target(settings: Settings, name: str | None) -> Settings:
    """Returns the settings of one target, as if it were the application's only one.

    Args:
        settings: the application's.
        name: the target's name; None or empty where there is one target without a name.

    Raises:
        SettingsError: there are several targets and none is named, or there is no such target.
    """
    known = ", ".join(settings.of_targets)
    if not name:
        if settings.of_targets:
            raise SettingsError(f"{NEEDS}: say which one by --target ({known})")
        return settings
    if name not in settings.of_targets:
        raise SettingsError(f"there is no target.{name} in the settings file" + (f", but {known}" if known else ""))
    fields: dict[str, dict[str, Any]] = {"apply": {}, "uow": {}, "": {}}
    for (section, field), value in settings.of_targets[name].items():
        fields[section][field] = value
    return replace(
        settings,
        apply=replace(settings.apply, **fields["apply"]),
        uow=replace(settings.uow, **fields["uow"]),
        target_name=name,
    )


def has_one_job(settings: Settings) -> bool:
    """Tells whether one apply job serves all of several targets, so that a unit has one status."""
    return bool(settings.of_targets) and settings.apply.commit is not TargetCommit.EACH


def is_atomic(settings: Settings) -> bool:
    """Tells whether a unit is committed in all of several targets or in none."""
    return has_one_job(settings) and settings.apply.commit is TargetCommit.ATOMIC


def require_parts(settings: Settings) -> None:
    """Refuses what is about a unit's status in one of several targets, where units have one status.

    Raises:
        SettingsError: one apply job serves all targets.
    """
    if has_one_job(settings):
        raise SettingsError(
            f"with targetCommit={settings.apply.commit} a unit has one status in all targets: leave --target out"
        )


def each_target(settings: Settings) -> tuple[Settings, ...]:
    """Returns the settings of each target: the settings themselves where the application has one target."""
    return tuple(of_target(settings, name) for name in settings.of_targets) or (settings,)


def require_one_target(settings: Settings) -> None:
    """Refuses several targets: ``kainite replicate`` serves one alone.

    Raises:
        SettingsError: the settings name several targets.
    """
    if settings.of_targets:
        raise SettingsError(f"kainite replicate serves one target, and {NEEDS} ({', '.join(settings.of_targets)})")
