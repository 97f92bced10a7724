"""The guarantee of each kind of extraction, in words."""

from __future__ import annotations

import pytest

from kainite.extract.guarantees import guarantee
from kainite.settings import ExtractMode, ExtractOffsets, ExtractSettings

REPEATED = "messages with uow and ordinal are recognised when they come again, others are then there twice"


@pytest.mark.parametrize(
    ("mode", "offsets", "begins"),
    [
        (ExtractMode.PLAIN, ExtractOffsets.EXTRACTOR, "plain: what a failed run wrote stays on the stream"),
        (ExtractMode.CYCLIC, ExtractOffsets.EXTRACTOR, "offsets kept by the extractor: at least once, if it stores"),
        (ExtractMode.CYCLIC, ExtractOffsets.KAINITE, "offsets kept by Kainite: exactly once for messages with uow"),
        (ExtractMode.CYCLIC, ExtractOffsets.TIME, "ranges of time kept by Kainite: exactly once for messages with uow"),
    ],
)
def test_each_kind_has_its_guarantee_and_says_what_becomes_of_repetitions(
    mode: ExtractMode, offsets: ExtractOffsets, begins: str
) -> None:
    text = guarantee(ExtractSettings(mode=mode, offsets=offsets))
    assert text.startswith(begins)
    assert text.endswith(REPEATED)
