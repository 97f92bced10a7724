"""A safeguard that can be switched off: where it stands, and what stands there instead."""

from __future__ import annotations

import contextlib
import importlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

from simulation.scenario import scenario

Instead = Callable[[Any], Any]
"""Makes what stands in a safeguard's place, of what stands there now."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A safeguard that can be switched off.

    Attributes:
        name: of the safeguard.
        place: module and name, ``kainite.owner.mount:Mount.valid``.
        instead: makes what stands there instead.
        within: seeds within which a run must fail, of those in which the faults in ``needs`` can happen.
        needs: faults without which the safeguard has nothing to do.
        aim: the variant of the seeds that is tried (:mod:`simulation.scenario`).
    """

    name: str
    place: str
    instead: Instead
    within: int
    needs: tuple[str, ...] = ()
    aim: str = ""

    def seeds(self) -> Iterator[int]:
        """Yields the seeds to try."""
        fitting = (seed for seed in itertools.count() if all(scenario(seed).rates.get(kind) for kind in self.needs))
        return itertools.islice(fitting, self.within)

    @contextlib.contextmanager
    def off(self) -> Iterator[None]:
        """Switches the safeguard off while the context is entered."""
        module, _, path = self.place.partition(":")
        owner: Any = importlib.import_module(module)
        *parents, name = path.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
        with mock.patch.object(owner, name, self.instead(getattr(owner, name))):
            yield


def answering(answer: Any) -> Instead:
    """Returns a function that always gives the same answer."""
    return lambda _: lambda *args, **more: answer


def value(given: Any) -> Instead:
    return lambda _: given
