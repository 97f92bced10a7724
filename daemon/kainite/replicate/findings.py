"""What a look at a source and a target has found: a list, each line with the statement that mends it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What a finding means for a replica."""

    OK = "ok"
    WARNING = "warning"  # it works; somebody should know
    WRONG = "wrong"  # a load, or the apply job, would fail or be refused


@dataclass(frozen=True, slots=True)
class Finding:
    """A line of the list.

    Attributes:
        verdict: what it means.
        about: what was looked at, in a word or two.
        found: what was found.
        mend: what to execute or to set, and where; empty where there is nothing to mend.
    """

    verdict: Verdict
    about: str
    found: str
    mend: str = ""


def fine(about: str, found: str) -> Finding:
    """Returns a finding that needs nothing."""
    return Finding(Verdict.OK, about, found)


def warning(about: str, found: str, mend: str = "") -> Finding:
    """Returns a finding that somebody should know."""
    return Finding(Verdict.WARNING, about, found, mend)


def wrong(about: str, found: str, mend: str) -> Finding:
    """Returns a finding that must be mended."""
    return Finding(Verdict.WRONG, about, found, mend)


def is_ready(findings: Iterable[Finding]) -> bool:
    """Tells whether a load may begin."""
    return all(finding.verdict is not Verdict.WRONG for finding in findings)
