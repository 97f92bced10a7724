"""Where slots stand, and a search through all courses of a small model of owners, forks, late puts and truncations.

The model is the protocol of :mod:`kainite.store.striping` and :mod:`kainite.owner.mount` on bare places: each
owner claims, reads the tail key by key, fences, forks, appends, and truncates. A request may be done at any later time,
and answers may be lost. The search looks at every reachable state: no acknowledged batch is lost, no id is written
twice, no batch of a former owner comes behind the fence of a mounted one, and no tail is found that was overtaken
before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.log.contract import Fork, Slot
from kainite.store.striping import place, stripe_of, tail_of


@given(st.integers(0, 10**12), st.integers(2, 64), st.integers(1, 5_000), st.integers(0, 10**12))
def test_a_first_id_has_one_place(first_id: int, stripes: int, block: int, at: int) -> None:
    fork = Fork(at, stripes, block)
    found = place(first_id, fork)
    assert (found is None) == (first_id < at)
    assert found is None or found == stripe_of(first_id, fork) in range(stripes)
    assert place(first_id, None) is None


@given(st.integers(2, 16), st.integers(1, 2_000), st.integers(0, 10**9))
def test_ids_are_shared_out_evenly(stripes: int, block: int, start: int) -> None:
    fork = Fork(0, stripes, block)
    blocks = [stripe_of(start + number * block, fork) for number in range(3 * stripes)]
    assert {blocks.count(stripe) for stripe in range(stripes)} == {3}


def test_the_tail_is_the_highest_of_all_stripes_and_tells_of_the_fork() -> None:
    fork = Fork(4, 3, 2)
    spine = Slot(4, 7, 0, "fork", fork)
    lasts: dict[int | None, Slot | None] = {None: spine, 0: Slot(12, 7, 2, "a"), 1: None, 2: Slot(10, 7, 2, "b")}
    tail = tail_of(lasts.__getitem__)
    assert tail == lasts[0]
    assert tail is not None
    assert tail.fork == fork
    assert tail_of(lambda stripe: spine if stripe is None else None) == spine
    assert tail_of(lambda stripe: Slot(1, 1, 1, "n")) == Slot(1, 1, 1, "n")
    assert tail_of(lambda stripe: None) is None


# The model.

Place = tuple[int | None, int]
"""A key (None: the spine) and a first id; every batch has one entry."""


@dataclass(frozen=True, slots=True)
class Item:
    """What stands at a place: a fence ``f``, a fork ``s`` or a batch ``d``, its generation and its writer's token."""

    kind: str
    generation: int
    token: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Owner:
    """One mount. ``step`` is what it does next; ``seen``, ``unread``, ``floor`` belong to its reading of the tail."""

    step: str = "claim"
    generation: int = 0
    forked: bool = False
    at: int = 0
    mounted: int | None = None
    floor: int = -1
    low: int | None = None
    seen: tuple[int, int] = (-1, 0)
    unread: tuple[int | None, ...] = ()
    appends: int = 2
    sent: int = 0


@dataclass(frozen=True, slots=True)
class World:
    """A state: ``puts`` are under way, ``told`` acknowledged, ``gone`` truncated, last by generation ``trimmed``."""

    generation: int
    trimmed: int
    items: frozenset[tuple[Place, Item]]
    owners: tuple[Owner, ...]
    puts: frozenset[tuple[Place, Item, int]] = frozenset()
    told: frozenset[tuple[int, tuple[int, int]]] = frozenset()
    gone: frozenset[int] = frozenset()
    low_tail: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """The protocol, with its safeguards one by one."""

    stripes: int = 2
    first_alone_forks: bool = False
    fork_at_any_price: bool = False
    all_keys: bool = True
    keep_last_of_each_key: bool = True
    own_places: bool = True
    fences: bool = True
    fence_in_place: bool = True


def at_place(world: World, where: Place) -> Item | None:
    return next((item for place_, item in world.items if place_ == where), None)


def key_of(rules: Rules, first: int, owner: Owner) -> int | None:
    if not owner.forked:
        return None
    # The mutation: who counts its own batches does not know how many there were before.
    return (first if rules.own_places else owner.sent) % rules.stripes


def put(world: World, where: Place, item: Item) -> tuple[World, Item | None]:
    """Does a put under its condition; returns what is in the way, too."""
    there = at_place(world, where)
    if there is not None and there.token == item.token and there.kind == item.kind:
        return world, None
    match item.kind:
        case "d":
            may = there is None or (there.kind == "f" and there.generation == item.generation)
        case "s":
            may = there is not None and there.kind == "f" and there.generation == item.generation
        case _:
            may = there is None or (there.kind == "f" and there.generation < item.generation)
    if not may:
        return world, there or Item("none", 0)
    kept = frozenset(pair for pair in world.items if pair[0] != where)
    return replace(world, items=kept | {(where, item)}), None


