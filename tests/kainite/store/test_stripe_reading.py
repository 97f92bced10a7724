"""Reading a striped partition while an owner appends and truncates: no hole is passed, nothing durable is left out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.log.contract import Fork, Slot
from kainite.store.stripe_reading import striped_slots
from kainite.store.striping import stripe_of


class Stripes:
    """Slots in stripes; before each page that is read, ``meanwhile`` runs. A weak read does not see the latest ones."""

    def __init__(self, fork: Fork) -> None:
        self.fork = fork
        self.slots: dict[int, Slot] = {}
        self.next_id = fork.at
        self.unseen = 0
        self.meanwhile: Callable[[], None] = lambda: None

    def append(self, count: int) -> None:
        self.slots[self.next_id] = Slot(self.next_id, 1, count, "")
        self.next_id += count

    def truncate(self, below: int) -> None:
        lasts = {max(self._of(stripe), default=None) for stripe in range(self.fork.stripes)}
        gone = [at for at, slot in self.slots.items() if slot.next_id <= below and at not in lasts]
        for at in gone:
            del self.slots[at]

    def upwards(self, stripe: int, first_id: int, last_id: int | None, *, strong: bool) -> Iterator[tuple[Slot, None]]:
        while True:
            self.meanwhile()
            seen = self._of(stripe, strong=strong)
            page = [at for at in sorted(seen) if first_id <= at <= (at if last_id is None else last_id)][:2]
            found = [self.slots[at] for at in page]
            yield from ((slot, None) for slot in found)
            if len(found) < 2:
                return
            first_id = found[-1].first_id + 1

    def holding(self, stripe: int, at: int, *, strong: bool) -> tuple[Slot, None] | None:
        self.meanwhile()
        found = max((first for first in self._of(stripe, strong=strong) if first <= at), default=None)
        return None if found is None else (self.slots[found], None)

    def read(self, first_id: int, *, strong: bool, last_id: int | None = None) -> list[Slot]:
        return [slot for slot, _ in striped_slots(self, self.fork, first_id, last_id, strong=strong)]

    def _of(self, stripe: int, *, strong: bool = True) -> list[int]:
        shown = sorted(self.slots) if strong else sorted(self.slots)[: max(0, len(self.slots) - self.unseen)]
        return [at for at in shown if stripe_of(at, self.fork) == stripe]


def is_gapless(slots: list[Slot], first_id: int) -> bool:
    begins = not slots or slots[0].first_id <= first_id < slots[0].next_id
    return begins and all(after.first_id == before.next_id for before, after in itertools.pairwise(slots))


FORKS = st.builds(Fork, st.integers(0, 7), st.integers(2, 5), st.integers(1, 6))


@given(FORKS, st.lists(st.integers(1, 9), max_size=25), st.lists(st.integers(0, 3), max_size=80), st.data())
def test_a_strong_read_has_all_that_was_durable_at_its_beginning(
    fork: Fork, counts: list[int], more: list[int], data: st.DataObject
) -> None:
    stripes = Stripes(fork)
    for count in counts:
        stripes.append(count)
    steps = iter(more)

    def append_some() -> None:
        for _ in range(next(steps, 0)):
            stripes.append(2)

    first_id = data.draw(st.integers(fork.at, stripes.next_id))
    durable = [slot for slot in stripes.slots.values() if slot.next_id > first_id]
    stripes.meanwhile = append_some
    found = stripes.read(first_id, strong=True)
    assert found[: len(durable)] == durable
    assert is_gapless(found, first_id)


@given(FORKS, st.lists(st.integers(1, 9), min_size=1, max_size=25), st.integers(0, 3), st.data())
def test_a_weak_read_lacks_the_last_slots_at_most(
    fork: Fork, counts: list[int], unseen: int, data: st.DataObject
) -> None:
    stripes = Stripes(fork)
    for count in counts:
        stripes.append(count)
    stripes.unseen = unseen
    first_id = data.draw(st.integers(fork.at, stripes.next_id))
    last_id = data.draw(st.none() | st.integers(first_id, stripes.next_id))
    durable = [
        slot
        for slot in stripes.slots.values()
        if slot.next_id > first_id and (last_id is None or slot.first_id <= last_id)
    ]
    found = stripes.read(first_id, strong=False, last_id=last_id)
    assert found == durable[: len(found)]
    assert len(found) >= len(durable) - unseen


@pytest.mark.parametrize("strong", [True, False])
@given(fork=FORKS, counts=st.lists(st.integers(1, 9), min_size=1, max_size=25), data=st.data())
def test_a_reader_whose_place_was_truncated_is_not_left_waiting(
    strong: bool, fork: Fork, counts: list[int], data: st.DataObject
) -> None:
    stripes = Stripes(fork)
    for count in counts:
        stripes.append(count)
    first_id = data.draw(st.integers(fork.at, stripes.next_id - 1))
    stripes.truncate(data.draw(st.integers(first_id, stripes.next_id)))
    found = stripes.read(first_id, strong=strong)
    whole = is_gapless(found, first_id) and found[-1].next_id == stripes.next_id if found else False
    ends = [first_id, *(slot.next_id for slot in found)]
    hole = any(slot.first_id > end for slot, end in zip(found, ends, strict=False))
    assert whole or hole


@given(FORKS, st.integers(0, 30))
def test_a_fence_ends_the_log(fork: Fork, count: int) -> None:
    stripes = Stripes(fork)
    for _ in range(count):
        stripes.append(3)
    stripes.append(0)
    for strong in (True, False):
        assert len(stripes.read(fork.at, strong=strong)) == count
        assert stripes.read(stripes.next_id, strong=strong) in ([], [stripes.slots[stripes.next_id]])
