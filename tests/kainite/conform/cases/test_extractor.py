"""The cases of extractors: a plain one is run once, a cyclic one is asked as its offsets want it."""

from __future__ import annotations

import json

import pytest

from kainite.conform.cases.case import EndOfInput, Extract, Withheld
from kainite.conform.cases.extractor import extractor_cases
from kainite.settings import ExtractMode, ExtractOffsets, ExtractSettings


def test_a_plain_extractor_is_asked_for_nothing() -> None:
    (case,) = extractor_cases(ExtractSettings(mode=ExtractMode.PLAIN))

    assert case.steps == (Extract(),)


@pytest.mark.parametrize(
    ("offsets", "fields", "wanted"),
    [
        (ExtractOffsets.EXTRACTOR, None, False),
        (ExtractOffsets.KAINITE, {"start", "end"}, True),
        (ExtractOffsets.TIME, {"start", "end"}, False),
    ],
)
def test_a_cyclic_extractor_is_asked_as_its_offsets_want_it(
    offsets: ExtractOffsets, fields: set[str] | None, wanted: bool
) -> None:
    cases = extractor_cases(ExtractSettings(mode=ExtractMode.CYCLIC, offsets=offsets))

    asked = {step for case in cases for step in case.steps if isinstance(step, Extract)}
    (one,) = asked
    assert one.offset_wanted is wanted
    assert (json.loads(one.request).keys() if one.request else None) == fields
    assert [case.held for case in cases] == [None, Withheld.REQUESTS, None, None]
    assert isinstance(cases[-1].steps[-1], EndOfInput)
