"""Tells which source and which target a settings file connects, and opens sessions with them.

The source, its slot and its publication stand in one place, the extractor's command line (``extractorName``). It is
read as the extractor itself reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click
import psycopg

from kainite.base.errors import KainiteError, SettingsError, SourceError, TargetUnavailableError
from kainite.base.redaction import redacted
from kainite.capture.postgresql.command import PROGRAM
from kainite.capture.postgresql.command import main as extractor_command
from kainite.capture.postgresql.replication import SourceSlot
from kainite.settings import ExtractOffsets, Settings
from kainite.settings.kinds.target_kinds import kind_of
from kainite.targets.postgresql.address import libpq_url
from kainite.targets.postgresql.connection import connect

EXTRACTORS: Final = (PROGRAM, "kainite.capture.postgresql.command")
_NAMED: Final = (
    "extractorName must run kainite-extract-postgresql with --source, --slot and --publication: kainite replicate takes"
    " the source from there (docs/replicate.md)"
)


@dataclass(frozen=True, slots=True)
class ReplicaEnds:
    """A source, its target, and the log between them.

    Attributes:
        source: the source's URL, slot and publication.
        target: the target's URL, as libpq takes it; ``repr`` leaves both out, since they may hold passwords.
        log_partition: the log's name in the target, as in :mod:`kainite_spark.targets.contract`.
        required: tables, as ``schema.table``, that the publication must have (``--table``).
    """

    source: SourceSlot = field(repr=False)
    target: str = field(repr=False)
    log_partition: str
    required: tuple[str, ...] = ()


def ends_of(configured: Settings) -> ReplicaEnds:
    """Returns the two databases that a settings file connects.

    Raises:
        SettingsError: the extractor is another program, or the target no PostgreSQL database, or the offset is kept
            elsewhere than in ``extractorOffsetFile``.
    """
    target = configured.apply.target
    if target is None or kind_of(target).name != "postgresql":
        raise SettingsError(f"{configured.path}: kainite replicate needs a target that begins with postgresql://")
    if configured.extract.offsets is not ExtractOffsets.KAINITE:
        raise SettingsError(f"{configured.path}: set extractorMode=cyclic and extractorOffsets=kainite")
    source, required = source_of(configured.extract.command)
    return ReplicaEnds(source, libpq_url(target), f"{configured.log.table}/{configured.log.partition}", required)


def source_of(command: Sequence[str]) -> tuple[SourceSlot, tuple[str, ...]]:
    """Returns the source that an extractor's command line names, and the tables that it demands.

    Raises:
        SettingsError: the command is another program, or lacks an option.
    """
    places = [place for place, word in enumerate(command) if Path(word).name in EXTRACTORS]
    if not places:
        raise SettingsError(_NAMED)
    try:
        context = extractor_command.make_context(PROGRAM, list(command[places[0] + 1 :]))
    except click.ClickException as error:
        raise SettingsError(f"{_NAMED}: {error.format_message()}") from error
    given = context.params
    return SourceSlot(given["source"], given["slot"], given["publication"]), tuple(given["tables"])


@contextmanager
def both_sessions(ends: ReplicaEnds) -> Iterator[tuple[psycopg.Connection, psycopg.Connection]]:
    """Connects to source and target, in autocommit mode; raises SourceError for any error of either connection."""
    name = "kainite replicate"
    with (
        _told_as(SourceError, "the source or the target"),
        closing(connect(ends.source.url, name)) as source,
        closing(connect(ends.target, name)) as target,
    ):
        yield source, target


@contextmanager
def source_session(url: str, name: str = "kainite replicate") -> Iterator[psycopg.Connection]:
    """Connects to the source, in autocommit mode; raises SourceError for any error of the connection."""
    with _told_as(SourceError, "the source"), closing(connect(url, name)) as connection:
        yield connection


@contextmanager
def target_session(url: str, name: str = "kainite replicate") -> Iterator[psycopg.Connection]:
    """Connects to the target, in autocommit mode; raises TargetUnavailableError for any error of the connection."""
    with _told_as(TargetUnavailableError, "the target"), closing(connect(url, name)) as connection:
        yield connection


@contextmanager
def _told_as(kind: type[KainiteError], whose: str) -> Iterator[None]:
    """Raises an error of a connection as one of Kainite's, in one line that says whose it is."""
    try:
        yield
    except psycopg.Error as error:
        raise kind(f"{whose}: {_line(error)}") from None


def _line(error: psycopg.Error) -> str:
    return redacted(" ".join(str(error).split()))
