"""What people did, as the log remembers it, and the pause."""

from __future__ import annotations

import msgspec
import pytest

from kainite.log.format.entry import Entry, EntryKind, OperationKind, OperationMeta, OperationResult
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.log.state.operations import MOST, MOST_TEXT, DoneOperations, bounded, paused_in_words


def operation(number: int, what: str = OperationKind.RETRY, result: str = OperationResult.DONE) -> OperationMeta:
    return OperationMeta(f"r{number}", what, "unit T", "ann@host", "it is mended", 1_000 * number, result, "done")


def after(*operations: OperationMeta) -> DoneOperations:
    found = DoneOperations()
    for one in operations:
        found.add(one)
    return found


def test_the_latest_operations_are_remembered_and_each_as_it_is_now() -> None:
    found = after(*(operation(number, result=OperationResult.ASKED) for number in range(MOST + 2)))
    assert [one.id for one in found.all()] == [f"r{number}" for number in range(2, MOST + 2)]
    found.add(operation(7))
    assert (len(found), found.find("r0")) == (MOST, None)
    assert found.find("r7") == operation(7)


def test_an_operation_under_way_is_not_forgotten_for_others() -> None:
    bulk = msgspec.structs.replace(operation(0, result=OperationResult.ASKED), through=3, below=9)
    found = after(bulk, *(operation(number) for number in range(1, MOST + 9)))
    assert (found.find("r0"), len(found)) == (bulk, MOST)
    found.add(msgspec.structs.replace(bulk, result=OperationResult.DONE))
    found.add(operation(MOST + 9))
    assert (found.find("r0"), len(found)) == (None, MOST)
    many = after(*(msgspec.structs.replace(bulk, id=f"b{number}") for number in range(MOST + 5)))
    assert (len(many), many.find("b4")) == (MOST, None)


PAUSE, RESUME = OperationKind.PAUSE, OperationKind.RESUME


@pytest.mark.parametrize(
    ("operations", "paused"),
    [
        ([operation(1, PAUSE)], "r1"),
        ([operation(1, PAUSE), operation(2, RESUME)], None),
        ([operation(1, PAUSE), operation(2, PAUSE, OperationResult.REFUSED)], "r1"),
        ([operation(1, PAUSE), operation(2, RESUME, OperationResult.REFUSED)], "r1"),
        ([operation(1, PAUSE, OperationResult.ASKED)], None),
        ([operation(1, PAUSE), *(operation(number) for number in range(2, MOST + 9))], "r1"),
    ],
)
def test_a_pause_lasts_until_applying_is_resumed(operations: list[OperationMeta], paused: str | None) -> None:
    pause = after(*operations).pause
    assert (pause.id if pause else None) == paused


def test_a_snapshot_has_the_operations_and_the_pause() -> None:
    state = FoldedLog()
    for one in (operation(1, PAUSE), *(operation(number) for number in range(2, MOST + 9))):
        state.apply(state.next_id, Entry(EntryKind.OPERATION, one), 0)
    loaded = snapshot.load(snapshot.dump(state))
    assert loaded.operations.all() == state.operations.all()
    assert loaded.operations.pause == operation(1, PAUSE)


def test_texts_are_bounded_whoever_asks() -> None:
    long = msgspec.structs.replace(operation(1), why="w" * 10_000, who="\u202e" * 600)
    assert {len(bounded(long).why), len(bounded(long).who)} == {MOST_TEXT}
    assert bounded(operation(1)) == operation(1)


def test_a_pause_in_words() -> None:
    assert paused_in_words(operation(0, PAUSE)) == "paused by ann@host since 1970-01-01 00:00:00+00:00: it is mended"
