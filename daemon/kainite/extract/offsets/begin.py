"""``kainite extract --begin``: makes the first offset file.

Only a user makes it, so that a lost offset file is never taken for a first start.
"""

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
    """Makes the offset file.

    Args:
        settings: the settings of an extraction whose offset Kainite keeps.
        text: the first offset as JSON; with ``extractorOffsets=time`` a time, without quotes.

    Raises:
        SettingsError: the extraction has no offset file, or ``text`` is no JSON, or has a number that would change.
        SourceError: the file exists already or cannot be written, or ``text`` is no time.
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
