"""Checkpoints, lines and failures of a record processor that runs in the frame, as a real child process."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.child.json_lines.dialect import MAX_LINE
from kainite.processors import frame
from kainite.processors.frame import LINE_BYTES, Emitted, Record, _cut_lines, _emit_lines, refused
from kainite.uow.admission import Admission
from kainite.uow.signing import Signing
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
    (line,) = _emit_lines(iter([{"row": {"column": value}}]))
    assert line.isascii()
    assert repr(json.loads(line)) == repr(json.loads(json.dumps(action)))


def test_a_value_that_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError):
        list(_emit_lines(iter([{"row": {"at": datetime.now(UTC)}}])))


def lines_of(*sizes: int) -> list[list[dict[str, Any]]]:
    """Returns the objects of each line, for deltas with texts of such sizes."""
    deltas = ({"uow": f"T-{n}", "table": "t", "row": {"v": "x" * size}} for n, size in enumerate(sizes))
    return [json.loads(line)["deltas"] for line in _emit_lines(deltas)]


VALUES = st.one_of(
    st.none(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=8), st.lists(st.floats(), max_size=2)
)
OBJECTS = st.lists(st.dictionaries(st.sampled_from(["uow", "row", "a", "null"]), VALUES, max_size=3), max_size=12)


@given(OBJECTS, st.integers(1, 4), st.integers(1, 90), st.integers(0, 2000))
def test_objects_that_are_written_together_give_the_lines_that_one_by_one_they_give(
    objects: list[Emitted], deltas: int, line: int, answer: int
) -> None:
    bounds = {"DELTAS_PER_LINE": deltas, "LINE_BYTES": line, "MAX_EMITTED": frame.ROOM_FOR_CAUSES + answer}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in bounds.items():
            patch.setattr(frame, name, value)
        emitted = [{"uow": "T", **one} for one in objects]
        assert list(_emit_lines(iter(emitted))) == list(_cut_lines(iter(emitted), answer))


def test_lines_are_bounded_by_bytes_too_and_keep_the_order() -> None:
    lines = lines_of(*[LINE_BYTES // 3] * 7)
    assert [len(line) for line in lines] == [2, 2, 2, 1]
    assert [delta["uow"] for line in lines for delta in line] == [f"T-{n}" for n in range(7)]


def test_a_delta_too_long_for_a_line_fails_its_unit_alone_and_names_the_limit() -> None:
    (before, lost, behind) = (delta for line in lines_of(1, MAX_LINE, 1) for delta in line)
    assert (before["uow"], lost["uow"], behind["uow"]) == ("T-0", "T-1", "T-2")
    assert f"a line of a record processor takes {MAX_LINE}" in lost["refused"]["cause"]
    assert "refused" not in before
    assert "refused" not in behind


def test_deltas_too_long_for_one_answer_fail_their_units_and_the_answer_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most = frame.ROOM_FOR_CAUSES + 10_000
    monkeypatch.setattr(frame, "MAX_EMITTED", most)
    deltas = [delta for line in lines_of(*[4_000] * 4) for delta in line]
    assert ["refused" in delta for delta in deltas] == [False, False, True, True]
    assert f"its answer to one call {most}" in deltas[-1]["refused"]["cause"]


def causes_of(*emitted: Emitted) -> dict[str, list[str]]:
    """Returns the causes for which the log fails units, by unit."""
    admission = Admission(Signing(None))
    for line in _emit_lines(iter(emitted)):
        admission.feed(line)
    return {unit.uow: [reject.cause for reject in unit.rejects] for unit in admission.take("nobody")}


def test_what_a_processor_refuses_fails_its_unit_with_the_processors_cause() -> None:
    record = Record(b'{"op":"truncate"}', "k", "s:1.0")
    assert causes_of(refused("T-1", "TRUNCATE names no rows", record)) == {"T-1": ["TRUNCATE names no rows"]}


def test_a_delta_too_long_for_a_line_fails_its_unit_with_its_length() -> None:
    ((uow, (cause,)),) = causes_of({"uow": "T-1", "table": "t", "row": {"v": "x" * MAX_LINE}}).items()
    assert uow == "T-1"
    assert cause.startswith("a change of t takes 671089")
