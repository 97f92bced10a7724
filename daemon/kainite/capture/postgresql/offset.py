"""The extractor's offset, and the requests that name it; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import orjson

from kainite.capture.postgresql.replication_frames import format_lsn, parse_lsn
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.capture.serving import BadRequestError, no_offset

_EXAMPLE: Final = '{"lsn":"0/1718490","number":0}'


@dataclass(frozen=True, slots=True)
class Offset:
    """A place in the source: everything that committed before ``lsn`` was given, the last of it as ``number``.

    Attributes:
        source: the source that ``lsn`` was read from; None in the offset that a person begins with.
    """

    lsn: int
    number: int
    source: SourceIdentity | None = None

    @classmethod
    def from_json(cls, value: Any) -> Offset:
        """Reads an offset as Kainite stores it.

        Raises:
            BadRequestError: ``value`` is no offset.
        """
        try:
            source = value.get("source")
            noted = None if source is None else SourceIdentity.from_json(source)
            return cls(parse_lsn(value["lsn"]), int(value["number"]), noted)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise no_offset(value, _EXAMPLE) from None

    def as_json(self) -> dict[str, Any]:
        place: dict[str, Any] = {"lsn": format_lsn(self.lsn), "number": self.number}
        return place if self.source is None else place | {"source": self.source.as_json()}


def places_in(request: bytes) -> tuple[Offset, Offset]:
    """Returns the offset at which a request begins, and the offset up to which everything is on the stream.

    Raises:
        BadRequestError: the request has no offsets.
    """
    try:
        asked = orjson.loads(request)
        return Offset.from_json(asked["start"]), Offset.from_json(asked.get("stored", asked["start"]))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise BadRequestError(
            f"{request.decode(errors='replace')!r} is no request with an offset: set extractorOffsets=kainite"
        ) from None
