"""The simulator itself: fixed seeds hold what is promised, a seed is repeatable, mutations are found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from simulation.faults import chance
from simulation.mutations import MUTATIONS, RARE, Mutation
from simulation.scenario import scenario
from simulation.source import Source, Style, apply

TESTS = Path(__file__).parents[1]


def simulate(*arguments: str) -> str:
    """Runs the simulator in a process of its own: it replaces clocks and threads, and needs a fixed hash seed."""
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "simulation", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", [0])
def test_each_schedule_of_the_fixed_list_ends_as_promised(first: int) -> None:
    assert "0 failed" in simulate("--first", str(first), "--seeds", "25", "--shrink", "0")


@pytest.mark.timeout(300)
def test_mutations_are_found() -> None:
    assert "2 mutations in" in simulate("--mutations", "signature of rows", "conflicting units on one instance")


@pytest.mark.parametrize("mutation", [*MUTATIONS, *RARE], ids=lambda mutation: mutation.name)
def test_the_place_of_each_mutation_is_there(mutation: Mutation) -> None:
    with mutation.off():
        assert next(mutation.seeds()) >= 0


def test_a_seed_means_the_same_each_time() -> None:
    assert scenario(7) == scenario(7)
    assert chance(7, "a") == chance(7, "a")
    assert chance(7, "a") != chance(7, "b")


@pytest.mark.parametrize("seed", range(20))
def test_a_generated_history_leads_from_nothing_to_the_sources_state(seed: int) -> None:
    source = Source(Random(seed), 20, Style(ordinals=True, numbers=True, befores=True, cascades_told=seed % 2 == 0))
    state = {name: {} for name in source.tables}  # type: ignore[var-annotated]
    for transaction in source.history:
        for change in transaction.changes:
            apply(source.tables, state, change)
    assert state == source.state
