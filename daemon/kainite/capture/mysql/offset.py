"""The extractor's offset, and the requests that name it; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from kainite.capture.mysql.place import BinlogIdentity, BinlogPlace
from kainite.capture.mysql.taken_options import TakenOptions
from kainite.capture.serving import BadRequestError, no_offset

_EXAMPLE: Final = '{"file":"binlog.000001","position":4,"number":0}, or with MariaDB {"gtid":"0-1-42","number":0}'


@dataclass(frozen=True, slots=True)
class BinlogOffset:
    """A place in the source: everything that committed before it was given, the last of it as ``number``.

    Attributes:
        place: None where a person begins with a GTID.
        gtid: the last GTIDs before the place, MariaDB's one of each domain; empty where it is not known.
        source: the server that was read; None in the offset that a person begins with.
        prepared: where XA transactions begin that are prepared at the place, by their names.
        options: what holds from the place on; None where nobody has read from there yet.
    """

    place: BinlogPlace | None
    number: int
    gtid: str = ""
    source: BinlogIdentity | None = None
    prepared: Mapping[str, BinlogPlace] = field(default_factory=dict)
    options: TakenOptions | None = None

    def read_since(self, tables: Collection[str]) -> int | None:
        """Returns the number of the last transaction of which changes of tables may be missing.

        Args:
            tables: which; all where there are none.

        Returns:
            None where one of them is not read.
        """
        # Nobody has read from where a person begins: who does will read what the settings say.
        return self.number if self.options is None else self.options.read_since(tables)

    @classmethod
    def from_json(cls, value: Any) -> BinlogOffset:
        """Reads an offset as Kainite stores it.

        Raises:
            BadRequestError: ``value`` is no offset.
        """
        try:
            place = BinlogPlace(str(value["file"]), int(value["position"])) if "file" in value else None
            gtid, source = str(value.get("gtid", "")), value.get("source")
            if place is None and not gtid:
                raise ValueError
            noted = None if source is None else BinlogIdentity.from_json(source)
            prepared = {name: BinlogPlace(str(file), int(at)) for name, (file, at) in value.get("prepared", {}).items()}
            options = TakenOptions.from_json(value["options"]) if "options" in value else None
            return cls(place, int(value["number"]), gtid, noted, prepared, options)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise no_offset(value, _EXAMPLE) from None

    def as_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"number": self.number}
        if self.place is not None:
            told = {"file": self.place.file, "position": self.place.position, "number": self.number}
        if self.gtid:
            told["gtid"] = self.gtid
        if self.source is not None:
            told["source"] = self.source.as_json()
        if self.prepared:
            told["prepared"] = {name: [place.file, place.position] for name, place in self.prepared.items()}
        if self.options is not None:
            told["options"] = self.options.as_json()
        return told


def start_in(request: bytes) -> BinlogOffset:
    """Returns the offset at which a request begins.

    Raises:
        BadRequestError: the request has no offset.
    """
    try:
        return BinlogOffset.from_json(orjson.loads(request)["start"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise BadRequestError(
            f"{request.decode(errors='replace')!r} is no request with an offset: set extractorOffsets=kainite"
        ) from None
