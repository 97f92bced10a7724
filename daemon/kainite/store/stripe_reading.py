"""Reads the slots of a striped log partition in order, from keys that are each read in order.

Ids are dense, so the reader knows where the next slot must stand (:mod:`kainite.store.striping`), and reads the
stripes in turns, each as far as its pages reach. If no slot stands at the next place, these are the cases:

==========================  ===============================  ==========================================================
the slot                    is told from the others by       the reader
==========================  ===============================  ==========================================================
does not exist yet          nothing behind it                ends; a weak read looks behind it in its own stripe alone
was read too early          something behind it; it stands   goes on
                            there when it is read again
is not seen yet, weakly     something behind it              goes on strongly
is truncated, or missing    something behind it, strongly    yields what is behind: its caller sees the hole
==========================  ===============================  ==========================================================

A slot that was truncated had others behind it in its own stripe, for a stripe's last slot is never deleted. So a weak
read that looks in that stripe alone cannot take a truncated slot for one that does not exist yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

from kainite.log.contract import Fork, Slot
from kainite.store.striping import stripe_of

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Found: TypeAlias = tuple[Slot, T]
"""A slot, and the store's item of it."""


class StripeReader(Protocol[T_co]):
    """Reads one stripe of a partition."""

    def upwards(self, stripe: int, first_id: int, last_id: int | None, *, strong: bool) -> Iterator[Found[T_co]]:
        """Yields the slots that begin from ``first_id`` to ``last_id``, in order."""

    def holding(self, stripe: int, at: int, *, strong: bool) -> Found[T_co] | None:
        """Returns the last slot that begins at ``at`` or before it."""


def striped_slots(
    reader: StripeReader[T], fork: Fork, first_id: int, last_id: int | None = None, *, strong: bool
) -> Iterator[Found[T]]:
    """Yields the slots behind a fork that hold any id from ``first_id`` to ``last_id`` (or to the tail), in order.

    A slot that begins behind the end of the slot before it shows a hole; no further slot follows it.
    """
    return _Reading(reader, fork, last_id).slots(max(first_id, fork.at), strong=strong)


@dataclass(slots=True)
class _Streams(Generic[T]):
    """The stripes as one read sees them, each from the first place that was needed in it."""

    reader: StripeReader[T]
    fork: Fork
    last_id: int | None
    strong: bool
    _open: dict[int, tuple[Iterator[Found[T]], Found[T] | None]]

    def next_in(self, stripe: int, at: int) -> Found[T] | None:
        """Returns the stripe's first slot from ``at`` on."""
        stream, found = self._open.get(stripe) or self._opened(stripe, at)
        while found is not None and found[0].first_id < at:
            found = next(stream, None)
        self._open[stripe] = stream, found
        return found

    def _opened(self, stripe: int, at: int) -> tuple[Iterator[Found[T]], Found[T] | None]:
        stream = self.reader.upwards(stripe, at, self.last_id, strong=self.strong)
        return stream, next(stream, None)


class _Reading(Generic[T]):
    def __init__(self, reader: StripeReader[T], fork: Fork, last_id: int | None) -> None:
        self._reader = reader
        self._fork = fork
        self._last_id = last_id

    def slots(self, first_id: int, *, strong: bool) -> Iterator[Found[T]]:
        streams = self._streams(strong=strong)
        expected = first_id
        if _begins_at(self._next(streams, first_id), first_id) is None:
            held = self._held(first_id, strong=strong)
            if held is None and not strong:
                yield from self.slots(first_id, strong=True)
                return
            if held is not None and held[0].next_id > first_id:
                yield held
                expected = held[0].next_id
        yield from self._following(streams, expected)

    def _following(self, streams: _Streams[T], expected: int) -> Iterator[Found[T]]:
        """Yields the slots from the one that begins at ``expected``."""
        while self._last_id is None or expected <= self._last_id:
            found = _begins_at(self._next(streams, expected), expected)
            if found is None:
                beyond = self._beyond(streams, expected)
                if beyond is None:
                    return
                streams = self._streams(strong=True)
                found = _begins_at(self._next(streams, expected), expected)
                if found is None:
                    yield beyond
                    return
            if found[0].is_fence:
                return
            yield found
            expected = found[0].next_id

    def _held(self, at: int, *, strong: bool) -> Found[T] | None:
        """Returns the slot that holds the id, or that ends right before it; None when there is none."""
        home = stripe_of(at, self._fork)
        for step in range(self._fork.stripes):
            found = self._reader.holding((home - step) % self._fork.stripes, at, strong=strong)
            if found is not None and found[0].next_id >= at:
                return found
        return None

    def _beyond(self, streams: _Streams[T], expected: int) -> Found[T] | None:
        """Returns a slot behind the empty place ``expected``; None when no slot is behind it."""
        stripes = range(self._fork.stripes) if streams.strong else (stripe_of(expected, self._fork),)
        return next((found for stripe in stripes if (found := streams.next_in(stripe, expected)) is not None), None)

    def _next(self, streams: _Streams[T], at: int) -> Found[T] | None:
        return streams.next_in(stripe_of(at, self._fork), at)

    def _streams(self, *, strong: bool) -> _Streams[T]:
        return _Streams(self._reader, self._fork, self._last_id, strong, {})


def _begins_at(found: Found[T] | None, at: int) -> Found[T] | None:
    return found if found is not None and found[0].first_id == at else None
