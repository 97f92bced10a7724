"""Judges what an extractor gave in a cycle or a run: makes findings. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from kainite.conform.cases.case import Extract
from kainite.conform.exchange.step_result import Reaction, StepResult
from kainite.conform.report.findings import CaseVerdict, Finding

MOST_BYTES: Final = 2**20
"""The largest record that Kinesis takes, bytes."""


def judge_extraction(step: Extract, result: StepResult) -> Iterator[Finding]:
    """Yields the findings about an answer; :mod:`~kainite.conform.report.judging` judges a missing answer."""
    offsets = sum(map(_is_offset, result.messages))
    records = [message for message in result.messages if message and not _is_offset(message)]
    if step.request is None and result.reaction is Reaction.UNFINISHED:
        yield Finding(CaseVerdict.NOTE, f"ended within a message: {result.detail}, which count when it exits with 0")
    if any(len(message) > MOST_BYTES for message in records):
        yield Finding(
            CaseVerdict.FAIL, "gave a message of more than 1 MiB, which Kinesis refuses: it ends the extraction"
        )
    if step.offset_wanted and records and not offsets:
        yield Finding(CaseVerdict.FAIL, 'gave messages without a new {"offset":X}: they would come again for ever')
    if not records:
        yield Finding(CaseVerdict.PASS, "gave no messages")


def _is_offset(message: bytes) -> bool:
    if b'"offset"' not in message:
        return False
    try:
        found = json.loads(message)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and "offset" in found and found.keys() <= {"offset", "ahead"}
