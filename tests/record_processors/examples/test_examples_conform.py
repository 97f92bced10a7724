"""``kainite conform`` finds nothing wrong with the examples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from kainite.conform.cases.samples import read_samples
from kainite.conform.exchange.child_run import AnswerLimits
from kainite.conform.runner import ConformOptions, run_cases
from kainite.new_processor.catalogue import EXAMPLES, JSON_LINES, MARKERS, SAMPLES, Example, folder
from kainite.settings import ChildSettings
from support.example_processors import LIMIT

# What takes no other test's place: flushing, reading ahead, junk, odd keys, ten megabytes, the end of input.
CASES: Final = {
    JSON_LINES: ("reads-first", "only-messages", "empty-batch", "odd-keys", "binary-payload", "large", "checkpoint",
                 "checkpoint-lease-stolen", "lease-lost-at-once", "end-of-input"),
    MARKERS: ("reads-first", "several-messages", "binary", "large", "end-of-input"),
}  # fmt: skip
OF_SLOW_STARTERS: Final = ("large", "end-of-input")
"""For Java, which each case starts anew."""

LARGE: Final = {"perl": 100_000}
"""Bytes; 10 MB for the others. JSON::PP reads some 1 MB a second."""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: f"{one.language}-{one.dialect}")
async def test_an_example_conforms(example: Example, command_of: Callable[[Example], tuple[str, ...]]) -> None:
    child = ChildSettings(command_of(example), protocol=example.dialect)
    large = LARGE.get(example.language, 10_000_000)
    cases = OF_SLOW_STARTERS if example.language == "java" else CASES[example.dialect]

    report = await run_cases(ConformOptions(child, limits=AnswerLimits(timeout=LIMIT), large=large, only=cases))

    assert report.ok(), [(result.name, result.text, result.exchange) for result in report.results]
    assert [result.name for result in report.results] == list(cases)


def test_the_samples_are_read_as_conform_reads_them(tmp_path: Path) -> None:
    path = tmp_path / SAMPLES
    path.write_bytes((folder() / SAMPLES).read_bytes())

    assert len(read_samples(path).payloads) == 4
