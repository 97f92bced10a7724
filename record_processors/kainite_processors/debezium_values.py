"""Debezium's values, as its JSON converter writes them, to values that a target takes.

With a column's schema a value becomes text that has all its digits: a decimal, a day, a time, binary data as ``\\x…``.
Without one it stays as it is. A value of which Debezium has left something out is refused, because the target would get
another one.

Sources: Debezium's documentation ("Data type mappings") and ``UnchangedToastedPlaceholder``; what version 3.6.3 writes.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Final

from kainite.processors.frame import Json

Row = dict[str, Json]
Schemas = Mapping[str, Json]
"""Kafka Connect's schema of each column; empty where events come without schemas."""


def row_of(image: Row | None, schemas: Schemas) -> Row:
    """Returns the columns that an event has values of, as the target takes them.

    Args:
        image: the row before or after the change; None where the event has none.
        schemas: the columns' schemas.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, ArithmeticError: a value that is none of its type, that a
            target cannot hold, or of which Debezium has left something out.
    """
    known = ((name, value) for name, value in (image or {}).items() if value not in UNAVAILABLE)
    return {name: _value(value, schemas.get(name)) for name, value in known}


def _value(value: Json, schema: Json) -> Json:
    if value is None or schema is None:
        return value
    if schema.get("type") == "array":
        return [_value(item, schema["items"]) for item in value]
    convert = _CONVERSIONS.get(schema.get("name") or schema.get("type"))
    return value if convert is None else convert(value, schema)


def _placeholders(text: str) -> list[Json]:
    """Returns how Debezium for PostgreSQL spells a large value that an update did not change, by the column's type."""
    data = text.encode()
    encoded = base64.b64encode(data).decode()
    name = str(uuid.UUID(bytes=hashlib.md5(data, usedforsecurity=False).digest(), version=3))
    return [text, encoded, [text], [encoded], list(data), {text: text}, [name]]


UNAVAILABLE: Final = _placeholders("__debezium_unavailable_value")


def _date(days: int, _: Json) -> str:
    return (date(1970, 1, 1) + timedelta(days)).isoformat()


def _moment(value: int, _: Json, digits: int) -> str:
    seconds, fraction = divmod(value, 10**digits)
    return f"{(datetime(1970, 1, 1) + timedelta(seconds=seconds)).isoformat(' ')}.{fraction:0{digits}}"


def _time(value: int, _: Json, digits: int) -> str:
    seconds, fraction = divmod(abs(value), 10**digits)
    sign = "-" if value < 0 else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:0{digits}}"


def _decimal(unscaled: str, scale: int) -> str:
    number = int.from_bytes(base64.b64decode(unscaled, validate=True), "big", signed=True)
    # Not scaleb, which rounds to the context's precision.
    return f"{Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale)):f}"


def _fixed_decimal(value: Json, schema: Json) -> Json:
    return _decimal(value, int(schema["parameters"]["scale"])) if isinstance(value, str) else value


def _variable_decimal(value: Json, _: Json) -> str:
    return _decimal(value["value"], value["scale"])


def _binary(value: str, _: Json) -> str:
    return "\\x" + base64.b64decode(value, validate=True).hex()


def _lossy(why: str) -> Callable[[Json, Json], Json]:
    """Refuses the values of a type of which Debezium has left something out, so that another value would be written."""

    def refuse(_: Json, __: Json) -> Json:
        raise ValueError(why)

    return refuse


def _without_zone(value: str, _: Json) -> str:
    return value.removesuffix("Z")


_CONVERSIONS: Final[Mapping[str, Callable[[Json, Json], Json]]] = {
    "bytes": _binary,
    "org.apache.kafka.connect.data.Decimal": _fixed_decimal,
    "io.debezium.data.VariableScaleDecimal": _variable_decimal,
    "io.debezium.time.Date": _date,
    "org.apache.kafka.connect.data.Date": _date,
    "io.debezium.time.IsoDate": _without_zone,
    "io.debezium.time.Timestamp": partial(_moment, digits=3),
    "org.apache.kafka.connect.data.Timestamp": partial(_moment, digits=3),
    "io.debezium.time.MicroTimestamp": partial(_moment, digits=6),
    "io.debezium.time.NanoTimestamp": partial(_moment, digits=9),
    "io.debezium.time.Time": partial(_time, digits=3),
    "org.apache.kafka.connect.data.Time": partial(_time, digits=3),
    "io.debezium.time.MicroTime": partial(_time, digits=6),
    "io.debezium.time.NanoTime": partial(_time, digits=9),
    "io.debezium.time.MicroDuration": _lossy(
        "an interval in microseconds has lost its months and days: set interval.handling.mode=string at Debezium"
    ),
    "io.debezium.data.Bits": _lossy("a bit string without its length"),
}
