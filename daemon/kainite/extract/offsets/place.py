"""The place in a source: how far it has been extracted, and what the extractor is asked next; pure.

================  =====================================  ====================================================
extractorOffsets  what is asked                          what is kept
================  =====================================  ====================================================
``extractor``     an empty message                       nothing here: the extractor keeps its own offset
``kainite``       ``{"start":X,"end":null}``             X: what the extractor gave last, as ``{"offset":X}``
``time``          ``{"start":"…Z","end":"…Z"}``          the range's start; its end too once it is chosen
================  =====================================  ====================================================

A range of time includes its start and excludes its end; it begins where the previous range ended.

An extractor that gives ``{"offset":X,"ahead":true}`` may be asked from X before its answer is on the stream. Such a
request is ``{"start":X,"end":null,"stored":Y}``: everything before Y is on the stream, and the source may forget that
much and no more. In a request without ``stored``, it is everything before ``start``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Self, TypeAlias

import orjson

from kainite.base.errors import ChildProtocolError, SourceError
from kainite.settings import ExtractOffsets
from kainite.uow import exact_json

Json: TypeAlias = Any

TOO_LONG: Final = "a number that a double or 64 bits cannot hold: it must be a text"


@dataclass(frozen=True, slots=True)
class Place:
    """The progress of an extraction: everything before ``start`` is on the stream.

    Attributes:
        start: the extractor's offset, any JSON, or a time as :func:`moment_text` writes it.
        end: the end of the range that is being extracted; None where the extractor decides, or no range is chosen.
    """

    start: Json
    end: Json = None


@dataclass(frozen=True, slots=True)
class SourceLag:
    """How far the source is ahead of an offset, by the extractor's word; None for what it does not say.

    Attributes:
        commit_time: when the newest transaction that was given committed, nanoseconds since the epoch.
        held_bytes: bytes that the source keeps because this extraction has not confirmed them.
        left_bytes: further bytes that the source will keep before it gives this extraction up.
    """

    commit_time: int | None = None
    held_bytes: int | None = None
    left_bytes: int | None = None

    def as_json(self) -> dict[str, int]:
        """Returns the fields as they stand in a message, without those that are not known."""
        fields = {"time": self.commit_time, "heldBytes": self.held_bytes, "leftBytes": self.left_bytes}
        return {name: value for name, value in fields.items() if value is not None}

    @classmethod
    def read(cls, found: Json) -> Self | None:
        """Returns what a message says; None where it says nothing of its kind. Unknown fields are passed over."""
        if not isinstance(found, dict):
            return None
        values = [found.get(name) for name in ("time", "heldBytes", "leftBytes")]
        return cls(*(value if type(value) is int and 0 <= value < 2**63 else None for value in values))


@dataclass(frozen=True, slots=True)
class GivenOffset:
    """The offset that an extractor gave in this cycle.

    Attributes:
        offset: where the next cycle begins.
        ahead: whether the extractor may be asked for the next cycle before this one is on the stream.
        lag: how far the source is ahead, where the extractor says it.
    """

    offset: Json
    ahead: bool = False
    lag: SourceLag | None = None


def first_place(offsets: ExtractOffsets, begin: Json) -> Place:
    """Returns the first place, as a user states it.

    Raises:
        SourceError: the offsets are times, and ``begin`` is none.
    """
    if offsets is not ExtractOffsets.TIME:
        return Place(begin)
    if not isinstance(begin, str):
        raise SourceError(f"extractorOffsets=time begins at a time such as 2026-11-21T00:00:00Z, not at {begin!r}")
    return Place(moment_text(moment_of(begin)))


def before_asking(offsets: ExtractOffsets, place: Place, now: datetime) -> Place | None:
    """Returns the place with the range that is to be asked for; None while there is nothing to ask for.

    A chosen range stays: after a crash the same range is asked for again. Where the clock was set back meanwhile, it is
    not asked for before its end is past: otherwise what is still to happen in the range would be missing.
    """
    if offsets is not ExtractOffsets.TIME:
        return place
    if place.end is not None:
        return place if now >= moment_of(place.end) else None
    return replace(place, end=moment_text(now)) if now > moment_of(place.start) else None


def request_of(offsets: ExtractOffsets, place: Place, stored: Place | None) -> bytes:
    """Returns the content of the request to the extractor.

    Args:
        offsets: where the offset is kept.
        place: where the cycle begins.
        stored: the place that is stored, where the cycle is asked for ahead; None if ``place`` is stored.
    """
    if offsets is ExtractOffsets.EXTRACTOR:
        return b""
    request = {"start": place.start, "end": place.end}
    return orjson.dumps(request if stored is None else {**request, "stored": stored.start})


def after_putting(offsets: ExtractOffsets, place: Place, given: GivenOffset | None) -> Place:
    """Returns the place that holds once all messages of the cycle are on the stream."""
    match offsets:
        case ExtractOffsets.TIME:
            return Place(place.end)
        case ExtractOffsets.KAINITE if given is not None:
            return Place(given.offset)
    return place


def offset_in(message: bytes) -> GivenOffset | None:
    """Returns the offset that a message gives; None for other messages.

    Such a message is a JSON object with the key ``offset`` and no others but ``ahead``, which is true or false, and
    ``lag`` (:class:`SourceLag`).

    Raises:
        ChildProtocolError: the offset would not come back to the extractor unchanged.
    """
    if b'"offset"' not in message:
        return None
    try:
        value = orjson.loads(message)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict) or "offset" not in value or not value.keys() <= {"offset", "ahead", "lag"}:
        return None
    if not isinstance(ahead := value.get("ahead", False), bool):
        return None
    if not keeps_digits(message):
        raise ChildProtocolError(f"the extractor gave an offset with {TOO_LONG}: {message[:200]!r}")
    return GivenOffset(value["offset"], ahead, SourceLag.read(value.get("lag")))


def keeps_digits(text: bytes) -> bool:
    """Tells whether each number of a JSON document is kept unchanged; a changed offset would leave a gap.

    A document that is nested too deeply to be looked at counts as changed.
    """
    try:
        return bool(exact_json.loads(text) == orjson.loads(text))
    except (ValueError, RecursionError):
        return False


def moment_text(moment: datetime) -> str:
    """Formats a time as ISO 8601 in UTC, to the microsecond, so that texts compare as the times do."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def moment_of(text: str) -> datetime:
    """Parses a time; without a zone it is UTC.

    Raises:
        SourceError: the text is no time.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise SourceError(f"{text!r} is no time; one looks like 2026-11-21T09:30:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
