"""What a command leaves for the log's owner, and what it waits for."""

from __future__ import annotations

import getpass

import pytest

from kainite.base.errors import LogUnavailableError
from kainite.operations.inbox import Asker, leave, take_answer, this_person
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
