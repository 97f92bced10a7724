"""The figures of the last hour for the charts: a bounded ring of slots, each of some seconds. Pure.

What was applied comes from the log, with its own times, so an hour in which nobody looked is filled when somebody does,
as far as the log goes back. The backlog and the failures are those of moments at which somebody looked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kainite.log.state.summary import LogSummary
from kainite.log.views.followed_units import AppliedUnit

SLOT_S: Final = 10
SLOTS: Final = 360
MOST_TIMES: Final = 500
"""How many latencies a slot keeps: enough for its 99th percentile."""


@dataclass(slots=True)
class _Slot:
    applied: int = 0
    times: list[float] = field(default_factory=list)
    waiting: int | None = None
    failed: int | None = None


@dataclass(frozen=True, slots=True)
class FigureSlot:
    """The figures of some seconds. A figure is None where nobody looked, or nothing was applied.

    Attributes:
        at: when the slot begins, seconds since the epoch.
        rate: units applied a second.
        p50, p99: seconds from the arrival on the stream to the target's commit.
        waiting: units that are not applied.
        failed: failed and blocked units.
    """

    at: int
    rate: float
    p50: float | None
    p99: float | None
    waiting: int | None
    failed: int | None


class FigureRing:
    """The ring."""

    def __init__(self) -> None:
        self._slots: dict[int, _Slot] = {}

    def forget_applied(self) -> None:
        """Forgets what was applied: it is read again."""
        for slot in self._slots.values():
            slot.applied, slot.times = 0, []

    def note_applied(self, units: Iterable[AppliedUnit], now_ms: int) -> None:
        """Notes units that were applied."""
        oldest = _number(now_ms) - SLOTS
        for unit in units:
            number = min(_number(unit.at_ms), _number(now_ms))
            if number <= oldest:
                continue
            slot = self._slots.setdefault(number, _Slot())
            slot.applied += 1
            if unit.took_s is None:
                continue
            if len(slot.times) < MOST_TIMES:
                slot.times.append(unit.took_s)
            else:
                slot.times[slot.applied % MOST_TIMES] = unit.took_s
        self._forget_before(oldest)

    def note_summary(self, summary: LogSummary) -> None:
        """Notes the log's figures of a moment."""
        slot = self._slots.setdefault(_number(summary.at_ms), _Slot())
        slot.waiting = summary.in_progress + summary.delayed + summary.discarding
        slot.failed = summary.failed + summary.blocked
        self._forget_before(_number(summary.at_ms) - SLOTS)

    def series(self, now_ms: int) -> list[FigureSlot]:
        """Returns the slots of the last hour up to now, the oldest first; the last one is not over."""
        last = _number(now_ms)
        return [_shown(number, self._slots.get(number)) for number in range(last - SLOTS + 1, last + 1)]

    def rate(self, now_ms: int) -> float:
        """Returns the units applied a second, in the latest slot that is over."""
        slot = self._slots.get(_number(now_ms) - 1)
        return 0.0 if slot is None else slot.applied / SLOT_S

    def _forget_before(self, oldest: int) -> None:
        for number in [number for number in self._slots if number <= oldest]:
            del self._slots[number]


def _number(at_ms: int) -> int:
    return at_ms // (1000 * SLOT_S)


def _shown(number: int, slot: _Slot | None) -> FigureSlot:
    if slot is None:
        return FigureSlot(number * SLOT_S, 0.0, None, None, None, None)
    times = sorted(slot.times)
    p50, p99 = (times[round((len(times) - 1) * part)] if times else None for part in (0.5, 0.99))
    return FigureSlot(number * SLOT_S, slot.applied / SLOT_S, p50, p99, slot.waiting, slot.failed)
