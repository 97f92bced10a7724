"""Runs checks side by side, each with a time limit, and none in the way of another.

A thread cannot be ended from outside. So each check has a thread of its own that the process does not wait for: one
that hangs is a finding, and its thread ends with the process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kainite.base.errors import KainiteError
from kainite.doctor.finding import DoctorFinding, wrong


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """Something to ask.

    Attributes:
        area: where its findings belong.
        asks: what it asks, for the case that it hangs or raises.
        run: asks; may yield one finding after the other.
    """

    area: str
    asks: str
    run: Callable[[], Iterable[DoctorFinding]]


@dataclass(slots=True)
class _Running:
    check: DoctorCheck
    found: list[DoctorFinding] = field(default_factory=list)
    error: str | None = None
    hangs: bool = False

    def start(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name=f"doctor: {self.check.asks}", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        found = self.found
        try:
            for finding in self.check.run():
                found.append(finding)
        except KainiteError as error:
            self.error = str(error)
        except BaseException as error:  # whatever it is, the other checks are shown
            self.error = f"{type(error).__name__}: {error}"


def run_checks(checks: Sequence[DoctorCheck], limit: float) -> tuple[DoctorFinding, ...]:
    """Returns what all checks have found, each thing once, in the checks' order.

    Args:
        checks: what is asked.
        limit: seconds that each check may take; all begin at once.
    """
    end = time.monotonic() + limit
    running = [_Running(check) for check in checks]
    threads = [each.start() for each in running]
    for each, thread in zip(running, threads, strict=True):
        thread.join(max(0.0, end - time.monotonic()))
        each.hangs = thread.is_alive()
    found = [finding for each in running for finding in _of_one(each, running, limit)]
    return tuple(dict.fromkeys(found))  # two commands may need the same


def _of_one(one: _Running, running: Sequence[_Running], limit: float) -> Iterator[DoctorFinding]:
    """Yields what a check has found; its error with all checks that have it, such as two that need the same tables."""
    area = one.check.area
    yield from tuple(one.found)
    if one.hangs:
        yield wrong(area, f"{one.check.asks}: no answer within {limit:g} s",
                    "look at its address and at the network between; --limit waits longer")  # fmt: skip
    elif one.error is not None:
        ended = (each for each in running if not each.hangs)
        alike = dict.fromkeys(each.check.asks for each in ended if (each.check.area, each.error) == (area, one.error))
        yield wrong(area, f"{', '.join(alike)}: {one.error}")
