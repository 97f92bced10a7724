"""A case that needs payloads that the child understands is told from the others."""

from __future__ import annotations

import pytest

from kainite.conform.cases.case import ONE_MESSAGE, ONE_RECORD, Case


@pytest.mark.parametrize(
    ("needs", "known"), [((), False), (("initialize",), False), ((ONE_RECORD,), True), ((ONE_MESSAGE,), True)]
)
def test_a_case_that_builds_on_one_record_is_tried_on_known_payloads(needs: tuple[str, ...], known: bool) -> None:
    assert Case("case", "a case", (), needs).on_known_payloads is known