def moved(world: World, number: int, owner: Owner) -> World:
    return replace(world, owners=(*world.owners[:number], owner, *world.owners[number + 1 :]))


def following(world: World, rules: Rules) -> Iterator[World]:
    """Yields the states that one step of anybody leads to."""
    for where, item, number in world.puts:
        yield arrived(world, where, item, number)
    for number, owner in enumerate(world.owners):
        if owner.step in STEPS:
            yield from STEPS[owner.step](world, rules, number, owner)
        if owner.low is not None:
            yield truncated(world, rules, number, owner)
        if owner.step not in ("claim", "over"):
            yield moved(world, number, replace(owner, step="over", low=None))  # killed; its puts go on


def arrived(world: World, where: Place, item: Item, number: int) -> World:
    """Does a put that was under way; its owner may be told later, by putting again."""
    after, _ = put(world, where, item)
    return replace(after, puts=after.puts - {(where, item, number)})


def claim(world: World, rules: Rules, number: int, owner: Owner) -> Iterator[World]:
    generation = world.generation + 1
    yield moved(replace(world, generation=generation), number, reading(world, replace(owner, generation=generation)))


def reading(world: World, owner: Owner) -> Owner:
    """Returns an owner that begins to look for the tail."""
    floor = max((first for (_, first), item in world.items if item.kind == "d"), default=-1)
    return replace(owner, step="read", unread=(None,), seen=(-1, 0), floor=floor)


def read(world: World, rules: Rules, number: int, owner: Owner) -> Iterator[World]:
    """Reads the last slot of one more key."""
    key, *rest = owner.unread
    lasts = [(first, item.generation) for (of, first), item in world.items if of == key]
    last = max(lasts, default=(-1, 0))
    forked = owner.forked
    if key is None and lasts and (kind := at_place(world, (None, last[0]))) is not None and kind.kind == "s":
        forked = True
        rest = list(range(rules.stripes if rules.all_keys else 1))
        last = (last[0] - 1, last[1])  # a fork takes no id
    elif lasts and (item := at_place(world, (key, last[0]))) is not None and item.kind == "f":
        last = (last[0] - 1, last[1])
    seen = max(owner.seen, last)
    read_on = replace(owner, forked=forked, seen=seen, unread=tuple(rest))
    if rest:
        yield moved(world, number, read_on)
    elif seen[0] < owner.floor:
        yield replace(world, low_tail=True)
    elif seen[1] > owner.generation:
        yield moved(world, number, replace(read_on, step="over"))
    else:
        yield moved(world, number, replace(read_on, step="fence", at=seen[0] + 1))


def fence(world: World, rules: Rules, number: int, owner: Owner) -> Iterator[World]:
    whole = rules.stripes == 1 or (rules.first_alone_forks and number > 0)
    then = "append" if owner.forked or whole else "fork"
    mine = replace(owner, step=then, mounted=owner.at if then == "append" else None)
    if not rules.fences:
        yield moved(world, number, mine)
        return
    key = key_of(rules, owner.at, owner)
    where = (key if rules.fence_in_place or key is None else 0, owner.at)
    after, way = put(world, where, Item("f", owner.generation, (number, owner.generation)))
    yield moved(after, number, mine if way is None else again(world, owner, way))


def fork(world: World, rules: Rules, number: int, owner: Owner) -> Iterator[World]:
    item = Item("s", owner.generation, (number, -1))
    if rules.fork_at_any_price:
        kept = frozenset(pair for pair in world.items if pair[0] != (None, owner.at))
        after, way = replace(world, items=kept | {((None, owner.at), item)}), None
    else:
        after, way = put(world, (None, owner.at), item)
    yield moved(after, number, reading(world, owner) if way is None else again(world, owner, way))
    if not rules.fork_at_any_price:  # not answered: the mount is given up, and the fork is under way
        lost = replace(world, puts=world.puts | {((None, owner.at), item, number)})
        yield moved(lost, number, replace(owner, step="over"))


def again(world: World, owner: Owner, way: Item) -> Owner:
    """Returns an owner that met something: it finds the tail again, or gives up."""
    return replace(owner, step="over") if way.generation > owner.generation else reading(world, owner)


