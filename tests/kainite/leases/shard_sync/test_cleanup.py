"""The cases of KCL's LeaseCleanupManager (docs/kcl.md, *Shard sync*)."""

from __future__ import annotations

import dataclasses

import pytest

from kainite.base.checkpoint import AT_TIMESTAMP, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.leases.shard_sync.cleanup import childless, completed
from kainite.leases.table.lease import Lease

PARENT = Lease("p", checkpoint=SHARD_END, children=frozenset("ab"))
UNDER_WAY = Lease("a", checkpoint=Checkpoint("5"))


@pytest.mark.parametrize(
    ("leases", "gone"),
    [
        ([PARENT, UNDER_WAY, Lease("b", checkpoint=SHARD_END, parents=frozenset("p"))], {"p"}),
        ([PARENT, UNDER_WAY, Lease("b", checkpoint=TRIM_HORIZON)], set()),
        ([PARENT, UNDER_WAY, Lease("b", checkpoint=AT_TIMESTAMP)], set()),
        ([PARENT, UNDER_WAY], set()),
        ([Lease("p", checkpoint=SHARD_END)], set()),
        ([Lease("p", checkpoint=Checkpoint("5"))], set()),
        (
            [
                Lease("g", checkpoint=Checkpoint("5"), children=frozenset("p")),
                dataclasses.replace(PARENT, parents=frozenset("g")),
                UNDER_WAY,
                Lease("b", checkpoint=Checkpoint("5")),
            ],
            set(),
        ),
    ],
    ids=[
        "both under way",
        "one not begun",
        "one at timestamp",
        "one without lease",
        "no children known",
        "not done",
        "own parent not gone",
    ],
)
def test_a_lease_is_deleted_when_its_children_are_under_way_and_its_parents_gone(
    leases: list[Lease], gone: set[str]
) -> None:
    assert set(completed(leases)) == gone


def test_an_ended_lease_without_children_is_garbage_once_its_parents_are_gone() -> None:
    ended = Lease("x", checkpoint=SHARD_END)
    assert childless([ended, PARENT, UNDER_WAY]) == ("x",)
    assert childless([dataclasses.replace(ended, parents=frozenset("p")), PARENT]) == ()
