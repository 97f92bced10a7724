"""What DynamoDB leaves over is sent again, and the table's calls are answered or raised as errors of the log."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kainite.base.errors import LogError, LogUnavailableError
from kainite.store.log_table import DELETIONS, LEFT_OVER_PAUSES, LogTable
from support.dynamodb_doubles import on_each_double
from support.names import unique


class Throttling:
    """Leaves all writes of a batch over, as DynamoDB may."""

    def __init__(self, times: int) -> None:
        self.left = times

    def batch_write_item(self, RequestItems: dict[str, Any]) -> dict[str, Any]:  # noqa: N803
        self.left -= 1
        return {"UnprocessedItems": RequestItems if self.left >= 0 else {}}


def test_left_over_writes_are_sent_again_after_growing_pauses() -> None:
    pauses: list[float] = []
    table = LogTable(cast(Any, Throttling(3)), "log", pauses.append)
    table.delete("0#L", ["a", "b"])
    assert pauses == list(LEFT_OVER_PAUSES[1:4])


def test_writes_that_are_left_over_for_ever_fail_as_unavailable() -> None:
    pauses: list[float] = []
    table = LogTable(cast(Any, Throttling(10**9)), "log", pauses.append)
    with pytest.raises(LogUnavailableError, match="left 2 deletions over"):
        table.delete("0#L", ["a", "b"])
    assert pauses == list(LEFT_OVER_PAUSES[1:])


@on_each_double
def test_items_are_deleted_however_many(dynamodb: Any) -> None:
    table = LogTable(dynamodb, unique("log"), lambda _: None)
    table.create()
    keys = [f"{number:03}" for number in range(2 * DELETIONS + 1)]
    for sort_key in keys:
        table.put({"p": {"S": "0"}, "s": {"S": sort_key}})
    table.delete("0", [*keys[1:], "missing"])
    assert [item["s"]["S"] for item in table.query("0", fields="s", strong=True)] == keys[:1]


@on_each_double
def test_an_attribute_is_set_beside_the_others(dynamodb: Any) -> None:
    table = LogTable(dynamodb, unique("log"), lambda _: None)
    table.create()
    table.put({"p": {"S": "0"}, "s": {"S": "a"}, "r": {"S": "asked"}})
    for sort_key in ("a", "b"):
        table.set("0", sort_key, "a", {"S": "answered"})
    assert table.get("0", "a") == {"p": {"S": "0"}, "s": {"S": "a"}, "r": {"S": "asked"}, "a": {"S": "answered"}}
    assert table.get("0", "b") is not None


@on_each_double
def test_a_missing_table_is_named_with_what_to_do(dynamodb: Any) -> None:
    table = LogTable(dynamodb, name := unique("log"), lambda _: None)
    with pytest.raises(LogError, match=f"there is no log table '{name}': check applicationName"):
        table.get("0", "a")
