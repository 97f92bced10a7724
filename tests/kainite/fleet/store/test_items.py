"""What other releases write is kept, and what they do not write has its default."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import FleetError
from kainite.fleet.model.records import Duty, Restart, Work, Worker
from kainite.fleet.model.states import By, DutyStatus, WorkerStatus
from kainite.fleet.store.items import event_of, key_of, later_word, picture_of, record_of, text_of


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


@pytest.mark.parametrize(
    ("key", "text", "wrong"),
    [
        ("worker/w", "no JSON", "malformed"),
        ("worker/w", "[]", "object"),
        ("worker/w", '{"name":"w"}', "incarnation"),
        ("duty/d", '{"name":"d","work":{"tries":"often"},"status":"waiting"}', r"work\.tries"),
        ("message/w/1", '{"worker":"w","number":1.5,"command":"kill"}', "number"),
        ("lead", '{"generation":"1"}', "generation"),
    ],
)
def test_a_record_that_is_none_is_named_with_what_is_wrong(key: str, text: str, wrong: str) -> None:
    with pytest.raises(FleetError, match=f"record '{key}' does not read as written: .*{wrong}"):
        record_of(key, "v", text)


def test_a_line_of_a_history_that_is_none_is_told() -> None:
    with pytest.raises(FleetError, match="does not read as written"):
        event_of('{"subject":"planet"}')


def test_a_record_without_a_word_of_this_release_has_the_defaults_words_only_where_they_are_absent() -> None:
    worker = record_of("worker/w", "v", '{"name":"w","incarnation":"1"}')
    assert isinstance(worker, Worker)
    assert (worker.status, worker.extra) == (WorkerStatus.ALIVE, {})


@given(st.text(), st.sampled_from(["worker/w", "duty/d", "message/w/1", "lead"]))
def test_no_text_does_more_than_that(text: str, key: str) -> None:
    with contextlib.suppress(FleetError):
        record_of(key, "v", text)


FIELDS = st.text(max_size=8)
DUTIES = st.builds(
    Duty,
    name=FIELDS,
    work=st.builds(Work, command=st.lists(FIELDS, max_size=3).map(tuple), weight=st.floats(0.1, 9), ready=FIELDS),
    status=st.sampled_from(DutyStatus),
    error=st.sampled_from(["", "unknown", "why"]),
    halted=st.booleans(),
    version=st.just("v"),
)


@given(DUTIES)
def test_a_duty_reads_as_it_was_written(duty: Duty) -> None:
    assert record_of(key_of(duty), "v", text_of(duty)) == duty


def test_a_text_that_happens_to_be_unknown_is_kept() -> None:
    """Replaces an earlier text by ``unknown`` where the field is no list of words."""
    duty = record_of("duty/d", "v", '{"name":"d","work":{},"status":"running","error":"why"}')
    assert isinstance(duty, Duty)
    assert orjson.loads(text_of(replace(duty, error="unknown")))["error"] == "unknown"


def test_a_record_of_an_unknown_kind_is_passed_over() -> None:
    assert record_of("shift/s", "v", "{}") is None


def test_names_may_hold_slashes() -> None:
    assert key_of(Worker("host/1", "i")) == "worker/host/1"
    assert picture_of([Worker("host/1", "i")]).workers["host/1"].incarnation == "i"


@pytest.mark.parametrize("key", ["worker/w", "duty/d"])
def test_a_status_of_a_later_release_is_unknown_and_kept(key: str) -> None:
    text = '{"name":"x","incarnation":"1","work":{"command":["true"]},"status":"resting"}'
    record = record_of(key, "v", text)
    assert isinstance(record, Worker | Duty)
    assert record.status == "unknown"
    assert later_word(record) == "resting"
    assert orjson.loads(text_of(record))["status"] == "resting"


def test_a_status_that_this_release_writes_replaces_an_unknown_one() -> None:
    worker = record_of("worker/w", "v", '{"name":"w","incarnation":"1","status":"resting"}')
    assert isinstance(worker, Worker)
    dead = worker.become(WorkerStatus.DEAD, By.LEADER)
    assert (orjson.loads(text_of(dead))["status"], later_word(dead)) == ("dead", "dead")


def test_what_a_later_release_says_of_the_work_is_kept() -> None:
    work = {"command": ["true"], "restart": "on-sundays", "memory": 7}
    duty = record_of("duty/d", "v", orjson.dumps({"name": "d", "work": work, "status": "running"}).decode())
    assert isinstance(duty, Duty)
    assert duty.work.restart is Restart.UNKNOWN
    written = orjson.loads(text_of(replace(duty, halted=True)))
    assert (written["work"]["restart"], written["work"]["memory"], written["halted"]) == ("on-sundays", 7, True)
