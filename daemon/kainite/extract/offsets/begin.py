"""``kainite extract --begin``: the first offset file, made by hand: a lost one is never taken for a first start."""

from __future__ import annotations

import logging

import orjson

from kainite.base.errors import SettingsError
from kainite.base.logs import event
from kainite.extract.offsets.offset_file import offset_file_of
from kainite.extract.offsets.place import TOO_LONG, Json, first_place, keeps_digits
from kainite.settings import ExtractOffsets, Settings

logger = logging.getLogger(__name__)


def begin_at(settings: Settings, text: str) -> None:
    """Make the offset file.

    Args:
        settings: of an extraction whose offset Kainite keeps.
        text: JSON; for ``time`` a time as it is.

    Raises:
        SettingsError: this extraction has no offset file, or ``text`` is no JSON, or not to be kept as it is.
        SourceError: there is a file already, ``text`` is no time, or the file cannot be written.
    """
    file = offset_file_of(settings)
    if file is None:
        raise SettingsError("--begin is for extractorMode=cyclic with extractorOffsets=kainite or time")
    time = settings.extract.offsets is ExtractOffsets.TIME
    place = first_place(settings.extract.offsets, text if time else _json(text))
    with file.locked():
        file.create(place)
    event(logger, logging.INFO, "offset file made", file=file.path, begin=text)


def _json(text: str) -> Json:
    try:
        begin = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise SettingsError(f"--begin {text!r} is no JSON: {error}") from None
    if not keeps_digits(text.encode()):
        raise SettingsError(f"--begin {text!r} has {TOO_LONG}")
    return begin
