"""Processors that break a json-lines protocol in one way each: ``kainite conform`` names the case, and says what it is.

Each runs through the one case that must fail, with a limit that is short where the child is silent, and long where it
is only slow to start.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.conform import CaseVerdict, ConformOptions, run
from support.broken_children import PATIENT, json_lines_child, tried

JSON_LINES = {
    "wrong action": ("one-record", "answered 'process', but was asked 'processRecords'"),
    "answers before it reads": ("reads-first", "wrote its answer before it had read its input"),
    "answers twice": ("one-record", "one answer too many"),
    "does not read the reply": ("checkpoint", "before it had read the answer to its checkpoint"),
    "no flush": ("initialize", "only when its input had ended"),
    "no line end": ("initialize", "only when its input had ended"),
    "reads in blocks": ("initialize", "a read of a fixed size, such as 64 KiB, waits for more than there is"),
    "hangs": ("one-record", "did not answer processRecords in 4 s; did it flush its standard output?"),
    "dies": ("one-record", "ended with status 3 in processRecords; its last words on stderr: no such table: orders"),
    "is killed": ("one-record", "ended with signal SIGKILL in processRecords; without a word on stderr"),
    "closes its output": ("one-record", "closed its standard output in processRecords"),
    "prints junk": ("only-messages", "printed a line that is no message: 'got 1 records'"),
    "cannot take odd keys": ("odd-keys", "UnicodeEncodeError: 'ascii' codec can't encode"),
    "cannot take much": ("large", "its last words on stderr: too much"),
    "asks for ever": ("checkpoint-invalid-state", "asks for checkpoints without end in processRecords"),
    "emits too early": ("initialize", "emitted in initialize"),
    "emits nonsense": ("one-record", "gave what is no delta, so its unit would fail: 'op' must be one of"),
    "no checkpoint at the end": ("shard-ended", "asked for no checkpoint in shardEnded: the shard is never done"),
    "checkpoints a record at the end": ("shard-ended", "in shardEnded, which is not the shard's end"),
    "checkpoints a lost lease": ("lease-lost", "asked for a checkpoint in leaseLost"),
    "pretty-printed": ("initialize", "it spreads a message over several lines: write each JSON object on one line"),
    "byte-order mark": ("initialize", "a byte-order mark stands before its first message"),
    "speaks v0": ("one-record", "asks for a checkpoint with 'checkpoint', as json-lines-v0 does: set childProtocol="),
    "one too high": ("one-record", "that no daemon grants: '49590338271490256608559692538361571095921575989136588899'"),
    "rounded": ("one-record", "asked in processRecords for a checkpoint"),
    "drops the last record": ("same-deltas", "gave 3 deltas for records that came in one call, and 0"),
    "loses sub-records": ("same-deltas", "and 1 for the same records as one aggregate"),
    "invented": ("one-record", "no record that was delivered has the number 17"),
    "ignores the end of its input": ("end-of-input", "had not ended 4 s after the end of its input"),
}


@pytest.mark.parametrize("fault", JSON_LINES)
def test_a_fault_of_json_lines_is_found(fault: str) -> None:
    case, said = JSON_LINES[fault]

    result = tried(json_lines_child(fault), case, fault)

    assert result.verdict is CaseVerdict.FAIL
    assert said in result.text
    assert any(" → " in line or " ← " in line for line in result.exchange)


def test_what_is_allowed_but_unwise_is_a_note() -> None:
    shutdown = tried(json_lines_child("no checkpoint before a shutdown"), "shutdown-requested")
    badly = tried(json_lines_child("ends badly"), "end-of-input")

    assert [result.verdict for result in (shutdown, badly)] == [CaseVerdict.NOTE] * 2
    assert "asked for no checkpoint in shutdownRequested" in shutdown.text
    assert "ended with status 5" in badly.text


def test_deltas_that_differ_from_call_to_call_are_a_note() -> None:
    result = tried(json_lines_child("marks its deltas"), "same-deltas")

    assert result.verdict is CaseVerdict.NOTE
    assert "gives other deltas for the same records in a call each" in result.text


def test_a_child_that_loses_nothing_passes() -> None:
    assert tried(json_lines_child("emits"), "same-deltas").verdict is CaseVerdict.PASS


def test_a_fault_free_child_passes_each_of_these_cases() -> None:
    cases = tuple({case for case, _ in JSON_LINES.values()})
    report = run(
        ConformOptions(json_lines_child("none"), limits=replace(PATIENT, hold=None), large=1_000_000, only=cases)
    )

    assert {result.name: result.text for result in report.results if result.verdict > CaseVerdict.PASS} == {}
