"""Writes the settings file of a new replica."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from kainite.base.errors import SettingsError
from kainite.settings import load

_FILE: Final = """\
# A replica of an existing database: docs/replicate.md. All keys: docs/properties.md.
applicationName = {name}
streamName = {stream}
initialPositionInStream = TRIM_HORIZON

# kainite extract: from the source to the stream. Passwords belong into {passwords}.
extractorName = {extractor}
extractorMode = cyclic
extractorOffsets = kainite
extractorOffsetFile = {offset}
extractorIntervalMillis = 10

# kainite run: from the stream to the log, by Kainite's record processor of such changes.
executableName = kainite-processor-postgresql --stream {stream}
unitsOfWork = true
uowOrder = dense

# kainite apply: from the log to the target. The source's triggers have fired in the source.
target = {target}
targetTriggers = off
"""
_OF_POSTGRESQL: Final = "kainite-extract-postgresql --source {source} --slot {name} --publication {name}"
_OF_MARIADB: Final = "kainite-extract-mysql --source {source}"
_MARIADB: Final = ("mariadb://", "mysql://")


def write_properties(path: Path, source: str | None, target: str | None, stream: str | None) -> None:
    """Writes the file; leaves none that no command could use, as for a stream's name that Kinesis does not allow.

    Args:
        path: where; nothing is there yet.
        source, target: the databases' URLs.
        stream: the stream's name.

    Raises:
        SettingsError: one of them is missing or wrong, or the file is there.
    """
    if source is None or target is None or stream is None:
        raise SettingsError("to write a settings file, give all of --source, --target and --stream")
    if any(character.isspace() for character in source) or not {":", "="} & set(source):
        raise SettingsError("--source must be a URL: postgresql://user@host/database, or mariadb://user@host/database")
    # Slots and publications are named in lower-case letters, digits and underscores.
    name = re.sub(r"[^a-z0-9_]", "_", stream.lower())
    of_mariadb = source.startswith(_MARIADB)
    text = _FILE.format(
        name=name,
        stream=stream,
        extractor=(_OF_MARIADB if of_mariadb else _OF_POSTGRESQL).format(source=source, name=name),
        passwords=_passwords(of_mariadb, target.startswith(_MARIADB)),
        target=target,
        offset=f"{path.stem}.offset",
    )
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise SettingsError(f"{path} is there already: leave out --source, --target and --stream") from None
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror}") from error
    try:
        load(path, needs=("applicationName",))
    except SettingsError as error:
        path.unlink()
        raise SettingsError(f"{error}; the file was not written") from None


def _passwords(of_mariadb: bool, into_mariadb: bool) -> str:
    places = ["KAINITE_SOURCE_PASSWORD"] if of_mariadb else []
    places += [] if of_mariadb and into_mariadb else ["~/.pgpass"]
    return " and ".join([*places, *(["the target's address"] if into_mariadb else [])])
