"""Safeguards that are switched off, and within how many seeds the simulation must notice."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock


@dataclass(frozen=True, slots=True)
class Mutation:
    """A safeguard that is off while the context is entered.

    Attributes:
        name: of the safeguard.
        off: switches it off.
        within: seeds within which a run must fail.
        first: the first of these seeds.
    """

    name: str
    off: Callable[[], contextlib.AbstractContextManager[None]]
    within: int
    first: int = 0


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    with mock.patch.object(owner, name, value):
        yield


MUTATIONS: tuple[Mutation, ...] = ()