def append(world: World, rules: Rules, number: int, owner: Owner) -> Iterator[World]:
    """Puts a batch: it is sent, and is done at once or at any later time; then it is put again until it is answered."""
    if not owner.appends or world.trimmed > owner.generation:  # by then its lease has run out: it acknowledges nothing
        return
    where = (key_of(rules, owner.at, owner), owner.at)
    item = Item("d", owner.generation, (number, owner.at))
    if not world.puts:
        yield replace(world, puts=world.puts | {(where, item, number)})
    after, way = put(world, where, item)
    if way is not None:
        yield moved(world, number, replace(owner, step="over"))
        return
    told = after.told | {(owner.at, item.token)}
    mine = replace(owner, at=owner.at + 1, appends=owner.appends - 1, sent=owner.sent + 1)
    yield moved(replace(after, told=told), number, mine)
    if world.generation == owner.generation and owner.low is None:
        # HEAD is renewed with the low-water mark. What is deleted then may be deleted by a former owner.
        yield moved(replace(after, told=told), number, replace(mine, low=mine.at))


def truncated(world: World, rules: Rules, number: int, owner: Owner) -> World:
    """Deletes the batches below the low-water mark; the last one of a key stays."""
    below = owner.low or 0
    lasts: dict[int | None, int] = {}
    for (key, first), _ in world.items:
        lasts[key] = max(lasts.get(key, -1), first)
    highest = max(lasts.values(), default=-1)
    kept = frozenset(
        ((key, first), item)
        for (key, first), item in world.items
        if first >= below or item.kind == "s" or first == (lasts[key] if rules.keep_last_of_each_key else highest)
    )
    gone = world.gone | {first for (_, first), item in world.items - kept if item.kind == "d"}
    after = replace(world, items=kept, gone=gone, trimmed=max(world.trimmed, owner.generation))
    return moved(after, number, replace(owner, low=None))


STEPS: dict[str, Callable[[World, Rules, int, Owner], Iterator[World]]] = {
    "claim": claim, "read": read, "fence": fence, "fork": fork, "append": append,
}  # fmt: skip


def wrong(world: World) -> bool:
    """Returns whether an acknowledged batch is lost, an id stands in two places, or a fence was passed."""
    if world.low_tail:
        return True
    batches = [(first, item.token) for (_, first), item in world.items if item.kind == "d"]
    if len({first for first, _ in batches}) < len(batches):
        return True
    lost = any(pair not in batches and pair[0] not in world.gone for pair in world.told)
    twice = len({first for first, _ in world.told}) < len(world.told)
    return lost or twice or any(passed(world, owner) for owner in world.owners)


def passed(world: World, owner: Owner) -> bool:
    """Returns whether a former owner's batch stands behind a mounted owner's fence."""
    begin = owner.mounted
    return begin is not None and any(
        item.kind == "d" and item.generation < owner.generation and begin <= first and first not in world.gone
        for (_, first), item in world.items
    )


def search(rules: Rules, owners: int, appends: int, limit: int = 3_000_000) -> World | None:
    """Visits every reachable state; returns one that is wrong, None when there is none."""
    start = World(0, 0, frozenset(), tuple(Owner(appends=appends) for _ in range(owners)))
    known, open_ = {start}, [start]
    while open_:
        for world in following(open_.pop(), rules):
            if world not in known:
                if wrong(world):
                    return world
                known.add(world)
                open_.append(world)
        assert len(known) < limit, "the model has grown too large to be searched"
    return None


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("rules", "owners", "appends"),
    [
        (Rules(1), 2, 2),
        (Rules(2), 2, 2),
        (Rules(2, first_alone_forks=True), 2, 3),
        (Rules(3), 2, 2),
        *([(Rules(2), 3, 1), (Rules(3), 2, 3)] if "KAINITE_LONG" in os.environ else []),
    ],
)
def test_no_course_of_the_model_loses_or_doubles_a_batch(rules: Rules, owners: int, appends: int) -> None:
    """Searches more, for some minutes, with ``KAINITE_LONG`` in the environment."""
    assert search(rules, owners, appends) is None


MUTATIONS = {
    "tail of one key": partial(Rules, all_keys=False),
    "last of the whole log stays": partial(Rules, keep_last_of_each_key=False),
    "place by the owner's own count": partial(Rules, own_places=False),
    "no fence": partial(Rules, fences=False, fork_at_any_price=True),
    "fence in another stripe": partial(Rules, fence_in_place=False),
    "fork over anything": partial(Rules, fork_at_any_price=True, first_alone_forks=True),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", MUTATIONS)
def test_the_search_misses_each_safeguard(name: str) -> None:
    assert search(MUTATIONS[name](stripes=2), 2, 3) is not None
