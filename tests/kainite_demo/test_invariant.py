"""Torn transactions fail the demo, on a real server."""

from __future__ import annotations

import re

import pytest

from kainite_demo import invariant
from kainite_demo.invariant import Invariant
from kainite_demo.watching import Watching
from support.pgbench_databases import ACCOUNT, BRANCH, TELLER, WHOLE, execute, failure_of
from support.waiting import eventually


def test_whole_transactions_keep_the_sums_equal(target: str) -> None:
    execute(target, BRANCH, TELLER, ACCOUNT)
    invariant.make_quick(target)
    seen = Invariant()
    with Watching(target, seen.look) as watching:
        for _ in range(5):
            execute(target, *WHOLE)
        eventually(lambda: seen.latest.transactions == 5)
        watching.check()
    assert (seen.latest.accounts, seen.latest.history) == (35, 35)
    assert seen.looks > 0


@pytest.mark.parametrize("missing", range(4))
def test_a_transaction_applied_in_part_is_seen(target: str, missing: int) -> None:
    execute(target, BRANCH, TELLER, ACCOUNT)
    with Watching(target, Invariant().look) as watching:
        execute(target, *(statement for place, statement in enumerate(WHOLE) if place != missing))
        assert re.match(r"torn transaction .*accounts \d, tellers \d", failure_of(watching))
