"""Lists the kinds of targets, and finds the kind that ``target`` names.

A kind is one line of :data:`TARGET_KINDS`, a folder in ``kainite.targets`` (how its address is written, how its
catalogue is read) and a folder in ``kainite_spark.targets`` (its sessions, statements, ledger and refusals). Every
message that lists the kinds is made from the lines. A line names modules by their dotted paths, and they are imported
when they are used: a shard host that reads its catalogue from a file imports no database driver.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kainite.base.errors import MissingExtraError, SettingsError


@dataclass(frozen=True, slots=True)
class TargetAddress:
    """How ``target`` is written for one kind.

    Attributes:
        parse: converts the text to the address that all parts of Kainite use, given the settings file's folder;
            raises ``ValueError`` with a message that quotes no secret.
        show: returns an address without its secrets.
        secrets: returns the secrets in a text, also in one that ``parse`` refuses.
        place: returns what two addresses have in common that lead to one database, where they alone tell.
    """

    parse: Callable[[str, Path], str]
    show: Callable[[str], str]
    secrets: Callable[[str], Iterable[str]]
    place: Callable[[str], str] = str


@dataclass(frozen=True, slots=True)
class TargetKind:
    """A kind of target. Modules are named by ``module:attribute``, as commands are.

    Attributes:
        name: the name of its folders.
        prefixes: the prefixes of an address of this kind, in all spellings.
        example: an example of an address, for messages.
        address: a :class:`TargetAddress`.
        opener: a ``kainite_spark.targets.opener.TargetOpener``.
        catalogue: a :data:`kainite.uow.catalogue.introspection.Reading`; None for a kind that cannot be asked for its
            tables.
        lock_waits: a ``kainite.targets.lock_waits.LockWaitReader``; None for a kind that cannot be asked.
        no_lock_waits: what such a kind is said to lack.
        present_rows: a ``kainite.targets.present_row.PresentRowReader``; None for a kind that cannot be asked.
        extra: Kainite's extra that installs the driver; None when none is needed.
        packages: the packages that the extra installs and the kind's modules import.
        prepares: whether its target is a ``kainite_spark.targets.preparing.PreparingTarget``, for
            ``targetCommit=atomic``.
        holds: whether its target is a ``kainite_spark.targets.holding.HoldingTarget``, for ``targetCommit=together``.
    """

    name: str
    prefixes: tuple[str, ...]
    example: str
    address: str
    opener: str
    catalogue: str | None = None
    lock_waits: str | None = None
    no_lock_waits: str = "cannot be asked who waits for locks"
    present_rows: str | None = None
    extra: str | None = None
    packages: tuple[str, ...] = ()
    prepares: bool = False
    holds: bool = False

    def part(self, path: str | None, lacking: str = "") -> Any:
        """Imports the part of this kind that ``path`` names.

        Args:
            path: the part; None where this kind lacks it.
            lacking: what a kind without it is said to lack, in words that follow its name.

        Raises:
            SettingsError: this kind lacks the part.
            MissingExtraError: the kind's driver is not installed.
        """
        if path is None:
            raise SettingsError(f"a {self.name} target {lacking}")
        module, _, attribute = path.partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except ImportError as error:
            if self.extra is None:
                raise
            needed = " and ".join(self.packages)
            raise MissingExtraError(
                f"a {self.name} target needs {needed} ({error}): install kainite[{self.extra}]"
            ) from error


TARGET_KINDS: tuple[TargetKind, ...] = (
    TargetKind(
        name="postgresql",
        prefixes=("postgresql://", "postgres://", "postgresql+psycopg://"),
        example="postgresql://user@host/database",
        address="kainite.targets.postgresql.address:ADDRESS",
        opener="kainite_spark.targets.postgresql.opening:OPENER",
        catalogue="kainite.targets.postgresql.catalogue:reading",
        lock_waits="kainite.targets.postgresql.lock_waits:lock_waits",
        present_rows="kainite.targets.postgresql.present_rows:present_rows",
        extra="postgresql",
        packages=("psycopg",),
        prepares=True,
        holds=True,
    ),
    TargetKind(
        name="sqlite",
        prefixes=("sqlite:///",),
        example="sqlite:///file",
        address="kainite.targets.sqlite.address:ADDRESS",
        opener="kainite_spark.targets.sqlite.opening:OPENER",
        catalogue="kainite.targets.sqlite.catalogue:reading",
        no_lock_waits="has no locks on rows: one connection writes at a time, and others wait for the whole file",
        holds=True,
    ),
    TargetKind(
        name="mariadb",
        prefixes=("mariadb://", "mysql://"),
        example="mariadb://user@host/database",
        address="kainite.targets.mariadb.address:ADDRESS",
        opener="kainite_spark.targets.mariadb.opening:OPENER",
        catalogue="kainite.targets.mariadb.catalogue:reading",
        lock_waits="kainite.targets.mariadb.lock_waits:lock_waits",
        present_rows="kainite.targets.mariadb.present_rows:present_rows",
        extra="mariadb",
        packages=("pymysql",),
        prepares=True,
        holds=True,
    ),
    TargetKind(
        name="exec",
        prefixes=("exec:",),
        example="exec:COMMAND",
        address="kainite.targets.exec.address:ADDRESS",
        opener="kainite_spark.targets.exec.opening:OPENER",
    ),
)


def find_kind(target: str) -> TargetKind | None:
    """Returns the kind whose address ``target`` is; None for a text that no kind understands."""
    return next((kind for kind in TARGET_KINDS if target.startswith(kind.prefixes)), None)


def kind_of(target: str) -> TargetKind:
    """Returns the kind whose address ``target`` is.

    Raises:
        SettingsError: no kind understands the text.
    """
    kind = find_kind(target)
    if kind is None:
        # The text is not repeated: what was not understood may hold a password anywhere.
        raise SettingsError(f"target must be {expected()}")
    return kind


def address_of(target: str) -> TargetAddress | None:
    """Returns how ``target`` is written; None for a text that no kind understands."""
    kind = find_kind(target)
    found: TargetAddress | None = kind.part(kind.address) if kind else None
    return found


def expected() -> str:
    """Returns what may be written for ``target``, in words: an example of each kind."""
    *others, last = (kind.example for kind in TARGET_KINDS)
    return f"{', '.join(others)} or {last}"


def extra_with(package: str) -> str | None:
    """Returns the extra of the kind of target that needs ``package``; None when no kind needs it."""
    return next((kind.extra for kind in TARGET_KINDS if package in kind.packages), None)


def driver_packages() -> tuple[str, ...]:
    """Returns the packages that only a host which opens a target needs."""
    return tuple(package for kind in TARGET_KINDS for package in kind.packages)
