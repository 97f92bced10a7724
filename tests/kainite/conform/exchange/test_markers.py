"""Processors that each break the markers dialect in one way: ``kainite conform`` names the case, and says what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.conform import CaseVerdict, ConformOptions, run
from support.broken_children import PATIENT, markers_child, tried

MARKERS = {
    ("no EOP", "single"): ("one-message", "wrote something for a message, but no EOP in 4 s"),
    ("EOP first", "single"): ("several-messages", "wrote EOM after"),
    ("EOP for each message", "supervisor"): ("whole-batch", "while nothing was asked of it"),
    ("no flush", "single"): ("one-message", "only when its input had ended"),
    ("start banner", "single"): ("one-message", "a start banner perhaps"),
    ("byte-order mark", "single"): ("one-message", "a byte-order mark"),
    ("EOB needs EOM", "supervisor"): ("one-message", "noticed EOB only when an EOM followed"),
    ("EOM in a payload", "single"): (
        "one-message",
        "gave what is no delta, so its unit would fail: no JSON, does an EOM stand",
    ),
    ("extra BNC", "worker"): ("whole-batch", "wrote BNC after 100 good messages, which are a whole batch"),
    ("answers before it reads", "single"): ("reads-first", "wrote its answer before it had read its input"),
    ("dies", "single"): ("one-message", "ended with status 3 in a message; its last words on stderr: no such table"),
    ("hangs", "single"): ("one-message", "did not answer a message in 4 s"),
    ("one late", "single"): (
        "same-deltas",
        "gave 3 deltas for records that came at once, and 2 for the same records 1",
    ),
    ("drops partial batches", "worker"): ("same-deltas", "gave 100 deltas for records that came at once, and 0"),
    ("drops partial batches", "supervisor"): ("same-deltas", "gave 100 deltas for records that came at once, and 0"),
    ("ignores EOB", "worker"): ("one-message", "did not answer a message in 4 s after EOB: EOB ends the batch"),
    ("silent to an empty batch", "worker"): ("empty-batch", "wrote no EOP for an empty batch in 4 s"),
    ("silent to an empty batch", "supervisor"): ("empty-batch", "wrote no EOP for an empty batch in 4 s"),
    ("silent to a bad message", "single"): ("bad-message", "wrote no EOP for a message that is no record in 4 s"),
    ("BNC with the answer", "worker"): ("whole-batch", "after BNC, which asks for one more message"),
    ("dies of an empty message", "single"): ("empty-message", "stops its shard for ever (markersOnDeath=retry)"),
}


@pytest.mark.parametrize(("fault", "batching"), MARKERS)
def test_a_fault_of_markers_is_found(fault: str, batching: str) -> None:
    case, said = MARKERS[fault, batching]

    result = tried(markers_child(fault, batching), case, fault)

    assert result.verdict is CaseVerdict.FAIL
    assert said in result.text
    assert any(" → " in line or " ← " in line for line in result.exchange)


def test_a_bad_message_that_is_dropped_is_a_note() -> None:
    dropped = tried(markers_child("drops bad messages"), "bad-message")

    assert dropped.verdict is CaseVerdict.NOTE
    assert "answered nothing, as if all were well" in dropped.text


@pytest.mark.parametrize("batching", ["single", "worker"])
def test_a_child_that_loses_nothing_passes(batching: str) -> None:
    assert tried(markers_child("none", batching), "same-deltas").verdict is CaseVerdict.PASS


@pytest.mark.parametrize("batching", ["single", "worker", "supervisor"])
def test_a_fault_free_markers_child_passes_all_cases_but_the_optional_one(batching: str) -> None:
    child = markers_child("none", batching)
    report = run(ConformOptions(child, limits=replace(PATIENT, hold=None), large=100_000))

    assert {result.name: result.text for result in report.results if result.verdict > CaseVerdict.NOTE} == {}
    assert {result.name for result in report.results if result.verdict is CaseVerdict.NOTE} <= {"eob-eom"}
