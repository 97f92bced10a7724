"""What a command leaves for the log's owner, and what it waits for."""

from __future__ import annotations

import getpass

import pytest

from kainite.base.errors import LogError, LogUnavailableError
from kainite.operations.inbox import Asker, WaitingRequests, leave, take_answer, this_person, waiting_requests
from kainite.store.memory import MemoryStore
from support.log_cli import LogWorld


def test_a_request_names_who_asks_and_an_answer_is_taken(log_world: LogWorld) -> None:
    store = log_world.store
    asked = leave(store, "9", "unit T", {"action": "retry", "uow": "T"}, Asker(this_person(), "it is mended"))
    ((request_id, request),) = store.read_requests("9")
    assert (request_id, request["uow"]) == (asked.request_id, "T")
    assert request["by"].startswith(f"{getpass.getuser()}@")
    assert (request["why"], request["at"].isdecimal()) == ("it is mended", True)
    with pytest.raises(LogUnavailableError, match=r"no answer for unit T \(nor for 2 more\) within 0 s"):
        take_answer(store, "9", asked, 2, 0.0)
    store.answer_request("9", request_id, {"result": "ok", "message": "done"})
    assert take_answer(store, "9", asked, 0, 30.0)["message"] == "done"


def test_requests_that_wait_are_counted_with_the_age_of_the_oldest() -> None:
    store = MemoryStore()
    assert waiting_requests(store, "9") == WaitingRequests()
    for request in (
        {"action": "record", "at": "1"}, {"action": "pause", "at": "120000"}, {"action": "retry", "uow": "T"},
    ):  # fmt: skip
        store.put_request("9", request)
    answered = store.put_request("9", {"action": "retry", "uow": "U", "at": "5"})
    store.answer_request("9", answered, {"result": "ok", "message": "done"})
    found = waiting_requests(store, "9")
    assert found == WaitingRequests(2, 120_000)
    assert found.in_words(360_000) == "2 requests wait for the owner, the oldest for 4 min; each expires after 15 min"
    assert WaitingRequests(1).in_words(0) == "1 request waits for the owner; each expires after 15 min"


def test_who_may_not_read_the_inbox_is_told_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: str) -> None:
        raise LogError("access denied")

    store = MemoryStore()
    monkeypatch.setattr(store, "read_requests", denied)
    assert waiting_requests(store, "9") is None
