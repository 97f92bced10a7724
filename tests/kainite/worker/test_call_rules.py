"""The rules of a call without log and lease: which steps follow from a request, and what never happens."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.checkpoint import TRIM_HORIZON, Checkpoint
from kainite.base.errors import ChildProtocolError
from kainite.base.position import Position
from kainite.child.events import Action, CheckpointRequested, Span
from kainite.worker.call_rules import (
    AppendCall,
    CallRules,
    EmitHandling,
    RefusedCheckpoint,
    Step,
    WriteCheckpoint,
)


def span(first: int, last: int) -> Span:
    return Span(Position(first), Position(last))


def at(sequence: int) -> WriteCheckpoint:
    return WriteCheckpoint(Checkpoint(str(sequence)))


CALL = AppendCall(span(4, 6))
REQUESTS = [
    # the request, what was emitted in the call before    steps before the reply    steps at the call's end
    ("3", False, (at(3),), ()),
    ("3", True, (at(3),), (CALL,)),
    ("5", False, (at(5),), ()),
    ("5", True, (), (CALL, at(5))),
    ("6", False, (), (at(6),)),
    ("6", True, (CALL, at(6)), ()),
    (None, False, (), (at(6),)),
    (None, True, (CALL, at(6)), ()),
]


def carry_out(rules: CallRules, steps: tuple[Step, ...]) -> None:
    for step in steps:
        match step:
            case AppendCall():
                rules.appended()
            case WriteCheckpoint(checkpoint):
                rules.written(checkpoint)


@pytest.mark.parametrize(("sequence", "emitted", "steps", "at_end"), REQUESTS)
def test_the_steps_of_a_request_for_the_second_call(
    sequence: str | None, emitted: bool, steps: tuple[Step, ...], at_end: tuple[Step, ...]
) -> None:
    rules = CallRules("s", collecting=True)
    rules.begin(Action.PROCESS_RECORDS, span(1, 3))
    assert rules.finished() == ()
    rules.begin(Action.PROCESS_RECORDS, span(4, 6))
    if emitted:
        assert rules.emitted() is EmitHandling.COLLECT
    decided = rules.requested(CheckpointRequested(sequence), TRIM_HORIZON)
    assert decided == steps
    assert not isinstance(decided, RefusedCheckpoint)
    carry_out(rules, decided)
    assert rules.finished() == at_end


@pytest.mark.parametrize(
    ("collecting", "reached", "handling"),
    [
        (True, None, EmitHandling.COLLECT),
        (True, 3, EmitHandling.COLLECT),
        (True, 6, EmitHandling.DISCARD),
        (True, 9, EmitHandling.DISCARD),
        (False, 9, EmitHandling.SKIP),
    ],
)
def test_what_becomes_of_an_emit(collecting: bool, reached: int | None, handling: EmitHandling) -> None:
    rules = CallRules("s", collecting=collecting)
    rules.begin(Action.PROCESS_RECORDS, span(4, 6), None if reached is None else Position(reached))
    assert rules.emitted() is handling


@dataclass
class Shard:
    """One shard's log and lease behind the rules, and children that do as they like.

    Attributes:
        durable: emits in the log; each is the last record that stood behind it.
        collected: emits of the current call that are not in the log.
    """

    rules: CallRules = field(default_factory=lambda: CallRules("s", collecting=True))
    stored: Checkpoint = TRIM_HORIZON
    reached: int = 0
    records: tuple[int, int] = (0, 0)
    done: int = 0
    collected: int = 0
    appends: list[tuple[int, int]] = field(default_factory=list)

    def carry_out(self, steps: tuple[Step, ...], *, lease_answers: bool = True) -> None:
        for step in steps:
            match step:
                case AppendCall(records):
                    self.append(records)
                case WriteCheckpoint(checkpoint) if lease_answers:
                    self.write(checkpoint)

    def append(self, records: Span) -> None:
        assert self.collected, "an append of nothing"
        assert (records.first.sequence, records.last.sequence) == self.records
        assert records.first.sequence > self.reached, "an append of records that the log holds"
        self.reached, self.collected = records.last.sequence, 0
        self.appends.append(self.records)
        self.rules.appended()

    def write(self, checkpoint: Checkpoint) -> None:
        assert self.stored < checkpoint, "a checkpoint goes back"
        assert checkpoint.position is not None
        assert not (self.collected and checkpoint.position.sequence > self.done), "a checkpoint beyond the log"
        self.stored = checkpoint
        self.rules.written(checkpoint)

    def call(self, length: int, steps: list[int | str], *, lease_answers: bool) -> bool:
        """Plays one call; returns whether the child survived it."""
        last = self.done + length
        if self.done < self.reached < last:
            last = self.reached  # the reader cuts batches at the log's position
        self.records, self.collected = (self.done + 1, last), 0
        self.rules.begin(Action.PROCESS_RECORDS, span(*self.records), Position(self.reached) if self.reached else None)
        for step in steps:
            if step == "die":
                return False
            if step == "emit":
                try:
                    self.collected += self.rules.emitted() is EmitHandling.COLLECT
                except ChildProtocolError:
                    return False
            else:
                decided = self.rules.requested(CheckpointRequested(str(step)), self.stored)
                if not isinstance(decided, RefusedCheckpoint):
                    self.carry_out(decided, lease_answers=lease_answers)
        self.carry_out(self.rules.finished(), lease_answers=lease_answers)
        assert not self.collected, "a call ended and its emits are not durable"
        self.done = last
        return True

    def restart(self) -> None:
        self.rules.abandoned()
        self.rules.begin(Action.INITIALIZE)
        position = self.stored.position
        self.done = position.sequence if position is not None else 0


steps = st.one_of(st.integers(1, 12), st.sampled_from(["emit", "emit", "die"]))
calls = st.tuples(st.integers(1, 4), st.lists(steps, max_size=6), st.booleans())


@given(st.lists(calls, max_size=8))
def test_no_checkpoint_passes_the_log_and_no_record_is_appended_twice(
    played: list[tuple[int, list[int | str], bool]],
) -> None:
    shard = Shard()
    shard.rules.begin(Action.INITIALIZE)
    for length, steps, lease_answers in played:
        if not shard.call(length, steps, lease_answers=lease_answers):
            shard.restart()
    assert all(before[1] < after[0] for before, after in zip(shard.appends, shard.appends[1:], strict=False))
