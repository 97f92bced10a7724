"""Processors that break the protocol in one way each: ``kainite conform`` names the case, and says what it is.

The programs are in ``tests/children/broken``. Each runs through the one case that must fail, with a limit that is short
where the child is silent, and long where it is only slow to start.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kainite.base.markers import Batching
from kainite.conform import CaseResult, CaseVerdict, ConformOptions, run
from kainite.conform.exchange.child_run import AnswerLimits
from kainite.settings import ChildProtocol, ChildSettings, MarkersSettings

BROKEN = Path(__file__).parents[2] / "children" / "broken"
SILENT = AnswerLimits(timeout=4.0, slow=60.0)
PATIENT = AnswerLimits(timeout=60.0, slow=60.0, hold=20.0)

JSON_LINES = {
    "wrong action": ("one-record", "answered 'process', but was asked 'processRecords'"),
    "answers before it reads": ("reads-first", "wrote its answer before it had read its input"),
    "answers twice": ("one-record", "one answer too many"),
    "does not read the reply": ("checkpoint", "before it had read the answer to its checkpoint"),
    "no flush": ("initialize", "only when its input had ended"),
    "no line end": ("initialize", "only when its input had ended"),
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
MARKERS = {
    ("no EOP", "single"): ("one-message", "wrote something for a message, but no EOP in 4 s"),
    ("EOP first", "single"): ("several-messages", "wrote EOM after"),
    ("EOP for each message", "supervisor"): ("whole-batch", "while nothing was asked of it"),
    ("no flush", "single"): ("one-message", "only when its input had ended"),
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
SILENTLY = {
    "no flush", "no line end", "hangs", "ignores the end of its input", "no EOP", "EOB needs EOM", "pretty-printed",
    "byte-order mark", "ignores EOB", "silent to an empty batch", "silent to a bad message",
}  # fmt: skip


def tried(child: ChildSettings, case: str, fault: str) -> CaseResult:
    limits = SILENT if fault in SILENTLY else PATIENT
    report = run(ConformOptions(child, limits=limits, large=1_000_000, only=(case,)))
    assert [result.name for result in report.results] == [case]
    return report.results[0]


def json_lines_child(fault: str) -> ChildSettings:
    return ChildSettings((sys.executable, "-S", str(BROKEN / "json_lines.py"), fault))


def markers_child(fault: str, batching: str = "single") -> ChildSettings:
    command = (sys.executable, "-S", str(BROKEN / "markers.py"), fault)
    return ChildSettings(
        command, protocol=ChildProtocol.MARKERS, markers=replace(MarkersSettings(), batching=Batching(batching))
    )


@pytest.mark.parametrize("fault", JSON_LINES)
def test_a_fault_of_json_lines_is_found(fault: str) -> None:
    case, said = JSON_LINES[fault]

    result = tried(json_lines_child(fault), case, fault)

    assert result.verdict is CaseVerdict.FAIL
    assert said in result.text
    assert any(" → " in line or " ← " in line for line in result.exchange)


@pytest.mark.parametrize(("fault", "batching"), MARKERS)
def test_a_fault_of_markers_is_found(fault: str, batching: str) -> None:
    case, said = MARKERS[fault, batching]

    result = tried(markers_child(fault, batching), case, fault)

    assert result.verdict is CaseVerdict.FAIL
    assert said in result.text
    assert any(" → " in line or " ← " in line for line in result.exchange)


def test_what_is_allowed_but_unwise_is_a_note() -> None:
    shutdown = tried(json_lines_child("no checkpoint before a shutdown"), "shutdown-requested", "")
    badly = tried(json_lines_child("ends badly"), "end-of-input", "")
    dropped = tried(markers_child("drops bad messages"), "bad-message", "")

    assert [result.verdict for result in (shutdown, badly, dropped)] == [CaseVerdict.NOTE] * 3
    assert "asked for no checkpoint in shutdownRequested" in shutdown.text
    assert "ended with status 5" in badly.text
    assert "answered nothing, as if all were well" in dropped.text


def test_deltas_that_differ_from_call_to_call_are_a_note() -> None:
    result = tried(json_lines_child("marks its deltas"), "same-deltas", "")

    assert result.verdict is CaseVerdict.NOTE
    assert "gives other deltas for the same records in a call each" in result.text


@pytest.mark.parametrize("child", [json_lines_child("emits"), markers_child("none"), markers_child("none", "worker")])
def test_a_child_that_loses_nothing_passes(child: ChildSettings) -> None:
    assert tried(child, "same-deltas", "").verdict is CaseVerdict.PASS


def test_cases_that_build_on_a_failed_one_are_left_out() -> None:
    report = run(ConformOptions(json_lines_child("dies"), limits=replace(PATIENT, hold=None), large=10_000))
    verdicts = {result.name: result.verdict for result in report.results}

    assert verdicts["one-record"] is CaseVerdict.FAIL
    assert verdicts["large"] is CaseVerdict.SKIPPED
    assert verdicts["lease-lost-at-once"] is CaseVerdict.PASS
    assert not report.ok()


def test_a_fault_free_child_passes_each_of_these_cases() -> None:
    cases = tuple({case for case, _ in JSON_LINES.values()})
    report = run(
        ConformOptions(json_lines_child("none"), limits=replace(PATIENT, hold=None), large=1_000_000, only=cases)
    )

    assert {result.name: result.text for result in report.results if result.verdict > CaseVerdict.PASS} == {}


@pytest.mark.parametrize("batching", ["single", "worker", "supervisor"])
def test_a_fault_free_markers_child_passes_all_cases_but_the_optional_one(batching: str) -> None:
    child = markers_child("none", batching)
    report = run(ConformOptions(child, limits=replace(PATIENT, hold=None), large=100_000))

    assert {result.name: result.text for result in report.results if result.verdict > CaseVerdict.NOTE} == {}
    assert {result.name for result in report.results if result.verdict is CaseVerdict.NOTE} <= {"eob-eom"}
