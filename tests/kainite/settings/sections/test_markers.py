"""The markers of a conversation, as the settings have them."""

from __future__ import annotations

import pytest

from kainite.base.markers import EXTRACTION, USED, Batching
from kainite.settings import MarkersSettings


@pytest.mark.parametrize("batching", Batching)
def test_a_conversation_uses_the_markers_of_its_batching(batching: Batching) -> None:
    settings = MarkersSettings(eom=b"|", batching=batching)

    assert (settings.markers.eom, settings.markers.used) == (b"|", USED[batching])
    assert settings.extraction.used == EXTRACTION


def test_markers_that_cannot_be_told_apart_are_refused_where_they_are_used() -> None:
    same = MarkersSettings(eop=b"\x06")
    assert same.markers.bnc == b"\x06"
    with pytest.raises(ValueError, match="EOP is the same as BNC"):
        _ = MarkersSettings(eop=b"\x06", batching=Batching.WORKER).markers
