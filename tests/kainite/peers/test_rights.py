"""Rights: which texts name one, and which partitions of applications one allows."""

from __future__ import annotations

import pytest

from kainite.peers.rights import is_right, may_use, of_application


@pytest.mark.parametrize("text", ["daemon", "follow", "operate", "application", "application/0", "application/17"])
def test_a_right_is_known_by_its_name(text: str) -> None:
    assert is_right(text)


@pytest.mark.parametrize("text", ["", "Daemon", "daemon/1", "application/", "application/x", "application/-1", "all"])
def test_nothing_else_is_a_right(text: str) -> None:
    assert not is_right(text)


def test_a_partition_is_used_by_who_may_use_it_or_all() -> None:
    assert may_use(frozenset({of_application(3)}), 3)
    assert may_use(frozenset({"application"}), 3)
    for rights in (frozenset({of_application(4)}), frozenset({"daemon", "follow", "operate"}), frozenset[str]()):
        assert not may_use(rights, 3)
