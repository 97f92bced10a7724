"""What a look at a source and a target has found: a list, each line with the statement that mends it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_MOST_NAMES: Final = 8


class CheckVerdict(StrEnum):
    """What a finding means for a replica."""

    OK = "ok"
    WARNING = "warning"  # it works; somebody should know
    WRONG = "wrong"  # a load, or the apply job, would fail or be refused


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """A line of the list.

    Attributes:
        verdict: what it means.
        about: what was looked at, in a word or two.
        found: what was found.
        mend: what to execute or to set, and where; empty where there is nothing to mend.
    """

    verdict: CheckVerdict
    about: str
    found: str
    mend: str = ""


def fine(about: str, found: str) -> CheckFinding:
    """Returns a finding that needs nothing."""
    return CheckFinding(CheckVerdict.OK, about, found)


def warning(about: str, found: str, mend: str = "") -> CheckFinding:
    """Returns a finding that somebody should know."""
    return CheckFinding(CheckVerdict.WARNING, about, found, mend)


def wrong(about: str, found: str, mend: str) -> CheckFinding:
    """Returns a finding that must be mended."""
    return CheckFinding(CheckVerdict.WRONG, about, found, mend)


def is_ready(findings: Iterable[CheckFinding]) -> bool:
    """Tells whether a load may begin."""
    return all(finding.verdict is not CheckVerdict.WRONG for finding in findings)


def some_names(names: Sequence[str]) -> str:
    """Returns the first names of a list, and how many more it has."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
