"""The names of all tables and streams of a double: a list call names a hundred at a time."""

from __future__ import annotations

from typing import Any


def table_names(dynamodb: Any) -> list[str]:
    """Returns the names of all tables, of every page."""
    return [name for page in dynamodb.get_paginator("list_tables").paginate() for name in page["TableNames"]]


def stream_names(kinesis: Any) -> list[str]:
    """Returns the names of all streams, of every page."""
    return [name for page in kinesis.get_paginator("list_streams").paginate() for name in page["StreamNames"]]
