"""Checkpoints, lines and failures of a record processor that runs in the frame, as a real child process."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from kainite.processors.frame import _emit_line
from support.postgresql_changes_child import UNIT, change, child
from support.processor_child import LIMIT, Child

__all__ = ["child"]


def test_a_large_batch_goes_out_in_order_on_lines_of_bounded_length(child: Child) -> None:
    deltas = child.records(*[change("insert", {}, {"v": str(n)}, {"v": 23}) for n in range(2500)])
    assert [delta["row"]["v"] for delta in deltas] == list(range(2500))


def test_it_checkpoints_at_most_once_a_second_and_when_it_must(child: Child) -> None:
    end = {**UNIT, "end": True}
    for _ in range(20):
        child.records(end)
    assert len(child.checkpoints) <= 2
    child.checkpoints.clear()
    child.ask(action="shutdownRequested")
    child.ask(action="shardEnded")
    assert [(c["sequenceNumber"], c["subSequenceNumber"]) for c in child.checkpoints] == [(None, None)] * 2


def test_a_throttled_checkpoint_at_the_shards_end_is_tried_again(child: Child) -> None:
    child.refusals = ["ThrottlingException"]
    child.ask(action="shardEnded")
    assert len(child.checkpoints) == 2


def test_a_lost_lease_is_no_error_and_end_of_input_ends_it(child: Child) -> None:
    child.refusals = ["ShutdownException"]
    child.ask(action="shutdownRequested")
    child.ask(action="leaseLost")
    assert child.process.stdin is not None
    child.process.stdin.close()
    assert child.process.wait(LIMIT) == 0


def test_a_refused_checkpoint_ends_it_with_the_reason(child: Child) -> None:
    child.refusals = ["InvalidStateException"]
    with pytest.raises(EOFError, match="checkpoint refused: InvalidStateException"):
        child.ask(action="shardEnded")
    assert child.process.wait(LIMIT) == 1


@pytest.mark.parametrize("body", [b"no json", b"\xff", {"uow": "x"}, change("insert", {}, {"v": "x"}, {"v": 23})])
def test_a_record_that_it_cannot_read_ends_it_so_that_nothing_is_skipped(child: Child, body: Any) -> None:
    with pytest.raises(EOFError, match="Error"):
        child.records({**UNIT, "end": True}, body)
    assert child.process.wait(LIMIT) == 1


@pytest.mark.parametrize(
    "value",
    [1, -0.0, 1e22, 0.1, "a", "ä", "\ud800", None, True, float("nan"), float("-inf"), 2**70, [{"x": []}], {1: 2}],
)
def test_values_go_out_as_the_standard_library_writes_them(value: Any) -> None:
    action = {"action": "emit", "deltas": [{"row": {"column": value}}]}
    line = _emit_line(action)
    assert line.isascii()
    assert repr(json.loads(line)) == repr(json.loads(json.dumps(action)))


def test_a_value_that_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError):
        _emit_line({"action": "emit", "deltas": [{"row": {"at": datetime.now(UTC)}}]})
