"""How far a source has been extracted, and what the extractor is asked next; pure.

================  =====================================  ====================================================
extractorOffsets  what is asked                          what is kept
================  =====================================  ====================================================
``extractor``     an empty message                       nothing here: the extractor keeps its own offset
``kainite``       ``{"start":X,"end":null}``             X: what the extractor gave last, as ``{"offset":X}``
``time``          ``{"start":"…Z","end":"…Z"}``          the range's start; its end too once it is chosen
================  =====================================  ====================================================

Ranges of time take in their start and leave out their end; a range begins where the one before ended.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import orjson

from kainite.base.errors import ChildProtocolError, SourceError
from kainite.settings import ExtractOffsets
from kainite.uow import exact_json

Json: TypeAlias = Any

TOO_LONG: Final = "a number that a double or 64 bits cannot hold: it must be a text"


@dataclass(frozen=True, slots=True)
class Place:
    """Everything before ``start`` is on the stream; nothing is known of what follows.

    Attributes:
        start: JSON of the extractor's own, or a time as :func:`moment_text` writes it.
        end: of the range that is being extracted; None where the extractor, or nobody yet, says how far.
    """

    start: Json
    end: Json = None


@dataclass(frozen=True, slots=True)
class Given:
    """The place that an extractor gave in this cycle."""

    offset: Json


def first_place(offsets: ExtractOffsets, begin: Json) -> Place:
    """The place to begin at, as a user says it.

    Raises:
        SourceError: ``time`` offsets begin at a time.
    """
    if offsets is not ExtractOffsets.TIME:
        return Place(begin)
    if not isinstance(begin, str):
        raise SourceError(f"extractorOffsets=time begins at a time such as 2026-11-21T00:00:00Z, not at {begin!r}")
    return Place(moment_text(moment_of(begin)))


def before_asking(offsets: ExtractOffsets, place: Place, now: datetime) -> Place | None:
    """The place with the range that is to be asked for; None while there is nothing to ask for.

    A range that was chosen stays: after a crash the same one is asked for again, but not before its end is past, where
    the clock was set back meanwhile: what was yet to happen in it would be missing.
    """
    if offsets is not ExtractOffsets.TIME:
        return place
    if place.end is not None:
        return place if now >= moment_of(place.end) else None
    return replace(place, end=moment_text(now)) if now > moment_of(place.start) else None


def request_of(offsets: ExtractOffsets, place: Place) -> bytes:
    """What the extractor is asked: the message's content."""
    if offsets is ExtractOffsets.EXTRACTOR:
        return b""
    return orjson.dumps({"start": place.start, "end": place.end})


def after_putting(offsets: ExtractOffsets, place: Place, given: Given | None) -> Place:
    """The place once all messages of the cycle are on the stream."""
    match offsets:
        case ExtractOffsets.TIME:
            return Place(place.end)
        case ExtractOffsets.KAINITE if given is not None:
            return Place(given.offset)
    return place


def offset_in(message: bytes) -> Given | None:
    """The offset that a message gives: a JSON object with the single key ``offset``. None for other messages.

    Raises:
        ChildProtocolError: it would not come back to the extractor as it is.
    """
    if b'"offset"' not in message:
        return None
    try:
        value = orjson.loads(message)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict) or value.keys() != {"offset"}:
        return None
    if not keeps_digits(message):
        raise ChildProtocolError(f"the extractor gave an offset with {TOO_LONG}: {message[:200]!r}")
    return Given(value["offset"])


def keeps_digits(text: bytes) -> bool:
    """Whether each number of a JSON document comes out of it as it is; another offset would leave a gap."""
    return bool(exact_json.loads(text) == orjson.loads(text))


def moment_text(moment: datetime) -> str:
    """ISO 8601 in UTC, to the microsecond, so that texts compare as the times do."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def moment_of(text: str) -> datetime:
    """The time that a text says; without a zone it is UTC.

    Raises:
        SourceError: it says none.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise SourceError(f"{text!r} is no time; one looks like 2026-11-21T09:30:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
