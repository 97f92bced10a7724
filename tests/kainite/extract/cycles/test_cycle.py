"""A cycle of each kind, with crashes between any two steps and inside the puts: nothing lost, repeats recognisable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Protocol

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import ChildProtocolError
from kainite.extract.cycles.cycle import Ask, Cycle, CycleState, Listen, Over, PutMessages, Store
from kainite.extract.offsets.place import Place, moment_of, moment_text
from kainite.settings import ExtractOffsets

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Fault(Enum):
    """A fault in place of a step, or in the midst of one."""

    NONE = auto()
    CRASH_BEFORE = auto()
    CRASH_AFTER = auto()  # done, and nobody learned of it
    DEATH = auto()  # of the extractor


def unit(number: int) -> list[bytes]:
    """Returns the records of the source's n-th transaction: as many as its number says, and the end."""
    size = number % 3
    deltas = [{"uow": f"T{number}", "ordinal": ordinal} for ordinal in range(size)]
    return [orjson.dumps(body) for body in [*deltas, {"uow": f"T{number}", "end": True, "count": size}]]


class Child(Protocol):
    """An extractor, as a model."""

    def die(self) -> None: ...

    def answer(self, request: bytes, now: datetime) -> list[bytes]: ...


@dataclass
class OffsetChild:
    """An extractor that is told where to begin, and gives as many units as ``sizes`` say: its answers differ."""

    units: int
    sizes: Iterator[int]

    def die(self) -> None: ...

    def answer(self, request: bytes, now: datetime) -> list[bytes]:
        start = orjson.loads(request)["start"]
        end = min(self.units, start + next(self.sizes))
        messages = [message for number in range(start, end) for message in unit(number)]
        return [*messages, orjson.dumps({"offset": end})] if end > start else []


@dataclass
class TimeChild:
    """An extractor whose n-th transaction committed n seconds after the beginning."""

    units: int

    def die(self) -> None: ...

    def answer(self, request: bytes, now: datetime) -> list[bytes]:
        asked = orjson.loads(request)
        begin, end = (moment_of(asked[name]) for name in ("start", "end"))
        assert begin < end <= now, "only what has happened is asked for"
        return [m for n in range(self.units) if begin <= BEGIN + n * SECOND < end for m in unit(n)]


@dataclass
class WorkerChild:
    """An extractor that keeps its own offset on a disk, and stores it when the next request comes."""

    units: int
    sizes: Iterator[int]
    stored: int = 0
    given: int | None = None

    def die(self) -> None:
        self.given = None

    def answer(self, request: bytes, now: datetime) -> list[bytes]:
        assert request == b""
        self.stored = self.stored if self.given is None else self.given
        self.given = min(self.units, self.stored + next(self.sizes))
        return [message for number in range(self.stored, self.given) for message in unit(number)]


@dataclass
class World:
    """The parts that outlive a crash, and the faults to come."""

    offsets: ExtractOffsets
    child: Child
    faults: Iterator[Fault]
    place: Place
    hold_bytes: int = 10**9
    stream: list[bytes] = field(default_factory=list)
    now: datetime = BEGIN

    def cycle(self) -> bool:
        """Tries one cycle; returns False when it did not get to its end."""
        self.now += SECOND
        cycle = Cycle(self.offsets, self.place, self.now, self.hold_bytes)
        answer: Iterator[bytes] = iter(())
        while not isinstance(step := cycle.step(), Over):
            fault = next(self.faults, Fault.NONE)
            if fault in (Fault.CRASH_BEFORE, Fault.DEATH):
                self.child.die()
                return False
            match step:
                case Ask(request):
                    answer = iter(self.child.answer(request, self.now))
                case Listen():
                    message = next(answer, None)
                    cycle.end() if message is None else cycle.message(message)
                    continue
                case PutMessages(messages):
                    kept = len(messages) // 2 if fault is Fault.CRASH_AFTER else len(messages)
                    self.stream += messages[-kept:] if kept else ()  # PutRecords keeps no order either
                case Store(place):
                    self.place = place
            if fault is Fault.CRASH_AFTER:
                self.child.die()
                return False
            cycle.done()
        return True

    def run(self, units: int) -> None:
        """Runs cycles until the faults are over, and then until there has been time for all units."""
        for _ in range(500):
            self.cycle()
            if self.now > BEGIN + (units + 2) * SECOND and set(self.stream) >= expected(units):
                return


def expected(units: int) -> set[bytes]:
    return {message for number in range(units) for message in unit(number)}


REAL_FAULTS: list[Fault] = [fault for fault in Fault if fault is not Fault.NONE]


def _in_a_row(gaps: list[tuple[int, Fault]]) -> list[Fault]:
    return [fault for gap, last in gaps for fault in [Fault.NONE] * gap + [last]]


