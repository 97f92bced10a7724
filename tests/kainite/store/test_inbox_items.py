"""Requests are read oldest first, once each, and answers stay for whoever asked, up to a number."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.log.contract import ANSWERS_KEPT, REQUESTS_AT_ONCE
from kainite.store.inbox_items import InboxItems
from kainite.store.log_table import LogTable
from support.dynamodb_doubles import on_each_double
from support.names import unique


def table_of(dynamodb: Any) -> LogTable:
    table = LogTable(dynamodb, unique("log"), lambda _: None)
    table.create()
    return table


def items(table: LogTable) -> int:
    return sum(1 for _ in table.query("0#Q", fields="s", strong=True))


@on_each_double
def test_a_request_is_read_until_it_is_answered(dynamodb: Any) -> None:
    inbox = InboxItems(table_of(dynamodb), deletes=True)
    ids = [inbox.put("0", {"uow": name}) for name in "ab"]
    inbox.put("1", {"uow": "another partition's"})
    assert inbox.read("0") == [(ids[0], {"uow": "a"}), (ids[1], {"uow": "b"})]
    inbox.answer("0", ids[0], {"status": "done"})
    assert inbox.read("0") == [(ids[1], {"uow": "b"})]


@on_each_double
def test_an_answer_is_taken_once(dynamodb: Any) -> None:
    table = table_of(dynamodb)
    inbox = InboxItems(table, deletes=True)
    asked = inbox.put("0", {"uow": "a"})
    assert inbox.take_answer("0", asked) is None
    assert items(table) == 1, "a request without an answer stays"
    inbox.answer("0", asked, {"status": "done"})
    assert inbox.take_answer("0", asked) == {"status": "done"}
    assert inbox.take_answer("0", asked) is None
    assert items(table) == 0


@on_each_double
def test_an_answer_to_nothing_is_no_request(dynamodb: Any) -> None:
    inbox = InboxItems(table_of(dynamodb), deletes=True)
    inbox.answer("0", "gone", {"status": "done"})
    assert inbox.read("0") == []
    assert inbox.take_answer("0", "gone") == {"status": "done"}


@on_each_double
@pytest.mark.parametrize(("deletes", "left"), [(True, ANSWERS_KEPT), (False, ANSWERS_KEPT + 2)])
def test_answers_that_nobody_takes_leave_unless_the_reader_may_not_delete(
    dynamodb: Any, deletes: bool, left: int
) -> None:
    table = table_of(dynamodb)
    inbox = InboxItems(table, deletes=deletes)
    for number in range(ANSWERS_KEPT + 2):
        inbox.answer("0", f"{number:05}", {"status": str(number)})
    assert inbox.read("0") == []
    assert items(table) == left
    assert inbox.take_answer("0", f"{ANSWERS_KEPT + 1:05}") == {"status": str(ANSWERS_KEPT + 1)}, "the latest stay"


@on_each_double
def test_many_requests_are_read_in_portions(dynamodb: Any) -> None:
    table = table_of(dynamodb)
    inbox = InboxItems(table, deletes=True)
    for number in range(REQUESTS_AT_ONCE + 1):
        table.put({"p": {"S": "0#Q"}, "s": {"S": f"{number:05}"}, "r": {"M": {"uow": {"S": str(number)}}}})
    read = inbox.read("0")
    assert [request["uow"] for _, request in read] == [str(number) for number in range(REQUESTS_AT_ONCE)]
