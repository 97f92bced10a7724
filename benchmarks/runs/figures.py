"""The figures in a benchmark's JSON, and whether figures of two commits differ by more than noise. Pure."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

NAMES: Final = ("name", "mix", "way", "kind", "table", "case", "clients", "shards", "hosts", "rate", "busy")
"""Keys whose values tell one object of a list from another; an object without any of them is told by its place."""

LEAST_TURNS: Final = 6
"""Fewer pairs cannot show a difference: of the 64 ways to swap six pairs, two are as far apart as six wins of six."""

CHANCE: Final = 0.05


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure at two commits.

    Attributes:
        figure: the figure's path in the JSON.
        before, after: the medians.
        chance: how often chance alone gives a difference as large, 0 to 1.
    """

    figure: str
    before: float
    after: float
    chance: float

    @property
    def is_real(self) -> bool:
        """Tells whether the difference is larger than the noise."""
        return self.chance <= CHANCE

    @property
    def change(self) -> float:
        """Returns the change as a share of the median before; infinite where that is zero."""
        return (self.after - self.before) / abs(self.before) if self.before else math.copysign(math.inf, self.after)


def parsed(text: str) -> Any:
    """Returns what a benchmark printed: one JSON document, or the list of its lines where each is one.

    Raises:
        ValueError: the text is neither.
    """
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def figures(found: Any) -> dict[str, float]:
    """Returns all numbers in a benchmark's JSON, by their paths."""
    return dict(_walked(found, ()))


def differences(before: Sequence[Mapping[str, float]], after: Sequence[Mapping[str, float]]) -> list[Difference]:
    """Compares figures that were measured in turns: ``before[i]`` and ``after[i]`` one after the other.

    Figures that never change, such as the number of units, are left out, and so are those that one side lacks.
    """
    common = [name for name in before[0] if all(name in each for each in (*before, *after))]
    rows = [(name, [one[name] for one in before], [one[name] for one in after]) for name in common]
    return [
        Difference(name, statistics.median(old), statistics.median(new), chance_of(old, new))
        for name, old, new in rows
        if len({*old, *new}) > 1
    ]


def chance_of(before: Sequence[float], after: Sequence[float]) -> float:
    """Returns how often swapping pairs at random gives a mean difference as large: Fisher's exact permutation test."""
    pairs = [new - old for old, new in zip(before, after, strict=True)]
    found = abs(sum(pairs)) * (1 - 1e-12)  # sums in another order differ in their last digits
    sums = [abs(sum(map(math.prod, zip(signs, pairs, strict=True)))) for signs in product((1, -1), repeat=len(pairs))]
    return sum(one >= found for one in sums) / len(sums)


def _walked(found: Any, path: tuple[str, ...]) -> Iterator[tuple[str, float]]:
    if isinstance(found, bool) or found is None or isinstance(found, str):
        return
    if isinstance(found, int | float):
        yield "/".join(path), float(found)
    elif isinstance(found, Mapping):
        for key, value in found.items():
            yield from _walked(value, (*path, str(key)))
    else:
        for place, value in enumerate(found):
            yield from _walked(value, (*path, _label(value, place)))


def _label(value: Any, place: int) -> str:
    if not isinstance(value, Mapping):
        return str(place)
    names = [value[key] for key in NAMES if isinstance(value.get(key), str | int | float)]
    told = [f"{name:g}" if isinstance(name, float) else str(name) for name in names]
    return " ".join(told) or str(place)
