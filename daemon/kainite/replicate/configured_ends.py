"""Reads from a settings file which source and which target it connects.

The source, its slot and its publication stand in one place, the extractor's command line (``extractorName``). It is
read as the extractor itself reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from kainite.base.errors import SettingsError
from kainite.capture.postgresql.command import PROGRAM
from kainite.capture.postgresql.command import main as extractor_command
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.binlog_ends import refuse_binlog_source
from kainite.replicate.ends import ReplicaEnds
from kainite.settings import ExtractOffsets, Settings
from kainite.settings.kinds.target_kinds import kind_of
from kainite.settings.targets import require_one_target
from kainite.targets.postgresql.address import libpq_url

EXTRACTORS: Final = (PROGRAM, "kainite.capture.postgresql.command")
_NAMED: Final = (
    "extractorName must run kainite-extract-postgresql with --source, --slot and --publication: kainite replicate takes"
    " the source from there (docs/replicate.md)"
)

_NO_TARGET: Final = "kainite replicate needs a target that begins with postgresql:// or mariadb://"


def ends_of(configured: Settings) -> ReplicaEnds:
    """Returns the two databases that a settings file connects.

    Args:
        configured: the settings file.

    Raises:
        SettingsError: the extractor is another program, the target neither PostgreSQL nor MariaDB, or the offset kept
            elsewhere than in ``extractorOffsetFile``.
    """
    refuse_binlog_source(configured)
    require_one_target(configured)
    target = configured.apply.target
    kind = "" if target is None else kind_of(target).name
    if target is None or kind not in ("postgresql", "mariadb"):
        raise SettingsError(f"{configured.path}: {_NO_TARGET}")
    if configured.extract.offsets is not ExtractOffsets.KAINITE:
        raise SettingsError(f"{configured.path}: set extractorMode=cyclic and extractorOffsets=kainite")
    source, required = source_of(configured.extract.command)
    url = target if kind == "mariadb" else libpq_url(target)
    return ReplicaEnds(source, url, configured.log.name, required)


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
