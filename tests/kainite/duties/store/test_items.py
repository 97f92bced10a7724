"""What other releases write is kept, and what they do not write has its default."""

from __future__ import annotations

import orjson

from kainite.duties.model.records import Duty, Work, Worker
from kainite.duties.store.items import key_of, picture_of, record_of, text_of


def test_fields_of_a_later_release_are_kept() -> None:
    text = '{"name":"w","incarnation":"1","status":"alive","colour":"red"}'
    worker = record_of("worker/w", "v", text)
    assert isinstance(worker, Worker)
    assert worker.extra == {"colour": "red"}
    assert orjson.loads(text_of(worker))["colour"] == "red"


def test_absent_fields_have_their_defaults() -> None:
    duty = record_of("duty/d", "v", '{"name":"d","work":{"kind":"later","new":1},"status":"unassigned"}')
    assert isinstance(duty, Duty)
    assert (duty.work.kind, duty.work.weight, duty.enabled, duty.version) == ("later", 1.0, True, "v")


def test_a_number_that_json_does_not_have_is_the_default() -> None:
    endless = text_of(Duty("d", Work(weight=float("inf"))))
    duty = record_of("duty/d", "v", endless)
    assert isinstance(duty, Duty)
    assert duty.work.weight == 1.0


def test_a_record_of_an_unknown_kind_is_passed_over() -> None:
    assert record_of("shift/s", "v", "{}") is None


def test_names_may_hold_slashes() -> None:
    assert key_of(Worker("host/1", "i")) == "worker/host/1"
    assert picture_of([Worker("host/1", "i")]).workers["host/1"].incarnation == "i"
