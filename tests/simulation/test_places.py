"""Each safeguard's place is there, and so is the test that shows it: a mutation is entered too seldom to tell."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from simulation.mutation import Mutation
from simulation.mutations import MUTATIONS, RARE
from simulation.tested import TESTED

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "mutation", [*MUTATIONS, *RARE, *(one.mutation for one in TESTED)], ids=lambda mutation: mutation.name
)
def test_a_safeguard_stands_where_it_is_switched_off(mutation: Mutation) -> None:
    module, _, path = mutation.place.partition(":")
    found = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)


@pytest.mark.parametrize("test", sorted({one.test for one in TESTED}))
def test_the_test_that_shows_a_safeguard_is_there(test: str) -> None:
    file, *names = test.partition("[")[0].split("::")
    program = (ROOT / file).read_text(encoding="utf-8")

    assert [name for name in names if f"def {name}(" not in program and f"class {name}:" not in program] == []
