"""Records of what people ask for, whatever they write into a request."""

from __future__ import annotations

import pytest

from kainite.log.format.entry import OperationKind, OperationMeta, OperationResult
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.operations import paused_in_words
from kainite.owner.recording import asked_for, record


def test_a_record_says_who_asked_when_why_and_what_has_become_of_it() -> None:
    journal = Journal(FoldedLog(), 0)
    request = {"by": "ann@host", "why": "it is mended", "at": "17"}
    record(journal, "r", request, OperationKind.RETRY, "unit T", {"result": "refused", "message": "no such unit"})
    (noted,) = journal.state.operations.all()
    assert noted == OperationMeta(
        "r", "retry units", "unit T", "ann@host", "it is mended", 17, OperationResult.REFUSED, "no such unit"
    )


@pytest.mark.parametrize("at", ["", "soon", "-1", "1" * 40, "9" * 15, "\u0661"])
def test_a_request_without_a_time_or_a_name_is_recorded_all_the_same(at: str) -> None:
    noted = asked_for("r", {"at": at}, "x" * 9_000, "", OperationResult.DONE)
    assert noted.at_ms > 1_700_000_000_000
    assert paused_in_words(noted)
    assert (noted.who, noted.why, len(noted.what)) == ("somebody", "", 500)
