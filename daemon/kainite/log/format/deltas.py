"""The deltas of an entry as bytes: a JSON array, the data of FRAGMENT, UNIT and REFIT entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from kainite.base.errors import LogCorruptError
from kainite.uow.delta import Delta, Operation

_OPERATIONS = {operation.value: operation for operation in Operation}


def dump_deltas(deltas: Sequence[Delta]) -> bytes:
    """Returns deltas as the data of an entry; nothing for none."""
    return orjson.dumps([delta.to_json() for delta in deltas]) if deltas else b""


def read_deltas(data: bytes) -> list[Delta]:
    """Returns the deltas of one entry's data.

    Raises:
        LogCorruptError: the data is not what :func:`dump_deltas` gave.
    """
    try:
        return [_delta(item) for item in orjson.loads(data)] if data else []
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LogCorruptError(f"an entry's deltas cannot be read: {type(error).__name__} {error}") from error


def _delta(item: dict[str, Any]) -> Delta:
    return Delta(
        item["table"],
        _OPERATIONS[item["op"]],
        item.get("key", {}),
        item.get("row", {}),
        item.get("before", {}),
        item.get("ordinal"),
    )
