"""One line of the doctor's list. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FindingState(StrEnum):
    """What a finding means."""

    WELL = "well"
    WARNING = "warning"  # it works; somebody should know
    WRONG = "wrong"  # a command of this file would fail, or be refused

    @property
    def sign(self) -> str:
        return {FindingState.WELL: "✓", FindingState.WARNING: "!", FindingState.WRONG: "✗"}[self]


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """Something that was asked, and the answer.

    Attributes:
        area: the group that it is shown in, such as ``stream``.
        what: what was found, in a sentence without a full stop.
        state: what it means.
        remedy: the statement, command or setting that mends it; empty where there is nothing to mend.
    """

    area: str
    what: str
    state: FindingState
    remedy: str = ""


def well(area: str, what: str) -> DoctorFinding:
    """Returns a finding that needs nothing."""
    return DoctorFinding(area, what, FindingState.WELL)


def warned(area: str, what: str, remedy: str = "") -> DoctorFinding:
    """Returns a finding that somebody should know."""
    return DoctorFinding(area, what, FindingState.WARNING, remedy)


def wrong(area: str, what: str, remedy: str = "") -> DoctorFinding:
    """Returns a finding that must be mended."""
    return DoctorFinding(area, what, FindingState.WRONG, remedy)
