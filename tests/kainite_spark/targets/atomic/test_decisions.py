"""The register of decisions."""

from __future__ import annotations

import pickle

import pytest

from kainite.base.errors import LogError
from kainite.store.memory import MemoryStore
from kainite_spark.targets.atomic.decisions import Decisions
from kainite_spark.targets.preparing import TransactionName

ONE, OTHER = TransactionName(1, 9, "a"), TransactionName(2, 1, "b")


def test_who_decides_first_decides() -> None:
    decisions = Decisions(MemoryStore(), "0")
    assert decisions.commit(ONE)
    assert decisions.settle(ONE)
    assert not decisions.settle(OTHER)
    assert not decisions.commit(OTHER)
    assert decisions.all() == {ONE: True, OTHER: False}


def test_decisions_of_fences_that_have_passed_are_forgotten() -> None:
    decisions = Decisions(MemoryStore(), "0")
    for name in (ONE, OTHER):
        decisions.commit(name)
    decisions.forget((1, 9), ("shop",))
    assert decisions.all() == {ONE: True, OTHER: True}
    decisions.forget((2, 1), ("shop",))
    assert decisions.all() == {OTHER: True}


def test_a_decision_is_kept_while_a_target_with_a_part_is_not_there() -> None:
    """Shows a target that was taken out, and comes back, is told what was decided."""
    decisions = Decisions(MemoryStore(), "0")
    decisions.commit(ONE, ("shop", "crm"))
    assert decisions.elsewhere(("shop",)) == {"crm": [ONE]}
    decisions.forget((3, 0), ("shop",))
    assert decisions.all() == {ONE: True}
    assert decisions.elsewhere(("shop", "crm")) == {}
    decisions.forget((3, 0), ("shop", "crm"))
    assert decisions.all() == {}


def test_a_register_that_was_sent_elsewhere_has_no_store() -> None:
    sent = pickle.loads(pickle.dumps(Decisions(MemoryStore(), "0")))
    with pytest.raises(LogError, match="without the log"):
        sent.all()
