"""A log is one stream's, until a person has it adopt another one."""

from __future__ import annotations

import pytest

from kainite.base.errors import LogRequestError
from kainite.base.position import Position
from kainite.log.format.entry import EntryKind, PositionMeta
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.owner.collected_stream import stream_entries


def collected(state: FoldedLog) -> None:
    Journal(state, 0).write(EntryKind.POSITION, PositionMeta.of("s0", Position(7)))


def test_a_new_log_is_the_first_streams_that_comes() -> None:
    state = FoldedLog()
    assert len(stream_entries(state, "one", "0 of t", adopt=False)) == 1
    assert state.stream == "one"
    assert list(stream_entries(state, "one", "0 of t", adopt=False)) == []


def test_another_streams_positions_are_refused() -> None:
    state = FoldedLog()
    stream_entries(state, "one", "0 of t", adopt=False)
    collected(state)
    with pytest.raises(LogRequestError, match="log partition 0 of t has collected the stream one, and this is two"):
        stream_entries(state, "two", "0 of t", adopt=False)
    assert stream_entries(state, "two", "0 of t", adopt=True)
    assert (state.stream, state.positions) == ("two", {})


@pytest.mark.parametrize(("adopt", "kept"), [(False, True), (True, False)])
def test_positions_of_a_stream_that_was_never_noted_are_dropped_only_where_another_is_adopted(
    adopt: bool, kept: bool
) -> None:
    state = FoldedLog()
    collected(state)
    stream_entries(state, "one", "0 of t", adopt=adopt)
    assert (state.stream, bool(state.positions)) == ("one", kept)
