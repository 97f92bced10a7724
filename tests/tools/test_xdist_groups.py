"""Groups of tests that share a costly fixture run on one worker: some versions of pytest and xdist ignore groups."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("probe")
def test_a_group_is_part_of_its_tests_id_as_xdist_distributes_by_it(request: pytest.FixtureRequest) -> None:
    by_group = getattr(request.config.option, "loadgroup", False)
    assert request.node.nodeid.endswith("@probe") == by_group