# Each fault after some steps that go well: were faults as frequent as luck, no cycle would get to its end.
faults = st.lists(st.tuples(st.integers(0, 12), st.sampled_from(tuple(REAL_FAULTS))), max_size=20).map(_in_a_row)
sizes = st.lists(st.integers(0, 4), min_size=1, max_size=30)
units = st.integers(0, 12)
holds = st.sampled_from([0, 60, 10**9])


def endless(values: list[int]) -> Iterator[int]:
    yield from values
    while True:
        yield 2


@given(faults, sizes, units, holds)
def test_offsets_of_the_child_lose_nothing_and_repeat_only_what_is_recognised(
    fault: list[Fault], size: list[int], count: int, hold: int
) -> None:
    world = World(ExtractOffsets.KAINITE, OffsetChild(count, endless(size)), iter(fault), Place(0), hold)
    world.run(count)
    assert set(world.stream) == expected(count)
    if not fault:
        assert len(world.stream) == len(set(world.stream)), "without a fault nothing comes twice"
        assert world.place == Place(count)


@given(faults, units, holds)
def test_ranges_of_time_lose_nothing_and_are_asked_for_again_as_they_were(
    fault: list[Fault], count: int, hold: int
) -> None:
    world = World(ExtractOffsets.TIME, TimeChild(count), iter(fault), Place(moment_text(BEGIN)), hold)
    world.run(count)
    assert set(world.stream) == expected(count)
    if not fault:
        assert len(world.stream) == len(set(world.stream))


@given(faults, sizes, units, holds)
def test_offsets_of_the_worker_lose_nothing_when_it_stores_them_at_the_next_request(
    fault: list[Fault], size: list[int], count: int, hold: int
) -> None:
    world = World(ExtractOffsets.EXTRACTOR, WorkerChild(count, endless(size)), iter(fault), Place(None), hold)
    world.run(count)
    assert set(world.stream) == expected(count)


@given(faults, sizes, units)
def test_what_the_source_may_forget_is_on_the_stream(fault: list[Fault], size: list[int], count: int) -> None:
    """Checks that at every moment all units before the stored place have all of their records on the stream."""
    world = World(ExtractOffsets.KAINITE, OffsetChild(count, endless(size)), iter(fault), Place(0))
    for _ in range(40):
        world.cycle()
        assert expected(world.place.start) <= set(world.stream)


def test_a_dead_extractors_half_answer_leaves_nothing_on_the_stream() -> None:
    cycle = Cycle(ExtractOffsets.EXTRACTOR, Place(None), BEGIN, hold_bytes=100)
    cycle.step()
    cycle.done()
    cycle.message(b"x" * 100)
    assert isinstance(cycle.step(), Listen)
    cycle.message(b"y")
    assert cycle.step() == PutMessages((b"x" * 100, b"y")), "more than is to be held is put before the end"


def test_an_answer_without_messages_stores_and_puts_nothing() -> None:
    cycle = Cycle(ExtractOffsets.KAINITE, Place(7), BEGIN, hold_bytes=100)
    assert cycle.step() == Ask(b'{"start":7,"end":null}')
    cycle.done()
    cycle.message(b"")
    cycle.end()
    assert cycle.step() == Over()
    assert (cycle.stage, cycle.messages) == (CycleState.OVER, 0)


def test_an_offset_may_move_without_messages() -> None:
    cycle = Cycle(ExtractOffsets.KAINITE, Place(7), BEGIN, hold_bytes=100)
    cycle.step()
    cycle.done()
    cycle.message(b'{"offset":{"page":2}}')
    cycle.end()
    assert cycle.step() == Store(Place({"page": 2}))


def test_a_cycle_that_is_asked_for_ahead_says_what_is_stored() -> None:
    cycle = Cycle(ExtractOffsets.KAINITE, Place(7), BEGIN, 100, stored=Place(3))
    assert cycle.step() == Ask(b'{"start":7,"end":null,"stored":3}')
    cycle.done()
    cycle.message(b'{"offset":9}')
    cycle.end()
    assert (cycle.ahead, cycle.next_place) == (False, Place(9)), "the extractor does not say that it may be"


@pytest.mark.parametrize("offset", [None, b'{"offset":7}'])
def test_messages_without_a_new_offset_would_come_again_for_ever(offset: bytes | None) -> None:
    cycle = Cycle(ExtractOffsets.KAINITE, Place(7), BEGIN, hold_bytes=100)
    cycle.step()
    cycle.done()
    for message in (b"a", offset or b"b"):
        cycle.message(message)
    with pytest.raises(ChildProtocolError, match="messages and no new offset"):
        cycle.end()


def test_a_clock_that_went_back_asks_for_nothing() -> None:
    cycle = Cycle(ExtractOffsets.TIME, Place(moment_text(BEGIN + SECOND)), BEGIN, hold_bytes=100)
    assert cycle.step() == Over()
