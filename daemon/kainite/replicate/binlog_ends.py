"""Reads from a settings file which MariaDB source and which target it connects.

The source stands in one place, the command line of ``kainite-extract-mysql`` (``extractorName``), which is read as the
extractor itself reads it; the password too (``KAINITE_SOURCE_PASSWORD``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click

from kainite.base.errors import SettingsError
from kainite.base.redaction import learn, secrets_in_url
from kainite.capture.mysql.command import PROGRAM, with_password
from kainite.capture.mysql.command import main as extractor_command
from kainite.capture.mysql.extractor import BinlogReading
from kainite.capture.truncate import OnTruncate
from kainite.extract.offsets.offset_file import OffsetFile, offset_file_of
from kainite.settings import ExtractOffsets, Settings
from kainite.settings.kinds.target_kinds import kind_of
from kainite.settings.targets import require_one_target
from kainite.targets.postgresql.address import libpq_url

_EXTRACTORS: Final = (PROGRAM, "kainite.capture.mysql.command")


@dataclass(frozen=True, slots=True)
class BinlogEnds:
    """A MariaDB source, its target, and the log between them; implements :class:`kainite.replicate.ends.LoadEnds`.

    Attributes:
        source: the database, and which of its tables are read; ``repr`` leaves it out, since it may hold a password.
        target: the target's URL, as libpq takes it, or of MariaDB.
        log_partition: the log's name in the target.
        offsets: the file with the extraction's place.
    """

    source: BinlogReading = field(repr=False)
    target: str = field(repr=False)
    log_partition: str
    offsets: OffsetFile

    @property
    def source_url(self) -> str:
        return self.source.url


def has_binlog_source(configured: Settings) -> bool:
    """Tells whether the extractor is that of MariaDB and MySQL."""
    return _place(configured.extract.command) is not None


def refuse_binlog_source(configured: Settings) -> None:
    """Raises SettingsError where the source is MariaDB, for what is possible with PostgreSQL alone."""
    if has_binlog_source(configured):
        raise SettingsError(
            f"{configured.path}: extractorName runs {PROGRAM}, and this takes PostgreSQL sources alone: from MariaDB"
            " there are kainite replicate init, load, add, reload, status and cutover, and kainite verify"
            " (docs/replicate.md, *From MariaDB*)"
        )


def binlog_ends_of(configured: Settings) -> BinlogEnds:
    """Returns the two databases that a settings file connects.

    Args:
        configured: the settings file.

    Raises:
        SettingsError: the extractor's command line is not understood, the target is neither PostgreSQL nor MariaDB, or
            the offset is kept elsewhere than in ``extractorOffsetFile``.
    """
    require_one_target(configured)
    target = configured.apply.target
    kind = "" if target is None else kind_of(target).name
    if target is None or kind not in ("postgresql", "mariadb"):
        raise SettingsError(
            f"{configured.path}: kainite replicate copies from MariaDB into targets that begin with postgresql:// or"
            " mariadb://, and no others"
        )
    offsets = offset_file_of(configured)
    if configured.extract.offsets is not ExtractOffsets.KAINITE or offsets is None:
        raise SettingsError(f"{configured.path}: set extractorMode=cyclic and extractorOffsets=kainite")
    name = configured.log.name
    url = target if kind == "mariadb" else libpq_url(target)
    return BinlogEnds(reading_of(configured.extract.command), url, name, offsets)


def reading_of(command: Sequence[str]) -> BinlogReading:
    """Returns how the extractor of a command line reads its source.

    Raises:
        SettingsError: the command is another program, or its options are not understood.
    """
    place = _place(command)
    if place is None:
        raise SettingsError(f"extractorName must run {PROGRAM}")
    try:
        given = extractor_command.make_context(PROGRAM, list(command[place + 1 :])).params
    except click.ClickException as error:
        raise SettingsError(f"extractorName: {PROGRAM}: {error.format_message()}") from error
    url = with_password(given["source"], os.environ.get("KAINITE_SOURCE_PASSWORD", ""))
    learn(secrets_in_url(url))
    return BinlogReading(url, given["tables"], OnTruncate(given["truncate"]), frozenset(given["passed_over"]))


def _place(command: Sequence[str]) -> int | None:
    return next((place for place, word in enumerate(command) if Path(word).name in _EXTRACTORS), None)
